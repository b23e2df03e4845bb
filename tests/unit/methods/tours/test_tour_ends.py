"""Accelerated tours in detail: what each acceleration says after each tour, and how clients follow
it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import mtcd
from mtcd.methods.mtcd.mtcd import STCD
from mtcd.methods.tours.acceleration import Memory
from mtcd.methods.tours.anderson import Anderson
from mtcd.methods.tours.conjugate import Conjugate
from mtcd.methods.tours.instruction import Instruction
from mtcd.methods.tours.momentum import Momentum
from mtcd.methods.tours.reference import PlainAnderson, PlainConjugate, PlainMomentum
from mtcd.models.glm.block_smoothness import BlockSmoothness
from mtcd.models.glm.model import LinearProblem
from problems import make_data

RIDGE = mtcd.Glm("ridge", l2=0.5)
NOTHING = np.zeros(0)


def ridge(widths: list[int] | None = None) -> LinearProblem:
    problem = RIDGE.problem(make_data(RIDGE, 14, widths or [2, 3, 1, 2], seed=6))
    assert isinstance(problem, LinearProblem)
    return problem


FIT = ridge().fit
A, FIXED = np.array([[0.5, 0.3], [0.1, 0.7]]), np.array([2.0, -1.0])


def tour_of(z: np.ndarray) -> np.ndarray:
    """A tour that contracts towards ``FIXED``."""
    return FIXED + A @ (z - FIXED)


def made(kind: type, depth: int = 2, tour: int = 0, stepsize: float = 0.0) -> Any:
    return kind(depth, np.array([5.0, 1.0]), 0.0, FIT, tour, stepsize)


PLAIN = {Anderson: PlainAnderson, Momentum: PlainMomentum, Conjugate: PlainConjugate}


class Home:
    """A home client with an acceleration, a client that follows it, and the plain version of both.

    The model of the client moves as the token does.
    """

    def __init__(self, kind: type, depth: int = 2, tour: int = 0) -> None:
        self.acceleration, self.memory = made(kind, depth, tour), Memory()
        self.z, self.theta = np.array([5.0, 1.0]), np.array([5.0, 1.0])
        method = STCD(1, 0.1, walk="tour", acceleration=kind.__name__.lower(), depth=depth)
        self.plain = PLAIN[kind](ridge(), method, (self.z.copy(), [self.theta.copy()]))

    def tour(self, value: float) -> Instruction:
        """Make a tour that ends with this objective."""
        self.z[...] = tour_of(self.z)
        self.theta = tour_of(self.theta)
        plain, (model,) = self.plain.next_start((self.z.copy(), [self.theta.copy()]), value)
        said: Instruction = self.acceleration.end_tour(self.z, value, 0.0, NOTHING)
        self.theta = self.memory.apply(self.theta, said)
        for one in (self.theta, plain, model):
            np.testing.assert_allclose(one, self.z, rtol=1e-9)
        return said


def nesterov(count: int) -> list[float]:
    """b_1, b_2, ... by the recursion a_n^2 - a_n = a_{n-1}^2."""
    a, found = 1.0, []
    for _ in range(count):
        after = max(np.roots([1.0, -1.0, -a * a]))
        found.append(float((a - 1.0) / after))
        a = after
    return found


def test_momentum_goes_further_until_f_rises_and_then_restarts() -> None:
    home, b = Home(Momentum, tour=7), nesterov(3)
    first = home.tour(9.0)
    assert (first.tour, first.weights, first.keep) == (8, (), 1)
    ends = [home.z.copy()]
    for place in (1, 2):
        end = tour_of(home.z)
        said = home.tour(9.0 - place)
        assert said.weights == pytest.approx((-b[place], 1.0 + b[place]))
        assert said.keep == 1
        np.testing.assert_allclose(home.z, end + b[place] * (end - ends[-1]))
        ends.append(end)
    undone = home.tour(7.5)  # above 7, where the last tour ended
    assert (undone.tour, undone.weights, undone.keep) == (11, (1.0, 0.0), 0)
    np.testing.assert_allclose(home.z, ends[-1])
    again = home.tour(8.0)  # without momentum there is nothing to undo
    assert (again.weights, again.keep) == ((), 1)
    np.testing.assert_allclose(home.z, tour_of(ends[-1]))
    assert home.tour(8.0).weights == pytest.approx((-b[1], 1.0 + b[1])), (
        "as high as before is no rise"
    )


def test_momentum_also_undoes_a_rise_in_the_second_tour() -> None:
    home = Home(Momentum)
    home.tour(9.0)
    end = home.z.copy()
    assert home.tour(9.5).weights == (1.0, 0.0)
    np.testing.assert_allclose(home.z, end)
    assert home.tour(9.5).weights == ()


def test_anderson_waits_for_its_depth_and_then_jumps_to_the_fixed_point() -> None:
    """Three residuals of a linear map in two dimensions determine its fixed point."""
    home = Home(Anderson, tour=3)
    said = [home.tour(9.0), home.tour(8.0)]
    assert [(one.tour, one.weights, one.keep, one.trial) for one in said] == [
        (4, (), 1, False),
        (5, (), 2, False),
    ]
    jump = home.tour(7.0)
    assert len(jump.weights) == 3
    assert (jump.keep, jump.trial) == (1, True)
    np.testing.assert_allclose(home.z, FIXED, rtol=1e-4)
    after = home.tour(6.0)
    assert (after.weights, after.keep, after.trial) == ((), 1, False)
    assert home.acceleration.patience == 2
    assert home.tour(5.0).keep == 2  # that tour counts as the first of the next three
    assert len(home.tour(4.0).weights) == 3


def test_anderson_undoes_a_jump_that_gains_nothing_and_waits_longer_each_time() -> None:
    home = Home(Anderson)
    waits, since = [], 0
    while len(waits) < 7:
        before = tour_of(home.z)
        said, since = home.tour(1.0), since + 1
        if said.trial:
            assert len(said.weights) == 3, "however long it has waited"
            undone = home.tour(1.0)  # not lower than before
            assert (undone.weights, undone.keep) == ((1.0, 0.0), 0)
            np.testing.assert_allclose(home.z, before)
            waits.append(since)
            since = 0
        else:
            assert said.keep == min(since, 3)
    assert waits == [3, 5, 9, 17, 33, 65, 65]


@pytest.mark.parametrize("stepsize", [0.0, 0.25])
def test_conjugate_tours_begin_with_a_survey_if_they_choose_steps(stepsize: float) -> None:
    opening = made(Conjugate, tour=4, stepsize=stepsize).opening()
    assert opening == Instruction(4, keep=1, starts=True, stepsize=stepsize, survey=stepsize > 0)


def test_the_first_tour_takes_a_hundredth_of_the_sum_of_all_blocks() -> None:
    problem = ridge()
    total = sum(np.linalg.norm(X, 2) ** 2 + 0.5 for X in problem.blocks)
    assert Conjugate.first_stepsize(BlockSmoothness(problem)).value == pytest.approx(0.01 / total)


def test_what_a_client_keeps() -> None:
    memory, at = Memory(), lambda x: np.array([x])
    for tour, theta in enumerate([1.0, 2.0, 4.0], 1):
        memory.apply(at(theta), Instruction(tour, keep=2))
    assert np.ravel(memory.snapshots).tolist() == [2.0, 4.0]
    mixed = Instruction(4, (0.5, -1.0, 1.5), keep=3)
    assert memory.preview(at(8.0), mixed) == 0.5 * 2.0 - 4.0 + 1.5 * 8.0
    assert memory.tour == 3
    assert memory.apply(at(8.0), mixed) == 9.0
    assert np.ravel(memory.snapshots).tolist() == [2.0, 4.0, 8.0]  # the end of the tour
    assert memory.apply(at(16.0), Instruction(5, (0.5, 0.5), keep=2, starts=True)) == 12.0
    assert np.ravel(memory.snapshots).tolist() == [8.0, 12.0]  # the start of the next
    assert memory.preview(at(3.0), Instruction(5, (0.5, 0.5), keep=2)) == 3.0


# conjugate tours: one client, whose tours are two gradient steps

COLUMNS, STEP, L2 = 4, 1e-3, 0.5
ONE = ridge([COLUMNS])
X, Y = ONE.blocks[0], ONE.labels


def gradient_of(theta: np.ndarray) -> np.ndarray:
    return np.asarray(X.T @ (X @ theta - Y) + L2 * theta)


class Lone:
    """Conjugate tours of a single client, beside their plain version."""

    def __init__(self, depth: int, adaptive: bool = False) -> None:
        self.theta, self.memory = np.array([1.0, -0.5, 0.3, 0.8]), Memory()
        self.z = X @ self.theta
        self.acceleration: Any = Conjugate(
            depth, self.z, 0.0, ONE.fit, 1, STEP if adaptive else 0.0
        )
        method = STCD(1, STEP, walk="tour", acceleration="conjugate", depth=depth)
        method = replace(method, adaptive=adaptive)
        self.plain = PlainConjugate(ONE, method, (self.z.copy(), [self.theta]))
        self.memory.apply(self.theta, self.acceleration.opening())

    def sums(self, change: np.ndarray) -> np.ndarray:
        """The inner products that the client adds to the token."""
        *earlier, s = self.memory.snapshots
        starts, ways = [s @ one for one in (*earlier, s)], [change @ (one - s) for one in earlier]
        return L2 * np.array([*starts, *ways, change @ s, change @ change])

    def tour(self, end: np.ndarray) -> Instruction:
        # of the first tour
        surveyed = ONE.client(0).survey() if self.acceleration.tour == 1 else []
        products, value = np.append(self.sums(end - self.theta), surveyed), ONE.evaluate([end])
        plain, (model,) = self.plain.next_start((X @ end, [end]), value)
        self.z[...] = X @ end
        said: Instruction = self.acceleration.end_tour(self.z, value, 0.0, products)
        self.theta = self.memory.apply(end, said)
        assert said.keep == len(self.memory.snapshots)
        assert said.starts
        np.testing.assert_allclose(self.theta, model, rtol=1e-6, atol=1e-9)
        for token in (self.z, plain):
            np.testing.assert_allclose(token, X @ self.theta, rtol=1e-6, atol=1e-9)
        return said


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_conjugate_tour_starts_at_the_least_point_of_what_it_combines(depth: int) -> None:
    """Of two starts these are conjugate gradients: as many tours as columns are enough. Of one,
    steepest descent."""
    lone, best = Lone(depth), np.linalg.solve(X.T @ X + L2 * np.eye(COLUMNS), X.T @ Y)
    starts = [lone.theta]
    for tour in range(COLUMNS):
        end = lone.theta - 2 * STEP * gradient_of(lone.theta)
        said = lone.tour(end)
        assert said.tour == tour + 2
        assert sum(said.weights) == pytest.approx(1.0)
        spanned = [
            end - starts[-1],
            *(one - starts[-1] for one in starts[:-1][-depth + 1 :] if depth > 1),
        ]
        assert len(said.weights) == len(spanned) + 1
        for way in spanned:  # f is least there: it has no slope along what is combined
            slope = gradient_of(lone.theta) @ way / np.linalg.norm(way)
            assert abs(slope) < 1e-5 * np.linalg.norm(gradient_of(starts[-1]))
        starts.append(lone.theta)
    gap = ONE.evaluate([lone.theta]) / ONE.evaluate([best]) - 1
    assert (gap < 1e-9) == (depth > 1)


@pytest.mark.parametrize(("depth", "stored"), [(3, 3), (10, 10), (20, 10)])
def test_the_first_tour_chooses_the_steps_of_the_others_and_how_many_starts_to_store(
    depth: int, stored: int
) -> None:
    """Columns of one client are alike within, so steps are 30/L, L the curvature along the
    gradient; few starts."""
    lone = Lone(depth, adaptive=True)
    g = gradient_of(lone.theta)
    L = float(np.sum((X @ g) ** 2) / (g @ g)) + L2
    for _ in range(2):
        said = lone.tour(lone.theta - 2 * STEP * gradient_of(lone.theta))
        assert said.stepsize == lone.plain.reach == pytest.approx(30.0 / L, rel=1e-3)
        assert not said.survey
        assert not lone.acceleration._surveying
        assert lone.acceleration._plain == lone.plain.plain == pytest.approx(1.0 / L, rel=1e-3)
        assert lone.acceleration.depth == lone.plain.M == stored


@pytest.mark.parametrize("tours", [1, 2])
def test_steps_grow_to_one_by_the_curvature_where_a_tour_ends_where_it_ended(tours: int) -> None:
    """A mix needs a change beyond rounding. Without one, small steps would make no progress."""
    lone = Lone(3)
    for scheme in (lone.acceleration, lone.plain):
        scheme.stepsize = scheme.reach = 1e-3
        scheme._plain = scheme.plain = 0.25
    for _ in range(tours):
        assert lone.tour(lone.theta - 2 * STEP * gradient_of(lone.theta)).stepsize == 1e-3
        assert lone.plain.reach == 1e-3
    said = lone.tour(lone.theta)
    assert said.weights[-1] == 1.0
    assert said.stepsize == lone.plain.reach == 0.25
    lone.acceleration.stepsize = lone.plain.reach = 0.5
    assert lone.tour(lone.theta).stepsize == lone.plain.reach == 0.5
