"""Trees and mixed families, trained on a given engine."""

from __future__ import annotations

import numpy as np
import pytest

import mtcd
from mtcd.engines.kinds import EngineSettings

pytest.importorskip("lightgbm")

CLIENTS = 4


METHODS = {
    "tour": mtcd.STCD(walk="tour"),
    "clusters": mtcd.MTCD(clusters=[[0, 1], [2, 3]], hops=4),
    "optimal": mtcd.MTCD(clusters=[[0, 1], [2, 3]], hops=4, combine="optimal"),
    "crossing": mtcd.MTCD(tokens=2, hops=3, local_updates=2),
}


MODELS = {
    "trees": mtcd.Trees("logistic", min_samples=5),
    "mixed": mtcd.Mixed(
        "logistic", {"client_1": "linear", "client_3": {"kind": "net", "hidden": [3]}}, "trees"
    ),
    "l1": mtcd.Mixed(
        "logistic", {"client_3": {"kind": "linear", "l1": 2.0}}, {"kind": "trees", "min_samples": 5}
    ),
}


def data(samples: int = 90) -> mtcd.VerticalData:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((samples, 3 * CLIENTS))
    y = X[:, 0] ** 2 + np.sin(2 * X[:, 4]) + X[:, 7] - X[:, 10] > 1
    return mtcd.split(X, y.astype(int), CLIENTS)


def trained(model: str, method: str, engine: EngineSettings | None) -> mtcd.Run:
    return mtcd.train(
        data(), MODELS[model], "cycle", METHODS[method], mtcd.Stop(iterations=24), engine=engine
    )


def assert_same(run: mtcd.Run, plain: mtcd.Run) -> None:
    X = np.random.default_rng(4).standard_normal((40, 3 * CLIENTS))
    np.testing.assert_array_equal(run.predict_proba(X), plain.predict_proba(X))
    assert run.final.objective == plain.final.objective
    assert run.ledger == plain.ledger
