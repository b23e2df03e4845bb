"""The engine contract on step sizes that are too large: the same status, and a model or none, in
every engine."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine_cases import EngineCase
from mtcd.training.divergence import DIVERGED
from problems import MODELS

MODEL = MODELS[0]
STCD = {"kind": "stcd", "local_updates": 2}
MTCD = {"kind": "mtcd", "tokens": 2, "hops": 5, "local_updates": 2}
SVFL = {"kind": "svfl", "local_updates": 2}
AT_SERVER = {"labels__shared_with": ["parties", "server"]}
KEPT = "iterations"
# by method: step sizes, after how many iterations to end, and how; some ends are above the start,
# but not without hope
CASES: dict[str, tuple[dict[str, Any], list[tuple[float, int, str]]]] = {
    "stcd": (STCD, [(0.04, 40, KEPT), (0.06, 19, DIVERGED), (0.1, 40, DIVERGED)]),
    "momentum": (
        {**STCD, "walk": "tour", "acceleration": "momentum"},
        [(0.04, 40, KEPT), (0.08, 12, DIVERGED), (0.12, 40, DIVERGED)],
    ),
    "conjugate": (
        {**STCD, "walk": "tour", "acceleration": "conjugate"},
        [(0.1, 40, KEPT), (0.12, 40, DIVERGED), (0.3, 40, DIVERGED)],
    ),
    "average": (
        {**MTCD, "combine": "average"},
        [(0.04, 40, KEPT), (0.06, 20, DIVERGED), (0.15, 40, DIVERGED)],
    ),
    "visitors": ({**MTCD, "combine": "visitors"}, [(0.08, 10, DIVERGED), (0.12, 40, DIVERGED)]),
    "clusters": ({**MTCD, "combine": "cluster"}, [(0.06, 10, DIVERGED), (0.1, 40, DIVERGED)]),
    "optimal": ({**MTCD, "combine": "optimal"}, [(0.08, 40, KEPT), (0.12, 40, DIVERGED)]),
    "batches": (
        {**MTCD, "combine": "cluster", "batch": 7},
        [(0.02, 40, KEPT), (0.04, 25, KEPT), (0.08, 5, DIVERGED)],
    ),
    "svfl": (SVFL, [(0.04, 40, KEPT), (0.06, 3, DIVERGED), (0.2, 40, DIVERGED)]),
    "svfl in batches": (
        {**SVFL, "batch": 6},
        [(0.04, 40, KEPT), (0.06, 2, DIVERGED), (0.2, 40, DIVERGED)],
    ),
    "dcpa": ({"kind": "dcpa"}, [(0.3, 40, KEPT), (0.5, 4, DIVERGED), (1.0, 40, DIVERGED)]),
}
SETTINGS = [(name, *setting) for name, (_, settings) in CASES.items() for setting in settings]


def case_of(name: str, stepsize: float, iterations: int) -> EngineCase:
    changes = AT_SERVER if name == "optimal" else {}
    return EngineCase(
        name, MODEL, {**CASES[name][0], "stepsize": stepsize}, "cycle", iterations, changes=changes
    )


@pytest.mark.long
@pytest.mark.parametrize(("name", "stepsize", "iterations", "status"), SETTINGS)
def test_every_engine_ends_with_the_same_status(
    name: str, stepsize: float, iterations: int, status: str, tmp_path: Path
) -> None:
    case = case_of(name, stepsize, iterations)
    in_process = {
        engine: case.train(case.engine(engine, tmp_path))
        for engine in case.runs_in
        if engine != "federation"
    }
    assert {engine: outcome.status for engine, outcome in in_process.items()} == dict.fromkeys(
        in_process, status
    )
    federated = case.federate(tmp_path)  # the parties have rules of their own
    assert {summary.status for summary in federated.summaries.values()} == {status}
    if status == DIVERGED:
        assert not list(tmp_path.glob("runs/*/block*"))
        return
    for client, theta in zip(case.data.clients, in_process["local"].parameters, strict=True):
        np.testing.assert_allclose(federated.blocks[client].theta, theta, rtol=1e-6, atol=1e-9)


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_an_observed_federation_ends_with_the_same_status(name: str, tmp_path: Path) -> None:
    """Whether the observer or a party notices it first."""
    stepsize, iterations, status = CASES[name][1][-1]
    case = case_of(name, stepsize, iterations)
    assert case.train(case.engine("federation", tmp_path)).status == status == DIVERGED


@pytest.mark.long
@pytest.mark.parametrize("stepsize", [0.3, 0.5])
def test_those_far_from_the_holder_of_the_labels_hear_the_same(
    stepsize: float, tmp_path: Path
) -> None:
    case = EngineCase(
        "far", MODEL, {"kind": "dcpa", "stepsize": stepsize}, "path", 6, widths=(1,) * 7
    )
    status = case.train(case.engine("local", tmp_path)).status
    assert {summary.status for summary in case.federate(tmp_path).summaries.values()} == {status}
