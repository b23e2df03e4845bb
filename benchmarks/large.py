"""Logistic regression on a large table against scikit-learn's lbfgs: ``python -m benchmarks.large
[--rows N]``.

CPU seconds to the objective at which lbfgs stops, in one process with one BLAS thread: set
OPENBLAS_NUM_THREADS=1.
"""

from __future__ import annotations

import argparse
from time import process_time

import numpy as np
from sklearn.linear_model import LogisticRegression

import mtcd

ROWS, COLUMNS = 1_000_000, 200
CLIENTS = (2, 8, 20)
L2 = 1.0


class UntilAsGood(mtcd.Callback):
    """Ends a training at this objective."""

    def __init__(self, objective: float) -> None:
        self.objective = objective

    def on_measure(self, moment: mtcd.Moment) -> None:
        if moment.measurement.objective <= self.objective:
            moment.stop("as good as lbfgs")


def made(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Related columns, and labels that depend on all of them."""
    rng = np.random.default_rng(0)
    X = np.empty((rows, COLUMNS), order="F")
    common = rng.standard_normal((rows, 10))
    for j in range(COLUMNS):
        X[:, j] = rng.standard_normal(rows) + 0.5 * common[:, j % 10]
    scores = X @ (rng.standard_normal(COLUMNS) * 0.15)
    return X, (rng.random(rows) < 1.0 / (1.0 + np.exp(-scores))).astype(float)


def main(rows: int = ROWS) -> None:
    """A line for lbfgs, and one for each number of clients and local solver."""
    X, y = made(rows)
    start = process_time()
    theirs = LogisticRegression(C=1.0 / L2, fit_intercept=False, max_iter=1000).fit(X, y)
    floor, theta = process_time() - start, theirs.coef_[0]
    z = X @ theta
    objective = float(np.logaddexp(0.0, z).sum() - y @ z + L2 / 2 * theta @ theta)
    print(
        f"{rows:,} x {COLUMNS}: lbfgs {floor:6.1f} CPU s, {theirs.n_iter_[0]} iterations, "
        f"objective {objective:.3f}"
    )
    for clients in CLIENTS:
        for solver in ("majorise", "gradient"):
            start = process_time()
            data = mtcd.split(X, y, clients=clients)
            split = process_time() - start
            method = mtcd.STCD(walk="tour", acceleration="conjugate", local_solver=solver)
            stop, until = mtcd.Stop(iterations=2000), [UntilAsGood(objective)]
            run = mtcd.train(
                data, mtcd.Glm("logistic", l2=L2), "path", method, stop, metrics=(), callbacks=until
            )
            taken = process_time() - start
            print(
                f"  {clients:3} clients, {solver:8}: {taken:5.1f} CPU s, split {split:.1f}, ratio "
                f"{taken / floor:.2f}, "
                f"{run.final.iteration} hops, objective {run.objective:.3f}"
            )


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, default=ROWS)
    main(options.parse_args().rows)
