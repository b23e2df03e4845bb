"""Step sizes for features of any size, and those that conjugate tours choose."""

import numpy as np
import pytest

import mtcd
from mtcd.core.errors import DataError
from mtcd.methods.tours.conjugate import Conjugate
from mtcd.theory.stepsize import positive


@pytest.mark.parametrize("size", [1e-5, 1e-2, 1.0, 1e5])
def test_scaled_features_have_the_same_iterates(size: float) -> None:
    """Of features times a and l2 times a^2, theta is that of the given ones over a."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 4)), rng.standard_normal(30)

    def trained(a: float) -> np.ndarray:
        model = mtcd.Glm("ridge", l2=0.5 * a * a)
        run = mtcd.train(
            mtcd.split(a * X, y, 2), model, "path", mtcd.STCD(2), mtcd.Stop(iterations=20)
        )
        return np.asarray(run.coefficients)

    np.testing.assert_allclose(size * trained(size), trained(1.0), rtol=1e-6)


def test_any_positive_smoothness_will_do_and_no_other() -> None:
    for L in (1e-300, 0.5, 1.0, 1e300):
        assert positive(L) == L
    for L in (0.0, -1.0, np.nan):
        with pytest.raises(DataError, match="All features are 0"):
            positive(L)


def test_conjugate_tours_that_gain_nothing_go_on_with_larger_steps() -> None:
    """More independent columns than samples: the survey chooses a hundredth of 1/L, and 1/L where
    tours stay behind."""
    rng = np.random.default_rng(1)
    X, y, l2, first = rng.standard_normal((30, 90)), rng.standard_normal(30), 2.0, 1e-6
    problem = mtcd.Glm("ridge", l2=l2).problem(mtcd.split(X, y, 1))
    tours = Conjugate(3, np.zeros(30), 0.0, problem.fit, 0, first)
    gradient = -X.T @ y
    change = -2 * first * gradient
    blocks = np.split(X, 30, axis=1)  # of three columns each
    squares, norms = (
        [np.linalg.norm(block, order) ** 2 for block in blocks] for order in ("fro", 2)
    )
    spread = sum(3 * norm / square for norm, square in zip(norms, squares, strict=True))
    z = X @ change
    logs = np.log((X**2).sum(axis=0)).sum()
    survey = [30.0, 90.0, sum(squares), sum(norms), spread, logs]
    instruction = tours.end_tour(z, 0.0, 0.0, np.array([0.0, 0.0, l2 * change @ change, *survey]))
    L = float(np.sum((X @ gradient) ** 2) / (gradient @ gradient)) + l2
    assert instruction.stepsize == pytest.approx(0.01 / L, rel=1e-6)
    theta = instruction.weights[-1] * change
    np.testing.assert_allclose(z, X @ theta, rtol=1e-9)
    products = np.array([0.0, l2 * theta @ theta, 0.0, 0.0, 0.0])
    stays = tours.end_tour(z.copy(), 0.0, 0.0, products)
    assert stays.weights[-1] == 1.0
    assert stays.stepsize == pytest.approx(1.0 / L, rel=1e-6)
