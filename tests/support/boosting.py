"""Data and references for the tests of trees."""

from __future__ import annotations

from typing import Any

import lightgbm
import numpy as np

import mtcd
from mtcd.core.seeding import stream
from mtcd.models.trees.problem import AdditiveProblem

SETTINGS = {"learning_rate": 0.2, "depth": 4, "leaves": 8, "l2": 1.0, "min_samples": 5}
THEIRS = {
    "learning_rate": 0.2,
    "max_depth": 4,
    "num_leaves": 8,
    "lambda_l2": 1.0,
    "min_data_in_leaf": 5,
}


def samples(kind: str, n: int = 240, d: int = 6, seed: int = 0) -> tuple[Any, Any]:
    """Features with an interaction, and labels of this kind: values, classes, classes3 or
    counts."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    score = X[:, 0] * X[:, 1] + X[:, 2] + 0.5 * np.abs(X[:, -1]) + 0.3 * rng.standard_normal(n)
    if kind == "classes":
        return X, (score > 0.2).astype(int)
    if kind == "classes3":
        return X, np.digitize(score, [-0.3, 0.6])
    if kind == "counts":
        return X, rng.poisson(np.exp(0.5 * score)).astype(float)
    return X, score


def joint(
    X: Any,
    y: Any,
    objective: str,
    rounds: int,
    categories: Any = "auto",
    weights: Any = None,
    **more: Any,
) -> Any:
    """LightGBM's own boosting on the joint table."""
    fixed = {"verbose": -1, "deterministic": True, "force_col_wise": True, "num_threads": 1}
    params = {**THEIRS, **fixed, "objective": objective, **more}
    return lightgbm.train(
        params, lightgbm.Dataset(X, y, weight=weights, categorical_feature=categories), rounds
    )


def trained(
    data: mtcd.VerticalData, model: Any, hops: int, network: str = "path", method: Any = None
) -> mtcd.Run:
    return mtcd.train(
        data, model, network, method or mtcd.STCD(), mtcd.Stop(iterations=hops), metrics=()
    )


def problem_of(data: mtcd.VerticalData, loss: str = "logistic", **settings: Any) -> AdditiveProblem:
    return AdditiveProblem.of(mtcd.Trees(loss, **{**SETTINGS, **settings}), data, 0)


def plain_token_boosting(blocks: list[Any], y: Any, order: list[int]) -> tuple[Any, list[int]]:
    """Token boosting of the squared loss without parties and messages: the predictions, and the
    trees of each party.

    The draws of held-out samples are those of a training with seed 0; all else is written anew.
    """
    n, z, known, grown = len(y), np.full(len(y), y.mean()), {}, [0] * len(blocks)
    params = {
        **THEIRS,
        "objective": "none",
        "verbose": -1,
        "num_threads": 1,
        "feature_pre_filter": False,
    }
    bins = [lightgbm.Dataset(block, params=params).construct() for block in blocks]

    def tree(k: int, among: Any) -> Any:
        booster = lightgbm.Booster(params, bins[k])
        ended = booster.update(fobj=lambda scores, data: ((z - y) * among, 1.0 * among))
        return np.zeros(n) if ended else booster.predict(blocks[k], raw_score=True)

    for hop, k in enumerate(order):
        others = [gain for party, gain in known.items() if party != k]
        for place in range(8):
            held_out = stream(0, "held-out", k, 0, 0, hop, place).permutation(n) % 5 == 0
            errors, after = (z - y)[held_out], (z + tree(k, ~held_out) - y)[held_out]
            known[k] = max(0.0, float(np.mean(errors**2 - after**2)))
            if len(others) < len(blocks) - 1 or known[k] <= 0.0:
                break
            if known[k] < (0.7 if place == 0 else 1.0) * max(others):
                break
            z += tree(k, np.ones(n))
            grown[k] += 1
    return z, grown
