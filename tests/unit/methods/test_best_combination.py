"""The best combination of directions: against closed forms and SciPy, for directions of any size,
alike or none."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import scipy.optimize

import mtcd
from mtcd.methods.optimal_weights import Along, optimal_weights
from mtcd.methods.subspace import best_weights
from mtcd.methods.tours.anderson import best_weights as extrapolation
from mtcd.methods.tours.conjugate import mixing_weights
from mtcd.methods.tours.survey import Survey
from mtcd.models.glm.model import LinearProblem

N, D, L2 = 40, 5, 0.3
RNG = np.random.default_rng(11)
X = RNG.standard_normal((N, D))
SCORES = X @ RNG.standard_normal(D) + RNG.standard_normal(N)
THETA = RNG.standard_normal(D) / 3
KINDS = ["ridge", "logistic", "huber", "squared-hinge"]


def problem_of(kind: str) -> LinearProblem:
    labels = SCORES if kind in ("ridge", "huber") else SCORES > 0
    problem = mtcd.Glm(kind, l2=L2).problem(mtcd.split(X, labels, 1))
    assert isinstance(problem, LinearProblem)
    return problem


def directions(count: int) -> np.ndarray:
    return (
        np.random.default_rng(count).standard_normal((count, D))
        * 10.0 ** -np.arange(count)[:, None]
    )


def lowest(f: Callable[[np.ndarray], float], V: np.ndarray) -> float:
    """The minimum of f over theta + the span of the rows of V, by SciPy."""
    scaled = V / np.linalg.norm(V, axis=1)[:, None]
    found = scipy.optimize.minimize(
        lambda w: f(THETA + w @ scaled), np.zeros(len(V)), method="BFGS", tol=1e-10
    )
    return float(found.fun)


def weights_in_subspace(problem: LinearProblem, V: np.ndarray) -> np.ndarray:
    known = np.vstack([THETA, V])
    return best_weights(problem.fit, X @ THETA, [X @ v for v in V], L2 * known @ known.T)


def along(problem: LinearProblem, V: np.ndarray) -> Along:
    return Along.of(
        problem.fit, X @ THETA, [X @ (THETA + v) for v in V], L2 * V @ THETA, L2 * V @ V.T
    )


def optimal(problem: LinearProblem, V: np.ndarray) -> np.ndarray:
    return optimal_weights(along(problem, V), np.full(len(V), 1e4))


def mixing(problem: LinearProblem, V: np.ndarray) -> np.ndarray:
    return mixing_weights(along(problem, V[::-1] * 0.1))[::-1] * 0.1


FINDERS = pytest.mark.parametrize("find", [weights_in_subspace, optimal, mixing])


@FINDERS
@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_f_is_least_there(
    kind: str, count: int, find: Callable[[LinearProblem, np.ndarray], np.ndarray]
) -> None:
    problem, V = (
        problem_of(kind),
        directions(count) if count < 3 else directions(count) * [[1.0], [10.0], [100.0]],
    )
    f = lambda theta: problem.evaluate([theta])  # noqa: E731
    w = find(problem, V)
    best, before = lowest(f, V), f(THETA)
    assert before - best > 1e-3 * before
    assert f(THETA + w @ V) <= best + 1e-6 * (before - best)


def least_squares(problem: LinearProblem, V: np.ndarray) -> np.ndarray:
    """The best weights of these directions for ridge, by NumPy."""
    stacked, target = (
        np.vstack([X, np.sqrt(L2) * np.eye(D)]),
        np.append(problem.labels, np.zeros(D)),
    )
    weights: np.ndarray = np.linalg.lstsq(stacked @ V.T, target - stacked @ THETA)[0]
    return weights


@FINDERS
def test_for_squared_loss_the_weights_are_those_of_least_squares(
    find: Callable[[LinearProblem, np.ndarray], np.ndarray],
) -> None:
    problem, V = problem_of("ridge"), directions(2)
    exact = least_squares(problem, V)
    np.testing.assert_allclose(find(problem, V), exact, rtol=1e-6)


@pytest.mark.parametrize("find", [weights_in_subspace, optimal])
def test_directions_that_are_alike_or_zero_do_no_harm(
    find: Callable[[LinearProblem, np.ndarray], np.ndarray],
) -> None:
    problem, one = problem_of("ridge"), directions(1)
    exact = least_squares(problem, one)
    w = find(problem, np.vstack([one, one, np.zeros(D)]))
    assert w[0] + w[1] == pytest.approx(exact[0], rel=1e-5)
    assert np.abs(w).max() < 2 * abs(exact[0])
    nearly = np.vstack([one, one * (1 + 1e-9)])
    assert find(problem, nearly).sum() == pytest.approx(exact[0], rel=1e-4)


@pytest.mark.parametrize("size", [1e-120, 1e-8, 1e8, 1e120])
def test_directions_of_any_size_span_the_same(size: float) -> None:
    problem, V = problem_of("logistic"), directions(2)
    wanted = weights_in_subspace(problem, V)
    np.testing.assert_allclose(weights_in_subspace(problem, V * size) * size, wanted, rtol=1e-6)


def test_at_the_minimum_there_is_no_step_and_no_directions_are_no_step() -> None:
    problem = problem_of("ridge")
    there = np.linalg.solve(X.T @ X + L2 * np.eye(D), X.T @ problem.labels)
    V = directions(2)
    known = np.vstack([there, V])
    assert not best_weights(problem.fit, X @ there, [X @ v for v in V], L2 * known @ known.T).any()
    for spoilt in (np.inf, np.nan):
        products = [np.full(N, spoilt), X @ V[0]]
        assert not best_weights(problem.fit, X @ THETA, products, np.eye(3)).any()
    zero = best_weights(problem.fit, X @ THETA, [np.zeros(N)], np.zeros((2, 2)))
    assert zero.tolist() == [0.0]


def test_a_small_gain_counts_and_one_within_rounding_does_not() -> None:
    """A step that lowers f by a share of 1e-9 is taken; of 1e-15 it is not."""
    problem = problem_of("ridge")
    there = np.linalg.solve(X.T @ X + L2 * np.eye(D), X.T @ problem.labels)
    direction = directions(1)[0]
    least = problem.evaluate([there])
    curvature = float(np.sum((X @ direction) ** 2) + L2 * direction @ direction)
    for share, taken in ((1e-9, True), (1e-15, False)):
        off = there + direction * np.sqrt(2 * share * least / curvature)
        known = np.vstack([off, direction])
        w = best_weights(problem.fit, X @ off, [X @ direction], L2 * known @ known.T)
        assert w.any() == taken


def test_weights_stay_within_their_bounds() -> None:
    problem, V = problem_of("ridge"), directions(1)
    unbounded = optimal(problem, V)[0]
    shape = along(problem, V * np.sign(unbounded))
    for most in (abs(unbounded) / 2, abs(unbounded) / 3):
        assert optimal_weights(shape, most)[0] == pytest.approx(most)
        assert optimal_weights(shape, np.array([most]))[0] == pytest.approx(most)
    against = along(problem, -V * np.sign(unbounded))
    assert optimal_weights(against, abs(unbounded))[0] == 0.0  # 0 is the least of a single number
    assert optimal_weights(against, np.array([abs(unbounded) / 2]))[0] == pytest.approx(
        -abs(unbounded) / 2
    )
    tiny = along(problem, V * 1e-4)
    # the largest weight unless told
    assert abs(optimal_weights(tiny, None)[0]) == pytest.approx(100.0)


def test_a_tour_whose_change_is_rounding_or_gains_nothing_ends_where_it_is() -> None:
    problem = problem_of("ridge")
    there = np.linalg.solve(X.T @ X + L2 * np.eye(D), X.T @ problem.labels)

    def at(theta: np.ndarray, V: np.ndarray) -> np.ndarray:
        shape = Along.of(
            problem.fit, X @ theta, [X @ (theta + v) for v in V], L2 * V @ theta, L2 * V @ V.T
        )
        return mixing_weights(shape)

    small = directions(1)[0] / np.abs(X @ directions(1)[0]).max() * np.abs(X @ THETA).max()
    assert at(THETA, small[None] * 1e-13).tolist() == [1.0]
    assert at(THETA, small[None] * 1e-9)[0] not in (0.0, 1.0)
    V = directions(2)
    # an earlier start that may be this one but for drift
    drift = at(THETA, np.vstack([1e-8 * small, V[0]]))
    assert drift[0] == 0.0
    assert drift[1] == pytest.approx(at(THETA, V[:1])[0])
    assert at(THETA, np.vstack([V[0], 1e-13 * small])).tolist() == [0.0, 1.0]
    assert at(THETA, np.vstack([1e-5 * small, V[0]]))[0] != 0.0
    np.testing.assert_allclose(at(there, V), 0.0, atol=1e-6)  # back to the minimum
    # nothing more to gain
    assert at(there - 1e-7 * V[1], np.vstack([V[0], 1e-7 * V[1]])).tolist() == [0.0, 1.0]


@pytest.mark.parametrize("count", [2, 4])
def test_an_extrapolation_makes_the_combined_residual_least(count: int) -> None:
    residuals = list(np.random.default_rng(count).standard_normal((count, N)))
    R = np.array(residuals)
    ones = np.linalg.solve(R @ R.T, np.ones(count))  # Lagrange: R R^T c is constant
    np.testing.assert_allclose(extrapolation(residuals), ones / ones.sum(), rtol=1e-6)
    assert extrapolation(residuals[:1]) == (1.0,)
    alike = extrapolation([residuals[0] * (1 + 1e-10), residuals[0]])
    assert max(map(abs, alike)) <= 5e5  # weights are damped


def surveyed(
    X: np.ndarray, clients: int, first: float = 1e-6, l2: float = 0.0
) -> tuple[tuple[float, float, int], float]:
    """What a survey of these columns chooses, and L: the curvature of f along its gradient."""
    y = np.random.default_rng(0).standard_normal(len(X))
    problem = mtcd.Glm("ridge", l2=l2).problem(mtcd.split(X, y, 1))
    gradient, first = X.T @ -y, 1e-6
    step = -2 * first * gradient  # two updates of every client
    shape = Along.of(
        problem.fit, np.zeros(len(X)), [X @ step], np.zeros(1), np.array([[l2 * step @ step]])
    )
    blocks = np.array_split(X, clients, axis=1)
    squares, norms = (
        [np.linalg.norm(block, order) ** 2 for block in blocks] for order in ("fro", 2)
    )
    spread = sum(b.shape[1] * n / s for b, n, s in zip(blocks, norms, squares, strict=True))
    survey = Survey(clients, X.shape[1], sum(squares), sum(norms), spread)
    found = survey.choose(shape, first, problem.loss.curvature)
    assert found is not None
    direction = gradient / np.linalg.norm(gradient)
    return found, float(np.sum((X @ direction) ** 2)) + l2


@pytest.mark.parametrize("l2", [0.0, 5.0])
@pytest.mark.parametrize(
    ("kind", "features", "factor", "depth"),
    [
        ("independent", 40, 3.0, 10),
        ("independent", 400, 0.01, 10),
        ("common", 40, 1.0, 20),
        ("common", 400, 0.1, 20),
        ("within", 40, 30.0, 20),
        ("within", 400, 30.0, 20),
    ],
)
def test_the_step_that_a_survey_chooses(
    kind: str, features: int, factor: float, depth: int, l2: float
) -> None:
    rng = np.random.default_rng(7)
    table, clients = rng.standard_normal((200, features)), 8
    if kind == "common":
        table += 3.0 * rng.standard_normal((200, 1))
    if kind == "within":
        table += 3.0 * np.repeat(rng.standard_normal((200, clients)), features // clients, axis=1)
    (step, plain, stored), L = surveyed(table, clients, l2)
    assert step / plain == pytest.approx(factor)
    assert stored == depth
    assert plain == pytest.approx(1 / L, rel=1e-6)


@pytest.mark.parametrize("features", [50, 200, 800])
def test_columns_are_related_where_the_gradient_sees_twice_what_it_could_of_independent_ones(
    features: int,
) -> None:
    rng = np.random.default_rng(9)
    independent, labels = (
        rng.standard_normal((200, features)),
        np.random.default_rng(0).standard_normal((200, 1)),
    )
    common = rng.standard_normal((200, 1)) + labels  # so that the gradient sees it
    largest = np.linalg.norm(independent, 2) ** 2 / (independent**2).sum()
    found, ratios = [], []
    for share in np.geomspace(0.02, 4.0, 30):
        table = independent + share * common
        (_, _, depth), L = surveyed(table, 5, 0.0)
        ratio = L / (largest * (table**2).sum())
        ratios.append(ratio)
        if not 1.8 < ratio < 2.2:  # far enough from the limit
            found.append((ratio > 2, depth == 20))
    assert all(related == many for related, many in found)
    assert ratios[0] < 1
    assert ratios[-1] > 3
    assert any(1.3 < ratio < 1.8 for ratio in ratios)


def test_a_survey_of_a_tour_that_did_not_move_chooses_nothing() -> None:
    problem = problem_of("ridge")
    still = Along.of(problem.fit, X @ THETA, [X @ THETA], np.zeros(1), np.zeros((1, 1)))
    assert Survey(2.0, 5.0, 10.0, 4.0, 3.0).choose(still, 1e-3, 1.0) is None
    moved = along(problem, directions(1))
    assert Survey(2.0, 5.0, 0.0, 4.0, 3.0).choose(moved, 1e-3, 1.0) is None
