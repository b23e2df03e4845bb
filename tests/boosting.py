"""Data and references for the tests of trees."""

from __future__ import annotations

from typing import Any

import lightgbm
import numpy as np

import mtcd
from mtcd.families.problem import AdditiveProblem

SETTINGS = {"learning_rate": 0.2, "depth": 4, "leaves": 8, "l2": 1.0, "min_samples": 5}
THEIRS = {"learning_rate": 0.2, "max_depth": 4, "num_leaves": 8, "lambda_l2": 1.0, "min_data_in_leaf": 5}


def samples(kind: str, n: int = 240, d: int = 6, seed: int = 0) -> tuple[Any, Any]:
    """Features with an interaction, and labels of this kind: values, classes, classes3 or counts."""
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
    X: Any, y: Any, objective: str, rounds: int, categories: Any = "auto", weights: Any = None, **more: Any
) -> Any:
    """LightGBM's own boosting on the joint table."""
    fixed = {"verbose": -1, "deterministic": True, "force_col_wise": True, "num_threads": 1}
    params = {**THEIRS, **fixed, "objective": objective, **more}
    return lightgbm.train(params, lightgbm.Dataset(X, y, weight=weights, categorical_feature=categories), rounds)


def trained(data: mtcd.VerticalData, model: Any, hops: int, network: str = "path", method: Any = None) -> mtcd.Run:
    return mtcd.train(data, model, network, method or mtcd.STCD(), mtcd.Stop(iterations=hops), metrics=())


def problem_of(data: mtcd.VerticalData, loss: str = "logistic", **settings: Any) -> AdditiveProblem:
    return AdditiveProblem.of(mtcd.Trees(loss, **{**SETTINGS, **settings}), data, 0)
