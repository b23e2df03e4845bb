"""The parts of the best combination: derivatives, minima in a box, steps that are halved, and what
a survey decides."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.optimize

import mtcd
from mtcd.methods import optimal_weights as optimal
from mtcd.methods import subspace
from mtcd.methods.optimal_weights import Along, optimal_weights
from mtcd.methods.tours import conjugate
from mtcd.methods.tours.conjugate import mixing_weights
from mtcd.methods.tours.survey import SOLVED, Survey
from mtcd.models.glm.fit import LabelFit
from mtcd.models.glm.model import LinearProblem
from mtcd.models.losses import LOSSES
from problems import make_data

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
    found = optimal._lowest(gradient, COUPLED, w, (low, high))
    check_least(gradient, COUPLED, w, found, low, high)
    if most == 100.0:
        np.testing.assert_allclose(found, w - np.linalg.solve(COUPLED, gradient), rtol=1e-6)


def test_a_direction_without_curvature_or_change_has_no_weight() -> None:
    H, gradient = np.diag([2.0, 0.0]), np.array([-1.0, 0.0])
    box = np.full(2, -100.0), np.full(2, 100.0)
    np.testing.assert_allclose(optimal._lowest(gradient, H, np.zeros(2), box), [0.5, 0.0])
    alike = optimal._lowest(np.array([-1.0, -1.0]), np.ones((2, 2)), np.zeros(2), box)
    np.testing.assert_allclose(alike, [0.5, 0.5], rtol=1e-6)


@pytest.mark.parametrize("most", [100.0, 0.4])
def test_sweeps_over_the_coordinates_end_at_the_least_point(most: float) -> None:
    start, gradient = np.array([0.1, -0.2, 0.05]), np.array([-1.0, 0.5, 2.0])
    low, high = np.array([-most, -most / 2, -most]), np.array([most / 2, most, most])
    found = optimal._descend(gradient, COUPLED, start, np.array([0.0, 0.2, -0.1]), (low, high))
    check_least(gradient, COUPLED, start, found, low, high, 1e-4)
    still = optimal._descend(
        np.zeros(2), np.eye(2), np.zeros(2), np.zeros(2), (-np.ones(2), np.ones(2))
    )
    assert still.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("most", [100.0, 0.4])
def test_where_the_solver_ends_early_the_sweeps_go_on(
    most: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = SimpleNamespace(status=optimal.ENDS_EARLY, x=np.zeros(3))
    monkeypatch.setattr(scipy.optimize, "lsq_linear", lambda *given, **how: ended)
    w, gradient = np.array([0.1, -0.2, 0.05]), np.array([-1.0, 0.5, 2.0])
    low, high = np.array([-most, -most / 2, -most]), np.array([most / 2, most, most])
    check_least(
        gradient, COUPLED, w, optimal._lowest(gradient, COUPLED, w, (low, high)), low, high, 1e-4
    )


def test_a_step_is_halved_until_f_falls() -> None:
    """f is w^2 from w = 1: a step to -3 rises, to -1 stays, to 0 falls."""
    f = lambda w: float(w @ w)  # noqa: E731
    one, step = np.ones(1), np.array([-4.0])
    assert optimal._shortened(f, one, step, 1.0, -8.0) == (np.zeros(1), 0.0)
    assert optimal._shortened(f, one, step / 4, 1.0, -2.0) == (np.zeros(1), 0.0)
    assert optimal._shortened(f, one, -step, 1.0, -8.0) is None
    assert optimal._shortened(lambda w: 1.0, one, step, 1.0, 0.0) is None, "a step has to lower f"
    asked: list[float] = []
    assert (
        optimal._shortened(lambda w: asked.append(float(w[0])) or 2.0, 0 * one, one, 1.0, -1.0)
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


# what a survey decides, with numbers that are exact


def along_a_tour(norm: float) -> Along:
    """A first tour of steps of 1/4, for which |X g|^2 / |g|^2 is ``norm``."""
    fit = LabelFit(LOSSES["ridge"](), np.array([1.0, 0.0, 0.0, 0.0]))
    moved = 2.0 * 0.25 * 1.0 * norm / 2.0  # two updates of 0.25 along a slope of norm/2
    changes = np.zeros((4, 2))
    changes[0, 1] = norm / 2.0
    assert changes[0, 1] ** 2 / moved == norm
    changes[:, 0] = [8.0, 1.0, 2.0, -3.0]  # an earlier start, which tells nothing
    bend = np.array([[7.0, 5.0], [5.0, 3.0 * moved]])
    return Along(fit, np.zeros(4), changes, np.array([0.5, 0.0]), bend)


def survey_of(
    norm: float, columns: float, squares: float, norms: float, spread: float, clients: float = 4.0
) -> Any:
    """What is chosen: the step by 1/L, and the depth."""
    found = Survey(clients, columns, squares, norms, spread).choose(along_a_tour(norm), 0.25, 2.0)
    assert found[1] == pytest.approx(1.0 / (2.0 * norm + 3.0))
    return round(found[0] / found[1], 9), found[2]


def test_blocks_decide_where_columns_are_half_again_as_alike_within_as_across() -> None:
    """Across: norm / (norms / clients) = 1; within: spread / clients."""
    wanted = {5.75: (3.0, 10), 6.0: (3.0, 10), 6.25: (30.0, 10)}
    assert {spread: survey_of(4.0, 1.0, 4.0, 16.0, spread) for spread in wanted} == wanted


@pytest.mark.parametrize(("clients", "limit"), [(4.0, 1.5), (8.0, 2.0), (16.0, 4.0)])
def test_blocks_do_not_decide_where_a_quarter_of_the_clients_share_what_they_have(
    clients: float, limit: float
) -> None:
    for across, factor in ((limit - 0.25, 30.0), (limit, 3.0), (limit + 0.25, 3.0)):
        norms = 4.0 * clients / across
        assert survey_of(4.0, 1.0, 4.0, norms, 100.0 * clients, clients) == (factor, 10), across


def test_columns_are_related_above_twice_what_independent_ones_could_have() -> None:
    """Four columns of four samples: independent ones have up to squares / 4 * (1 + 1)^2 =
    squares."""
    wanted = {1.75: (1.0, 20), 2.0: (3.0, 10), 2.25: (3.0, 10)}
    assert {squares: survey_of(4.0, 4.0, squares, 16.0, 4.0) for squares in wanted} == wanted


@pytest.mark.parametrize(("uneven", "factor"), [(2.9, 3.0), (3.1, SOLVED)])
def test_blocks_are_solved_where_scales_differ(uneven: float, factor: float) -> None:
    """Four columns with a mean square of 25, of which the geometric mean is a share."""
    logs = 4.0 * np.log(25.0 / uneven)
    survey = Survey(4.0, 4.0, 100.0, 16.0, 4.0, logs)
    step, least, _ = survey.choose(along_a_tour(4.0), 0.25, 2.0)
    assert step / least == pytest.approx(factor)
    # with more columns than samples what is outside the row space would be corrected slowly
    wide = Survey(4.0, 5.0, 125.0, 16.0, 4.0, 5.0 * np.log(25.0 / uneven))
    step, least, _ = wide.choose(along_a_tour(4.0), 0.25, 2.0)
    assert step / least == pytest.approx(0.01)


def test_nothing_is_chosen_from_columns_of_zeros() -> None:
    assert Survey(4.0, 4.0, 0.0, 16.0, 4.0).choose(along_a_tour(4.0), 0.25, 2.0) is None
    assert Survey(4.0, 4.0, 0.5, 16.0, 4.0).choose(along_a_tour(4.0), 0.25, 2.0) is not None


def test_there_are_wide_tables_from_more_columns_than_samples() -> None:
    assert survey_of(4.0, 4.0, 100.0, 16.0, 4.0) == (3.0, 10)
    assert survey_of(4.0, 5.0, 100.0, 16.0, 4.0) == (0.01, 10)
    assert survey_of(4.0, 5.0, 1.0, 16.0, 4.0) == (0.1, 20)
    assert survey_of(4.0, 4.0, 1.0, 16.0, 4.0) == (1.0, 20)
