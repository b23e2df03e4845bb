"""The trainings of the engine contract."""

from functools import cache
from typing import Any

import numpy as np
import pytest

from engine_cases import EngineCase, Outcome
from mtcd.engines.local import LocalEngine
from mtcd.protocol.ledger.ledger import Ledger
from problems import MODELS

pytest.importorskip("cryptography")

LOGISTIC, MULTINOMIAL, RIDGE = MODELS[5], MODELS[7], MODELS[0]


ALONE = {"kind": "stcd", "local_updates": 2, "stepsize": 0.01}


TOKENS = {"kind": "mtcd", "tokens": 2, "hops": 5, "local_updates": 2, "stepsize": 0.005}


ROUNDS = {"kind": "svfl", "local_updates": 2, "stepsize": 0.005}


# sums are of the same numbers, not in the same order
IN_ANY_ORDER = ("mtcd visitors", "mtcd optimal", "dcpa")


AT_SERVER = {"labels__shared_with": ["parties", "server"]}


MASKED = {"privacy": {"aggregation": "masked"}}


DOUBLE_MASKED = {"privacy": {"aggregation": "double-masked"}}


SEALED = {"privacy": {"mode": "sealed"}, "labels__shared_with": None}


TRAININGS = [
    EngineCase("stcd", LOGISTIC, ALONE, "cycle"),
    EngineCase("stcd on a tour", RIDGE, {**ALONE, "walk": "tour"}, "path"),
    EngineCase("mtcd in clusters", LOGISTIC, {**TOKENS, "combine": "cluster"}, "path"),
    EngineCase("mtcd average", MULTINOMIAL, {**TOKENS, "combine": "average"}),
    EngineCase("mtcd visitors", RIDGE, {**TOKENS, "combine": "visitors"}, "cycle"),
    EngineCase("mtcd in batches", LOGISTIC, {**TOKENS, "combine": "cluster", "batch": 7}),
    EngineCase("mtcd optimal", RIDGE, {**TOKENS, "combine": "optimal"}, changes=AT_SERVER),
    EngineCase(
        "mtcd memory",
        LOGISTIC,
        {
            "kind": "mtcd",
            "clusters": [["c0", "c1"], ["c2", "c3"]],
            "hops": 2,
            "walk": "tour",
            "stepsize": 0.01,
            "local_updates": 5,
            "combine": "memory",
        },
        changes=AT_SERVER,
    ),
    EngineCase("svfl", MULTINOMIAL, ROUNDS),
    EngineCase("svfl in batches", RIDGE, {**ROUNDS, "batch": 6}),
    EngineCase(
        "svfl accelerated",
        LOGISTIC,
        {"kind": "svfl", "acceleration": "conjugate", "local_solver": "majorise"},
        changes=AT_SERVER,
    ),
    EngineCase(
        "masked accelerated rounds",
        RIDGE,
        {**ROUNDS, "acceleration": "momentum"},
        changes={**MASKED, **AT_SERVER},
    ),
    EngineCase("masked tokens", LOGISTIC, {**TOKENS, "combine": "cluster"}, "path", changes=MASKED),
    EngineCase(
        "masked batches", LOGISTIC, {**TOKENS, "combine": "cluster", "batch": 7}, changes=MASKED
    ),
    EngineCase("masked rounds", RIDGE, ROUNDS, changes=MASKED),
    EngineCase("double-masked rounds", RIDGE, ROUNDS, changes=DOUBLE_MASKED),
    # so many columns that the cap on tours comes after all that the tests look at
    EngineCase(
        "sealed",
        LOGISTIC,
        {"kind": "mtcd", "walk": "tour"},
        "path",
        3,
        changes=SEALED,
        widths=(6, 5, 7, 6),
    ),
    EngineCase("tree-cg", LOGISTIC, {"kind": "tree-cg", "degree": 2}),
    EngineCase("dcpa", RIDGE, {"kind": "dcpa", "stepsize": 0.01}, "cycle"),
    EngineCase(
        "accelerated", RIDGE, {**ALONE, "walk": "tour", "acceleration": "momentum"}, "cycle"
    ),
    EngineCase("twin", LOGISTIC, {"kind": "stcd", "walk": "tour", "acceleration": "twin"}, "path"),
    EngineCase(
        "adaptive", RIDGE, {"kind": "stcd", "walk": "tour", "acceleration": "conjugate"}, "path"
    ),
]


BY_NAME = {case.name: case for case in TRAININGS}


@cache
def reference(name: str) -> Outcome:
    """By messages delivered in order, in this process."""
    case = BY_NAME[name]
    return case.train(LocalEngine(case.parties(), Ledger()))


def assert_close(name: str, found: list[Any], expected: list[Any]) -> None:
    tolerance = 1e-12 if name in IN_ANY_ORDER else 0.0
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)
