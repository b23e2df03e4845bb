"""What every engine must keep, of federations: the same seed gives the same iterates and the same ledger."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("zenoh")

from live import federate, in_process
from mtcd.model.linear import Glm
from own_parts import model_section
from problems import MODELS, make_data

LOGISTIC, MULTINOMIAL, RIDGE = MODELS[5], MODELS[7], MODELS[0]
STCD = {"kind": "stcd", "local_updates": 2, "stepsize": 0.01}
MTCD = {"kind": "mtcd", "tokens": 2, "hops": 5, "local_updates": 2, "stepsize": 0.005}
SVFL = {"kind": "svfl", "local_updates": 2, "stepsize": 0.005}
IN_ANY_ORDER = ("mtcd visitors", "mtcd optimal", "dcpa")  # sums are of the same numbers, not in the same order
CASES: list[tuple[str, Glm, dict[str, Any], dict[str, Any]]] = [
    ("stcd", LOGISTIC, STCD, {"network": {"kind": "cycle"}}),
    ("stcd on a tour", RIDGE, {**STCD, "walk": "tour"}, {"network": {"kind": "path"}}),
    ("mtcd in clusters", LOGISTIC, {**MTCD, "combine": "cluster"}, {"network": {"kind": "path"}}),
    ("mtcd average", MULTINOMIAL, {**MTCD, "combine": "average"}, {}),
    ("mtcd visitors", RIDGE, {**MTCD, "combine": "visitors"}, {"network": {"kind": "cycle"}}),
    ("mtcd in batches", LOGISTIC, {**MTCD, "combine": "cluster", "batch": 7}, {}),
    ("mtcd optimal", RIDGE, {**MTCD, "combine": "optimal"}, {"labels__shared_with": ["parties", "server"]}),
    ("svfl", MULTINOMIAL, SVFL, {}),
    ("svfl in batches", RIDGE, {**SVFL, "batch": 6}, {}),
    ("dcpa", RIDGE, {"kind": "dcpa", "stepsize": 0.01}, {"network": {"kind": "cycle"}}),
    ("accelerated", RIDGE, {**STCD, "walk": "tour", "acceleration": "momentum"}, {"network": {"kind": "cycle"}}),
    ("adaptive", RIDGE, {"kind": "stcd", "walk": "tour", "acceleration": "conjugate"}, {"network": {"kind": "path"}}),
]


@pytest.mark.parametrize(("name", "model", "method", "changes"), CASES, ids=[case[0] for case in CASES])
def test_a_federation_trains_as_one_process_does(
    name: str, model: Glm, method: dict[str, Any], changes: dict[str, Any], tmp_path: Path
) -> None:
    data = make_data(model, 20, [2, 1, 3, 2], seed=3)
    server = {} if method["kind"] in ("mtcd", "svfl") else {"server": None}
    settings = {"model": model_section(model), "method": method, "stop": {"iterations": 40}, "seed": 5}
    told = federate(tmp_path, data, **settings, **server, **changes)
    same = in_process(data, told.kits[data.clients[0]])
    tolerance = 1e-12 if name in IN_ANY_ORDER else 0.0
    for client, theta in same.parameters.items():
        np.testing.assert_allclose(told.blocks[client].theta, theta, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(told.blocks[data.clients[0]].intercept, same.intercept, rtol=tolerance, atol=tolerance)
    assert told.ledger == same.ledger
    assert {summary.status for summary in told.summaries.values()} == {same.status}
    assert {summary.iterations for summary in told.summaries.values()} == {same.final.iteration}
