"""Weights in federations: parties with the label holder's weights train what one process trains
with them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cheats import Cheats
from hubs import Hub, Passing, linear
from live import Federated, federate, in_process
from mtcd.core.errors import WireError
from mtcd.data.draws import drawn_holdout
from mtcd.data.vertical import VerticalData
from mtcd.federation.node.chunks import unwrap
from mtcd.federation.participant.labels import labels_from_bytes, labels_to_bytes
from mtcd.models.glm.model import Glm
from mtcd.models.glm.party.block import read_block
from problems import make_data

ALONE: dict[str, Any] = {
    "method": {"kind": "stcd", "stepsize": "auto"},
    "server": None,
    "network": {"kind": "path"},
}
TOKENS: dict[str, Any] = {"method": {"kind": "mtcd", "tokens": 2, "hops": 4, "stepsize": "auto"}}
CHOOSING: dict[str, Any] = {
    "method": {"kind": "mtcd", "tokens": 2, "hops": 4, "combine": "optimal"},
    "labels__shared_with": ["parties", "server"],
}
GIVEN_STEP: dict[str, Any] = {"method": {**TOKENS["method"], "stepsize": 0.003}}
DUAL: dict[str, Any] = {**ALONE, "method": {"kind": "dcpa", "stepsize": "auto"}}
METHODS = {"stcd": ALONE, "mtcd": TOKENS, "the server knows": CHOOSING}
MODELS: dict[str, dict[str, Any]] = {
    "ridge": {"kind": "ridge", "alpha": 0.5},
    "logistic": {"kind": "logistic", "l2": 0.3, "intercept": True},
}
WORDS = np.array(["no", "yes"])


def weighed(kind: str, samples: int = 40) -> VerticalData:
    """Samples of which some count for much more than others, and some for nothing."""
    weights = np.random.default_rng(2).exponential(3.0, samples) ** 2
    weights[::7] = 0.0
    return replace(make_data(Glm(kind), samples, [2, 3, 1], seed=4), weights=weights)


def assert_as_in_one_process(data: VerticalData, found: Federated, close: float = 1e-9) -> None:
    expected = in_process(data, found.bundles["c0"])
    assert {one.status for one in found.summaries.values()} == {expected.status}
    assert {one.stepsize for one in found.summaries.values()} == {expected.stepsize}
    for client, theta in expected.parameters.items():
        block = found.blocks[client]
        mine = np.concatenate([block.theta, block.intercept[None]])[: len(theta)]
        np.testing.assert_allclose(mine, theta, rtol=close, atol=close)
    known = [one.metrics for one in found.summaries.values() if one.metrics]
    assert known
    counted = {f"train_{name}": value for name, value in expected.evaluate(data).items()}
    assert all(metrics == pytest.approx(counted, rel=1e-6) for metrics in known)
    plain = in_process(replace(data, weights=None), found.bundles["c0"])
    if data.weights is not None:
        assert (
            max(np.abs(plain.parameters[k] - expected.parameters[k]).max() for k in data.clients)
            > 1e-3
        )


@pytest.mark.long
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", MODELS)
def test_a_federation_trains_as_one_process_does(
    kind: str, method: str, scaled: bool, tmp_path: Path
) -> None:
    """With the same step size, too, which depends on the weights; scaled columns have weighted
    means."""
    data = weighed(kind)
    changes = {
        "model": MODELS[kind],
        "stop": {"iterations": 40},
        "standardise": scaled,
        **METHODS[method],
    }
    # tokens cross: who comes first decides on roundings, which optimal weights enlarge
    close = 1e-6 if method == "the server knows" else 1e-9
    assert_as_in_one_process(data, federate(tmp_path, data, **changes), close)


@pytest.mark.long
@pytest.mark.parametrize(
    "method", [ALONE, TOKENS, GIVEN_STEP, DUAL], ids=["stcd", "mtcd", "a given step", "dcpa"]
)
@pytest.mark.parametrize(
    "class_weight", ["balanced", {"yes": 9.0}, {"no": 0.25, "yes": 4}], ids=str
)
@pytest.mark.parametrize("weights", [False, True])
def test_weights_of_classes(
    class_weight: Any, method: dict[str, Any], weights: bool, tmp_path: Path
) -> None:
    data = weighed("logistic")
    labels = WORDS[(np.asarray(data.labels) == data.labels[0]).astype(int)]
    labels[5:20] = "no"  # few of one class
    data = replace(data, labels=labels, weights=data.weights if weights else None)
    model = {**MODELS["logistic"], "class_weight": class_weight}
    found = federate(tmp_path, data, model=model, stop={"iterations": 40}, **method)
    assert_as_in_one_process(data, found)


def test_samples_that_are_aligned_keep_their_weights(tmp_path: Path) -> None:
    data = weighed("ridge", 10)  # so that the ids, sorted, are in the order of the rows
    found = federate(
        tmp_path, data, model=MODELS["ridge"], stop={"iterations": 20}, alignment="hashed", **ALONE
    )
    assert_as_in_one_process(data, found)


@pytest.mark.parametrize("method", ["stcd", "mtcd"])
def test_held_out_samples_have_no_weights(method: str, tmp_path: Path) -> None:
    """Metrics count all of them once, and neither their labels nor their weights are sent."""
    data = weighed("logistic")
    data.weights[drawn_holdout(0.25, data.samples, 0)[1]] = 0.0
    changes = {
        "model": MODELS["logistic"],
        "stop": {"iterations": 40},
        "standardise": True,
        "holdout": 0.25,
    }
    found = federate(tmp_path, data, **changes, **METHODS[method])
    held = data.holdout(0.25, 0)
    expected = in_process(held, found.bundles["c0"])
    assert {one.stepsize for one in found.summaries.values()} == {expected.stepsize}
    for client, theta in expected.parameters.items():
        np.testing.assert_allclose(
            found.blocks[client].theta, theta[: len(found.blocks[client].theta)], atol=1e-9
        )
    metrics = found.summaries["c0"].metrics
    tested = {f"test_{name}": value for name, value in expected.evaluate(held.test).items()}
    assert {name: metrics[name] for name in tested} == pytest.approx(tested, rel=1e-6)


def test_where_no_sample_with_a_weight_can_be_improved_nothing_diverges(tmp_path: Path) -> None:
    """f is 0 from the start to the end."""
    data = weighed("ridge")
    data = replace(data, labels=np.where(data.weights == 0, data.labels, 0.0))
    found = federate(tmp_path, data, model=MODELS["ridge"], stop={"iterations": 20}, **TOKENS)
    assert {one.status for one in found.summaries.values()} == {"iterations"}
    assert all(not block.theta.any() for block in found.blocks.values())


# What is sent


def opened(folder: Path, data: VerticalData, **changes: Any) -> tuple[Hub, dict[str, list[bytes]]]:
    """A whole run, and the bodies of the requests before training."""
    bodies: dict[str, list[bytes]] = {"align": [], "prepare": [], "start": []}

    def see(passing: Passing) -> None:
        bodies.get(passing.kind, []).append(passing.body)

    model = {"model": MODELS["ridge"], "stop": {"iterations": 9}}
    with Hub(folder, data.clients, linear(data), **model, **TOKENS, **changes) as hub:
        hub.train(see)
    return hub, bodies


def test_without_weights_nothing_else_is_sent_than_before_there_were_any(tmp_path: Path) -> None:
    data = replace(weighed("ridge"), weights=None)
    _, bodies = opened(tmp_path, data)
    assert [unwrap(body, ("agreement",), 1)[1] for body in bodies["prepare"]] == [[b""]] * 2
    head = b'{"kind": "f"}\n'
    assert labels_to_bytes(np.array([0.5, 1.0])) == head + np.array([0.5, 1.0]).tobytes()
    with_labels = [
        body for body in bodies["start"] if head + data.labels.astype("<f8").tobytes() in body
    ]
    assert len(with_labels) == 2
    assert all(
        "weights" not in (tmp_path / "bundles" / name / "party.yaml").read_text()
        for name in data.clients
    )


def test_parties_of_before_refuse_requests_with_weights(tmp_path: Path) -> None:
    """These read one part of ``prepare``, and no key but the kind and the texts."""
    data = weighed("ridge")
    _, bodies = opened(tmp_path, data)
    assert len(bodies["prepare"]) == 2
    for body in bodies["prepare"]:
        with pytest.raises(WireError, match="sizes"):
            unwrap(body, ("agreement",), 1)
    told = [body for body in bodies["start"] if data.weights.astype("<f8").tobytes() in body]
    assert len(told) == 2
    assert all(b'{"kind": "f", "weights": true}\n' in body for body in told)


def test_labels_and_weights_of_held_out_samples_are_not_sent(tmp_path: Path) -> None:
    data = weighed("ridge")
    rows, _, _ = drawn_holdout(0.25, data.samples, 0)
    _, bodies = opened(tmp_path, data, holdout=0.25)
    for body in bodies["prepare"]:
        labels, weights = labels_from_bytes(unwrap(body, ("agreement",), 2)[1][1], len(rows))
        np.testing.assert_array_equal(labels, data.labels[rows])
        np.testing.assert_array_equal(weights, data.weights[rows])


@pytest.mark.parametrize("informed", [False, True])
def test_the_server_knows_the_weights_only_where_it_may_know_the_labels(
    informed: bool, tmp_path: Path
) -> None:
    data = weighed("ridge")
    changes = {"labels__shared_with": ["parties", "server"]} if informed else {}
    hub, bodies = opened(tmp_path, data, **changes)
    told = sum(data.weights.astype("<f8").tobytes() in body for body in bodies["start"])
    assert told == (3 if informed else 2)
    assert (hub.nodes["server"].participant.labels is not None) == informed


def test_who_cheats_with_weights_is_refused(tmp_path: Path) -> None:
    data = weighed("ridge", 10)
    settings = {"model": MODELS["ridge"], "stop": {"iterations": 9}, **ALONE}
    with Hub(tmp_path, data.clients, linear(data), **settings) as hub:
        cheats = Cheats(hub)
        hub.train()
    for client, theta in in_process(data, hub.bundles["c0"]).parameters.items():
        np.testing.assert_allclose(
            read_block(tmp_path / "runs" / client).theta, theta, rtol=1e-9, atol=1e-12
        )
    assert cheats.sent.total() > 300
