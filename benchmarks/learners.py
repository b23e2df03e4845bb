"""`python -m benchmarks.learners`: one tree at a starting margin, by three learners. CPU seconds of
one thread.

A visit of a token brings gradients and second derivatives at Z; columns are binned once, before.
XGBoost is measured where it is installed (`pip install xgboost-cpu`). Scikit-learn's histogram
trees bin at every fit, and take a gradient only as the target of a weighted least-squares fit.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Callable, Sequence
from time import process_time
from typing import Any

import numpy as np

SIZES = ((3_700, 19), (50_000, 20), (500_000, 20))
VISITS = 10
Visit = Callable[[Any, Any], tuple[Any, int]]
"""From gradient and second derivative to the margins of the new tree, and its bytes."""


def lightgbm_visits(X: Any) -> Visit:
    """LightGBM: a Booster per visit on one Dataset."""
    from mtcd.models.trees.boosting import Learner

    settings = {"learning_rate": 0.1, "max_depth": 4, "num_leaves": 15, "lambda_l2": 1.0}
    learner = Learner(X, (), 1, settings)

    def visit(gradient: Any, hessian: Any) -> tuple[Any, int]:
        grown = learner.grow(gradient, hessian, 1)
        assert grown is not None
        return grown.margins(), len(grown.text)

    return visit


def xgboost_visits(X: Any) -> Visit:
    """XGBoost: a Booster per visit on one QuantileDMatrix."""
    import xgboost

    bins = xgboost.QuantileDMatrix(X, label=np.zeros(len(X)), nthread=1)
    settings = {
        "tree_method": "hist",
        "max_depth": 4,
        "eta": 0.1,
        "nthread": 1,
        "base_score": 0.0,
        "lambda": 1.0,
    }

    def visit(gradient: Any, hessian: Any) -> tuple[Any, int]:
        booster = xgboost.Booster(settings, [bins])
        booster.update(bins, 0, fobj=lambda scores, given: (gradient, hessian))
        return booster.predict(bins, output_margin=True), len(booster.save_raw("ubj"))

    return visit


def sklearn_visits(X: Any) -> Visit:
    """Scikit-learn: a new fit per visit."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    def visit(gradient: Any, hessian: Any) -> tuple[Any, int]:
        model = HistGradientBoostingRegressor(
            max_iter=1, max_depth=4, learning_rate=0.1, early_stopping=False
        )
        model.fit(X, -gradient / np.maximum(hessian, 1e-3), sample_weight=hessian)
        return model.predict(X), 0

    return visit


def measured(make: Callable[[Any], Visit], X: Any, y: Any) -> tuple[float, float, int]:
    """CPU seconds to bin, and of a visit; bytes of a tree."""
    began = process_time()
    visit = make(X)
    ready = process_time()
    z, size = np.zeros(len(y)), 0
    for _ in range(VISITS):
        p = 1.0 / (1.0 + np.exp(-z))
        margins, size = visit(p - y, p * (1.0 - p))
        z = z + margins
    return ready - began, (process_time() - ready) / VISITS, size


LEARNERS = {"lightgbm": lightgbm_visits, "xgboost": xgboost_visits, "sklearn": sklearn_visits}


def show(learner: str) -> None:
    """Print the rows of one learner."""
    for samples, columns in SIZES:
        rng = np.random.default_rng(0)
        X = rng.standard_normal((samples, columns))
        y = (X[:, 0] * X[:, 1] + X[:, 2] + rng.standard_normal(samples) > 0).astype(float)
        measured(LEARNERS[learner], X[:200], y[:200])  # imports, and what is done once
        bins, visit, size = measured(LEARNERS[learner], X, y)
        print(
            f"{learner:13} {samples:8,} {columns:8} {bins:8.3f} {1e3 * visit:10.2f} "
            f"{size or '-':>6}",
            flush=True,
        )


def main(given: Sequence[str]) -> None:
    """Print a table. Each learner has a process of its own, so that none inherits what another has
    loaded."""
    if given:
        show(given[0])
        return
    print(
        f"{'learner':13} {'samples':>8} {'columns':>8} {'bins, s':>8} {'visit, ms':>10} "
        f"{'bytes':>6}",
        flush=True,
    )
    for name in LEARNERS:
        if importlib.util.find_spec(name) is not None:
            subprocess.run([sys.executable, "-m", "benchmarks.learners", name], check=True)


if __name__ == "__main__":
    main(sys.argv[1:])
