"""The noise of ``benchmarks.dp`` against independent computations."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.dp import clipped, deviation, trained
from scipy.integrate import quad
from scipy.stats import norm


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0, 8.0])
def test_the_noise_spends_exactly_the_budget(epsilon: float) -> None:
    """delta is the integral of how much likelier an outcome is than exp(epsilon) times that of the neighbour."""
    sigma = deviation(epsilon)

    def excess(x: float) -> float:
        return max(0.0, norm.pdf(x, 1, sigma) - np.exp(epsilon) * norm.pdf(x, 0, sigma))

    assert quad(excess, -20 * sigma, 20 * sigma + 1, limit=500)[0] == pytest.approx(1e-5, rel=1e-2)


def test_one_row_moves_the_gradients_by_no_more_than_is_accounted_for() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        blocks = [clipped(3 * rng.standard_normal((6, d))) for d in (2, 3, 4)]
        theta = [10 * rng.standard_normal(X.shape[1]) for X, _ in blocks]
        y = rng.integers(0, 2, 6).astype(float)
        changed = [X.copy() for X, _ in blocks]
        changed[1][2] = clipped(9 * rng.standard_normal((1, 3)))[0]

        def gradients(X: list[np.ndarray], theta: list[np.ndarray] = theta, y: np.ndarray = y) -> list[np.ndarray]:
            z = sum(x @ w for x, w in zip(X, theta, strict=True))
            return [x.T @ (1 / (1 + np.exp(-z)) - y) for x in X]

        pairs = zip(gradients([X for X, _ in blocks]), gradients(changed), (1, 2, 1), blocks, strict=True)
        for one, two, times, (_, longest) in pairs:
            assert np.linalg.norm(one - two) <= times * longest + 1e-12


def test_without_noise_it_descends_to_a_model_that_tells_the_classes_apart() -> None:
    rng = np.random.default_rng(1)
    X = [rng.standard_normal((400, 3)) for _ in range(2)]
    y = (X[0][:, 0] + X[1][:, 0] > 0).astype(float)
    theta = trained(X, y, 0.0, rng)
    assert np.corrcoef(X[0] @ theta[0] + X[1] @ theta[1], y)[0, 1] > 0.7
