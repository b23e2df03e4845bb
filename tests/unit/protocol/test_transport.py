"""Transports: what travels is rounded, the same in every engine; the ledger counts its bytes."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mtcd
from mtcd.methods.method import Method
from mtcd.methods.mtcd.mtcd import MTCD, STCD
from mtcd.methods.svfl.svfl import SVFL
from mtcd.network.topology import make_network
from mtcd.protocol.transports.float32 import Float32
from mtcd.protocol.transports.transport import TRANSPORTS, Transport
from mtcd.testing.references import mtcd as reference
from problems import MODELS, make_data

RIDGE, LOGISTIC = MODELS[0], MODELS[4]
SINGLE: dict[str, Any] = {"transport": "float32"}
METHODS = {
    "stcd": STCD(local_updates=2, stepsize=0.02, **SINGLE),
    "clusters": MTCD(2, 4, 2, 0.02, combine="cluster", **SINGLE),
    "average": MTCD(2, 3, 2, 0.02, **SINGLE),
    "visitors": MTCD(2, 3, 2, 0.02, combine="visitors", **SINGLE),
    "batches": MTCD(2, 3, 2, 0.02, combine="cluster", batch=5, **SINGLE),
    "svfl": SVFL(2, 0.01, **SINGLE),
}


def trained(method: Method, iterations: int = 40) -> mtcd.Run:
    data = make_data(RIDGE, 20, [2, 1, 3, 2], seed=3)
    return mtcd.train(data, RIDGE, "cycle", method, mtcd.Stop(iterations=iterations), seed=5)


@pytest.mark.parametrize("model", [RIDGE, LOGISTIC], ids=lambda model: model.kind)
@pytest.mark.parametrize("walk", ["lazy", "tour"])
def test_stcd_is_the_plain_algorithm_with_a_token_that_is_rounded_on_its_way(
    model: mtcd.Glm, walk: str
) -> None:
    data = make_data(model, 20, [2, 1, 3, 2], seed=3)
    network, method = make_network("cycle", data.clients), STCD(2, 0.02, walk=walk, **SINGLE)
    run = mtcd.train(data, model, network, method, mtcd.Stop(iterations=30), seed=5)
    theta = reference.stcd(model.problem(data), network, method, 5, 30)
    np.testing.assert_allclose(np.concatenate(theta), run.coefficients, rtol=1e-12, atol=1e-12)
    exact = reference.stcd(model.problem(data), network, STCD(2, 0.02, walk=walk), 5, 30)
    assert np.abs(np.concatenate(theta) - np.concatenate(exact)).max() > 1e-12


@pytest.mark.parametrize("name", METHODS)
def test_rounding_changes_little_and_takes_half_the_bytes(name: str) -> None:
    rounded = trained(METHODS[name])
    plain = trained(_plain(METHODS[name]))
    np.testing.assert_allclose(rounded.coefficients, plain.coefficients, rtol=1e-4, atol=1e-5)
    assert not np.array_equal(rounded.coefficients, plain.coefficients)
    assert rounded.ledger.floats("sent") == plain.ledger.floats("sent")
    assert rounded.ledger.bytes("sent") == {
        link: size // 2 for link, size in plain.ledger.bytes("sent").items()
    }


@pytest.mark.long
@pytest.mark.parametrize("name", METHODS)
def test_a_federation_rounds_as_one_process_does(name: str, tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    from live import federate, in_process
    from mtcd.config.method_schema import method_section
    from own_parts import model_section

    data = make_data(RIDGE, 20, [2, 1, 3, 2], seed=3)
    section = method_section(METHODS[name]).model_dump(exclude_unset=True)
    server = {"server": None} if section["kind"] == "stcd" else {}
    settings = {
        "model": model_section(RIDGE),
        "method": section,
        "stop": {"iterations": 24},
        "seed": 5,
    }
    left = federate(tmp_path, data, network={"kind": "cycle"}, **settings, **server)
    same = in_process(data, left.bundles[data.clients[0]])
    # its sums are in another order, and then rounded
    tolerance = 1e-6 if name == "visitors" else 0.0
    for client, theta in same.parameters.items():
        np.testing.assert_allclose(left.blocks[client].theta, theta, rtol=tolerance, atol=tolerance)
    assert left.ledger == same.ledger
    assert left.ledger.bytes("sent") == same.ledger.bytes("sent")


def test_a_transport_that_hides_the_objective_is_measured_by_the_models() -> None:
    @TRANSPORTS.register("hidden")
    class Hidden(Float32):
        reads_objective = False

    try:
        hidden, seen = trained(STCD(2, 0.02, transport="hidden")), trained(STCD(2, 0.02, **SINGLE))
    finally:
        del TRANSPORTS._classes["hidden"]
    assert issubclass(Hidden, Transport)
    np.testing.assert_array_equal(hidden.coefficients, seen.coefficients)
    np.testing.assert_allclose(hidden.final.objective, seen.final.objective, rtol=1e-12)


def test_numbers_beyond_single_precision_are_a_diverged_training() -> None:
    data = mtcd.split(np.full((4, 2), 1e30), np.array([1.0, -2.0, 3.0, 4.0]) * 1e40, clients=2)
    run = mtcd.train(
        data, mtcd.Glm("linear"), "path", STCD(1, 1e-25, **SINGLE), mtcd.Stop(iterations=20)
    )
    assert run.status == "diverged"


def _plain(method: Method) -> Method:
    return replace(method, transport="float64")  # type: ignore[type-var]
