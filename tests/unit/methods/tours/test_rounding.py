"""Rounding: what the home client knows of it, and that no training is spoiled by it."""

import numpy as np
import pytest

import mtcd
from mtcd.methods.mtcd.mtcd import STCD
from mtcd.methods.tours.rounding import HOPS, UNIT, Rounding


def test_the_covariance_is_that_of_the_combinations() -> None:
    """Against the same errors kept one by one, as rows of coefficients of independent ones."""
    rng = np.random.default_rng(0)
    start = rng.standard_normal(6)
    rounding = Rounding(start, unit=2.0**-24)
    sizes: list[float] = []
    starts = [np.zeros(0)]
    for _ in range(5):
        end = start + rng.standard_normal(6)
        fresh = rounding.fresh(start, end)
        sizes.append(fresh)
        starts = [np.append(one, 0.0) for one in starts]
        change = np.zeros(len(sizes))
        change[-1] = 1.0

        differences = [one - starts[-1] for one in starts[:-1]] + [change]
        exact = [[a @ (np.array(sizes) * b) for a in differences] for b in differences]
        np.testing.assert_allclose(rounding.of_changes(fresh), exact, rtol=1e-9, atol=1e-25)

        w = rng.standard_normal(len(starts))
        new = starts[-1] + sum(c * way for c, way in zip(w, differences, strict=True))
        starts = [*starts, new][-3:]
        rounding.add(w, fresh, 2.0, keep=3)
        start = start + rng.standard_normal(6)


def test_a_tour_adds_rounding_of_doubles_and_of_the_changes_of_a_transport() -> None:
    start, end = np.array([3.0, 0.0]), np.array([3.0, 4.0])
    doubles = HOPS / 3 * UNIT**2 * 25.0
    assert Rounding(start).fresh(start, end) == pytest.approx(doubles, rel=1e-12)
    changes = HOPS / 3 * 1e-8 * (9.0 + 16.0)
    assert Rounding(start, 1e-4).fresh(start, end) == pytest.approx(doubles + changes, rel=1e-12)


@pytest.mark.parametrize("alpha", [0.1, 1.0])
def test_tours_beyond_what_rounding_allows_spoil_nothing(alpha: float) -> None:
    """Without the account of rounding token and models drift apart here once the gap is small, to
    one of 1e-2: weights of thousands enlarge what single precision has left."""
    rng = np.random.default_rng(1)
    samples, columns = 100, 40
    factors = rng.standard_normal((samples, 5)) @ rng.standard_normal((5, columns))
    X = factors + 0.5 * rng.standard_normal((samples, columns))
    y = X @ (rng.standard_normal(columns) / np.sqrt(columns) / X.std(0))
    data = mtcd.split(X, y + 0.1 * rng.standard_normal(samples), clients=8)
    method = STCD(
        walk="tour", acceleration="conjugate", local_solver="majorise", transport="delta32"
    )
    stop = mtcd.Stop(gap=1e-14, iterations=900)
    run = mtcd.train(data, mtcd.Glm("ridge", alpha=alpha), "path", method, stop)
    assert run.final.gap is not None
    assert abs(run.final.gap) < 1e-8
