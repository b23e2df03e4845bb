"""The best combination of directions: against closed forms and SciPy, for directions of any size,
alike or none."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.optimize

import mtcd
from mtcd.methods import optimal_weights as weighing
from mtcd.methods import subspace
from mtcd.methods.optimal_weights import Along, optimal_weights, without_negative
from mtcd.methods.subspace import best_weights
from mtcd.methods.tours import conjugate
from mtcd.methods.tours.anderson import best_weights as extrapolation
from mtcd.methods.tours.conjugate import mixing_weights
from mtcd.methods.tours.survey import Survey
from mtcd.models.glm.fit import LabelFit
from mtcd.models.glm.model import LinearProblem
from mtcd.models.losses import LOSSES
from problems import make_data

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


def test_a_survey_of_a_tour_that_did_not_move_chooses_nothing() -> None:
    problem = problem_of("ridge")
    still = Along.of(problem.fit, X @ THETA, [X @ THETA], np.zeros(1), np.zeros((1, 1)))
    assert Survey(2.0, 5.0, 10.0, 4.0, 3.0).choose(still, 1e-3, 1.0) is None
    moved = along(problem, directions(1))
    assert Survey(2.0, 5.0, 0.0, 4.0, 3.0).choose(moved, 1e-3, 1.0) is None


def test_the_penalty_s_curvature_has_no_negative_part() -> None:
    axes = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))[0]
    bend, expected = (
        (axes * np.array(values)) @ axes.T for values in ([-1e-3, 1.0, 2.0], [0.0, 1.0, 2.0])
    )
    np.testing.assert_allclose(without_negative(bend), expected, atol=1e-12)
    assert np.isnan(without_negative(np.full((2, 2), np.nan))).all()  # of a token that diverged


SHAPES = [mtcd.Glm("ridge", l2=0.4), mtcd.Glm("logistic", l2=0.4), mtcd.Glm("multinomial", l2=0.4)]


def shape_of(
    model: mtcd.Glm, tokens: int = 3, weighted: bool = True
) -> tuple[LinearProblem, Along, Any]:
    """A problem with weights of samples, f along changes of its parameters, and those parameters as
    a function of w."""
    problem = model.problem(make_data(model, 11, [4], seed=2, weighted=weighted))
    rng = np.random.default_rng(3)
    size = problem.client(0).initial().shape
    theta, changes = (
        rng.standard_normal(size),
        [rng.standard_normal(size) / (i + 1) for i in range(tokens)],
    )
    X, l2 = problem.blocks[0], 0.4
    slope = np.array([l2 * np.vdot(theta, d) for d in changes])
    bend = np.array([[l2 * np.vdot(d, e) for d in changes] for e in changes])
    along = Along.of(problem.fit, X @ theta, [X @ (theta + d) for d in changes], slope, bend)
    return problem, along, lambda w: theta + sum(c * d for c, d in zip(w, changes, strict=True))


@pytest.mark.parametrize("model", SHAPES, ids=lambda model: model.kind)
def test_f_along_changes_and_its_derivatives(model: mtcd.Glm) -> None:
    problem, along, at = shape_of(model)
    w, step = np.array([0.3, -0.2, 0.5]), 1e-4
    f = lambda v: problem.evaluate([at(v)])  # noqa: E731
    assert along.value(w) - along.value(0 * w) == pytest.approx(f(w) - f(0 * w))
    np.testing.assert_allclose(along.aggregate(w), problem.aggregate([at(w)]))
    sides = [(f(w + step * e) - f(w - step * e)) / (2 * step) for e in np.eye(3)]
    gradient, hessian = along.derivatives(w)
    np.testing.assert_allclose(gradient, sides, rtol=1e-6)
    np.testing.assert_allclose(along.gradient(w), sides, rtol=1e-6)
    bent = [
        (along.gradient(w + step * e) - along.gradient(w - step * e)) / (2 * step)
        for e in np.eye(3)
    ]
    changes = problem.fit.scaled(along.changes)
    cautious = 1e-3 * problem.loss.curvature * changes.T @ changes
    np.testing.assert_allclose(hessian - cautious, bent, rtol=1e-5, atol=1e-6)


def test_f_along_some_of_the_changes() -> None:
    _, along, _ = shape_of(SHAPES[1])
    some = along.among(np.array([True, False, True]))
    assert some.value(np.array([0.3, -0.2])) == pytest.approx(
        along.value(np.array([0.3, 0.0, -0.2]))
    )
    np.testing.assert_allclose(some.gradient(np.zeros(2)), along.gradient(np.zeros(3))[[0, 2]])


def check_least(
    gradient: Any, H: Any, w: Any, v: Any, low: Any, high: Any, within: float = 1e-6
) -> None:
    """Whether v is the least point of gradient.(v - w) + (v - w).H.(v - w)/2 in the box: it pushes
    outwards only."""
    assert (low <= v).all()
    assert (v <= high).all()
    push = gradient + H @ (v - w)
    assert (np.abs(push[(low < v) & (v < high)]) < within).all()
    assert (push[v == low] > -within).all()
    assert (push[v == high] < within).all()


COUPLED = np.array([[4.0, 1.9, 0.2], [1.9, 1.0, 0.1], [0.2, 0.1, 0.5]])


@pytest.mark.parametrize("most", [100.0, 1.0, 0.3])
def test_the_least_point_of_a_quadratic_in_a_box(most: float) -> None:
    w, gradient = np.array([0.1, -0.2, 0.05]), np.array([-1.0, 0.5, 2.0])
    low, high = np.array([-most, -most / 2, -most]), np.array([most / 2, most, most])
    found = weighing._lowest(gradient, COUPLED, w, (low, high))
    check_least(gradient, COUPLED, w, found, low, high)
    if most == 100.0:
        np.testing.assert_allclose(found, w - np.linalg.solve(COUPLED, gradient), rtol=1e-6)


def test_a_direction_without_curvature_or_change_has_no_weight() -> None:
    H, gradient = np.diag([2.0, 0.0]), np.array([-1.0, 0.0])
    box = np.full(2, -100.0), np.full(2, 100.0)
    np.testing.assert_allclose(weighing._lowest(gradient, H, np.zeros(2), box), [0.5, 0.0])
    alike = weighing._lowest(np.array([-1.0, -1.0]), np.ones((2, 2)), np.zeros(2), box)
    np.testing.assert_allclose(alike, [0.5, 0.5], rtol=1e-6)


@pytest.mark.parametrize("most", [100.0, 0.4])
def test_sweeps_over_the_coordinates_end_at_the_least_point(most: float) -> None:
    start, gradient = np.array([0.1, -0.2, 0.05]), np.array([-1.0, 0.5, 2.0])
    low, high = np.array([-most, -most / 2, -most]), np.array([most / 2, most, most])
    found = weighing._descend(gradient, COUPLED, start, np.array([0.0, 0.2, -0.1]), (low, high))
    check_least(gradient, COUPLED, start, found, low, high, 1e-4)
    still = weighing._descend(
        np.zeros(2), np.eye(2), np.zeros(2), np.zeros(2), (-np.ones(2), np.ones(2))
    )
    assert still.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("most", [100.0, 0.4])
def test_where_the_solver_ends_early_the_sweeps_go_on(
    most: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = SimpleNamespace(status=weighing.ENDS_EARLY, x=np.zeros(3))
    monkeypatch.setattr(scipy.optimize, "lsq_linear", lambda *given, **how: ended)
    w, gradient = np.array([0.1, -0.2, 0.05]), np.array([-1.0, 0.5, 2.0])
    low, high = np.array([-most, -most / 2, -most]), np.array([most / 2, most, most])
    check_least(
        gradient, COUPLED, w, weighing._lowest(gradient, COUPLED, w, (low, high)), low, high, 1e-4
    )


def test_a_step_is_halved_until_f_falls() -> None:
    """f is w^2 from w = 1: a step to -3 rises, to -1 stays, to 0 falls."""
    f = lambda w: float(w @ w)  # noqa: E731
    one, step = np.ones(1), np.array([-4.0])
    assert weighing._shortened(f, one, step, 1.0, -8.0) == (np.zeros(1), 0.0)
    assert weighing._shortened(f, one, step / 4, 1.0, -2.0) == (np.zeros(1), 0.0)
    assert weighing._shortened(f, one, -step, 1.0, -8.0) is None
    assert weighing._shortened(lambda w: 1.0, one, step, 1.0, 0.0) is None, "a step has to lower f"
    asked: list[float] = []
    assert (
        weighing._shortened(lambda w: asked.append(float(w[0])) or 2.0, 0 * one, one, 1.0, -1.0)
        is None
    )
    assert asked == [0.5**n for n in range(12)]


def test_no_weights_where_numbers_are_spoilt_or_f_does_not_fall() -> None:
    problem, along, _ = shape_of(SHAPES[1])
    assert optimal_weights(along, None).any()
    for spoilt in (np.nan, np.inf):
        for ends, slope, bend in (
            ([np.full(11, spoilt), along.start], np.zeros(2), np.zeros((2, 2))),
            ([along.start + 1.0, along.start], np.array([0.0, spoilt]), np.zeros((2, 2))),
            ([along.start + 1.0, along.start], np.zeros(2), np.full((2, 2), spoilt)),
        ):
            with np.errstate(invalid="ignore"):
                shape = Along.of(problem.fit, along.start, ends, slope, bend)
                assert optimal_weights(shape, None).tolist() == [0.0, 0.0]
    unseen = Along(problem.fit, along.start, along.changes * 1e-25, np.zeros(3), np.zeros((3, 3)))
    assert optimal_weights(unseen, None).tolist() == [0.0] * 3


@pytest.mark.parametrize("model", SHAPES, ids=lambda model: model.kind)
def test_coordinates_of_a_subspace_are_f_itself(
    model: mtcd.Glm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its value is f, penalty included; no second derivative is above 1, and for squared loss all
    are 1."""
    problem, _, at = shape_of(model)
    theta, changes = at([0, 0, 0]), [at(e) - at([0, 0, 0]) for e in np.eye(3)]
    known = [theta, *changes]
    gram = np.array([[0.4 * np.vdot(a, b) for a in known] for b in known])
    spaces: list[subspace.Subspace] = []
    lowest = subspace._lowest
    monkeypatch.setattr(subspace, "_lowest", lambda space: spaces.append(space) or lowest(space))
    X = problem.blocks[0]
    w = subspace.best_weights(problem.fit, X @ theta, [X @ d for d in changes], gram)
    f = lambda u: spaces[0].value(u)  # noqa: E731
    assert f(np.zeros(3)) == pytest.approx(problem.evaluate([theta]))
    assert f(lowest(spaces[0])) == pytest.approx(problem.evaluate([at(w)]))
    h = 1e-4
    bend = [(f(h * e) - 2 * f(0 * e) + f(-h * e)) / h**2 for e in np.eye(3)]
    assert max(bend) < 1 + 1e-5
    if model.kind == "ridge":
        assert bend == pytest.approx([1.0] * 3, rel=1e-5)
        step, promised = spaces[0].newton_step(np.zeros(3))
        np.testing.assert_allclose(step, lowest(spaces[0]), rtol=1e-6)
        assert promised == pytest.approx(2 * (f(np.zeros(3)) - f(step)))


def test_a_start_that_may_be_drift_is_so_by_the_size_of_the_token() -> None:
    """Differences count above 1e-7 of the largest number of the token after the tour, its change
    above 1e-12."""
    rng = np.random.default_rng(1)
    fit = LabelFit(LOSSES["ridge"](), 1e4 * rng.standard_normal(8))
    start, earlier, change = (v / np.abs(v).max() for v in rng.standard_normal((3, 8)))
    start *= 1024.0

    def weights(first: np.ndarray, last: np.ndarray) -> list[float]:
        return list(
            mixing_weights(
                Along(fit, start, np.stack([first, last], axis=1), np.zeros(2), np.zeros((2, 2)))
            )
        )

    back = -0.75 * start  # the largest number is 256 then
    for share, counts in ((0.5e-7, False), (1e-7, False), (2e-7, True)):
        found = weights(256.0 * share * earlier, back)
        assert (found[0] != 0.0) == counts
        assert found[1] not in (0.0, 1.0)
    assert weights(earlier, 1024.0 * 0.5e-12 * change) == [0.0, 1.0]
    assert weights(earlier, 1024.0 * 2e-12 * change)[0] != 0.0


def test_a_mix_has_to_lower_f(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where all samples are beyond their margin f is 0, at the end of the tour and at other weights
    alike."""
    fit = LabelFit(LOSSES["squared-hinge"](), np.ones(3))
    along = Along(fit, np.zeros(3), np.full((3, 1), 4.0), np.zeros(1), np.zeros((1, 1)))
    monkeypatch.setattr(conjugate, "optimal_weights", lambda along, most: np.array([0.5]))
    assert along.value(np.array([0.5])) == along.value(np.ones(1)) == 0.0
    assert conjugate.mixing_weights(along).tolist() == [1.0]
    weaker = Along(fit, np.zeros(3), np.full((3, 1), 0.1), np.zeros(1), np.zeros((1, 1)))
    monkeypatch.setattr(conjugate, "optimal_weights", lambda along, most: np.array([5.0]))
    assert conjugate.mixing_weights(weaker).tolist() == [5.0]
