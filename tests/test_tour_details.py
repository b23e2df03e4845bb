"""Accelerated tours in detail: what each acceleration says after each tour, and how clients follow it."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import pytest

import mtcd
from mtcd.engines.local import LocalEngine
from mtcd.ledger.ledger import Ledger
from mtcd.methods.accelerations.acceleration import Memory
from mtcd.methods.accelerations.anderson import Anderson
from mtcd.methods.accelerations.conjugate import Conjugate
from mtcd.methods.accelerations.momentum import Momentum
from mtcd.methods.mtcd import MTCD, STCD
from mtcd.methods.reference_tours import PlainAnderson, PlainConjugate, PlainMomentum
from mtcd.methods.touring_parties import TouringClient, steps_of
from mtcd.model.linear import LinearProblem
from mtcd.model.updates import LocalUpdates
from mtcd.protocol.token import NO_INSTRUCTION, Instruction, Token
from mtcd.theory.stepsize import Smoothness
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


def made(kind: type, depth: int = 2, tour: int = 0, stepsize: float = 0.0, z: Any = (5.0, 1.0)) -> Any:
    return kind(depth, np.array(z), 0.0, FIT, tour, stepsize)


class Home:
    """A home client with an acceleration, and a client that follows it: its model moves as the token does."""

    def __init__(self, acceleration: Any) -> None:
        self.acceleration, self.memory = acceleration, Memory()
        self.z, self.theta = np.array([5.0, 1.0]), np.array([5.0, 1.0])

    def tour(self, value: float) -> Instruction:
        """Make a tour that ends with this objective."""
        self.z[...] = tour_of(self.z)
        self.theta = tour_of(self.theta)
        said: Instruction = self.acceleration.end_tour(self.z, value, 0.0, NOTHING)
        self.theta = self.memory.apply(self.theta, said)
        np.testing.assert_allclose(self.theta, self.z, rtol=1e-9)
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
    home, b = Home(made(Momentum, tour=7)), nesterov(3)
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
    assert home.tour(8.0).weights == pytest.approx((-b[1], 1.0 + b[1])), "as high as before is no rise"


def test_anderson_waits_for_its_depth_and_then_jumps_to_the_fixed_point() -> None:
    """Three residuals of a linear map in two dimensions determine its fixed point."""
    home = Home(made(Anderson, 2, tour=3))
    said = [home.tour(9.0), home.tour(8.0)]
    assert [(one.tour, one.weights, one.keep, one.trial) for one in said] == [(4, (), 1, False), (5, (), 2, False)]
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
    home = Home(made(Anderson, 2))
    waits, since = [], 0
    while len(waits) < 7:
        before = tour_of(home.z)
        said, since = home.tour(1.0), since + 1
        if said.trial:
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
    assert Conjugate.first_stepsize(Smoothness(problem)).value == pytest.approx(0.01 / total)


def test_how_many_tours_are_combined_unless_told() -> None:
    plain = {kind: STCD(walk="tour", acceleration=kind, stepsize=0.1) for kind in ("anderson", "conjugate")}
    assert [method.most_starts for method in plain.values()] == [5, 5]
    assert replace(plain["conjugate"], stepsize="auto").most_starts == 20
    assert replace(plain["anderson"], depth=3).most_starts == 3


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


# the steps of an update


class Noted:
    """Notes the updates that a client makes."""

    def __init__(self, client: TouringClient, monkeypatch: pytest.MonkeyPatch) -> None:
        self.updates: list[tuple[int, float]] = []
        plain = client.model.local_update

        def local_update(theta: Any, aggregate: Any, updates: LocalUpdates) -> Any:
            self.updates.append((updates.Q, updates.eta))
            return plain(theta, aggregate, updates)

        monkeypatch.setattr(client.model, "local_update", local_update)


def plan_and_client(problem: LinearProblem, method: MTCD, number: int) -> tuple[Any, TouringClient]:
    network = mtcd.make_network("path", [f"c{k}" for k in range(len(problem.blocks))])
    plan = method.plan(problem.samples, problem.outputs, network, 0)
    return plan, TouringClient(number, problem.client(number), plan)


def token_with(instruction: Instruction) -> Token:
    return Token(0, 0, 1, np.zeros(14), 0.0, instruction=instruction)


@pytest.mark.parametrize(
    ("reach_by_L", "Q"), [(0.01, 1), (0.99, 1), (1.01, 2), (2.5, 3), (199.5, 200), (201.0, 200), (1000.0, 200)]
)
def test_an_update_is_as_many_steps_as_keep_each_below_one_by_L(
    reach_by_L: float, Q: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = ridge()
    L = np.linalg.norm(problem.blocks[1], 2) ** 2 + 0.5
    method = STCD(7, "auto", walk="tour", acceleration="conjugate").with_resolved_stepsize(0.01)
    _, client = plan_and_client(problem, method, 1)
    noted = Noted(client, monkeypatch)
    client.update(token_with(Instruction(0, stepsize=reach_by_L / L)), 2)
    eta = min(reach_by_L / Q, 1.0) / L
    assert noted.updates == [(2 * Q, pytest.approx(eta))]
    plain = PlainConjugate(problem, method, (np.zeros(14), []))
    plain.reach = reach_by_L / L
    assert plain.steps(1) == (Q, pytest.approx(eta))


def test_a_block_without_curvature_takes_one_step() -> None:
    """Its columns are 0 and there is no penalty: it has no gradient either."""
    assert steps_of(0.3, 0.0) == (1, 0.3)
    model = mtcd.Glm("linear")
    data = make_data(model, 14, [2, 1], seed=6)
    problem = model.problem(mtcd.split(np.hstack([data.blocks[0], 0 * data.blocks[1]]), data.labels, [[0, 1], [2]]))
    method = STCD(7, "auto", walk="tour", acceleration="conjugate").with_resolved_stepsize(0.01)
    assert PlainConjugate(problem, method, (np.zeros(14), [])).steps(1) == (1, 0.01)


@pytest.mark.parametrize("kind", ["anderson", "momentum", "conjugate"])
def test_without_a_step_in_the_instruction_it_is_that_of_the_method(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem, method = ridge(), STCD(7, 0.01, walk="tour", acceleration=kind)
    _, client = plan_and_client(problem, method, 2)
    noted = Noted(client, monkeypatch)
    client.update(token_with(NO_INSTRUCTION), 2)
    assert noted.updates == [(14, 0.01)]
    plain = {"anderson": PlainAnderson, "momentum": PlainMomentum, "conjugate": PlainConjugate}[kind]
    assert plain(problem, method, (np.zeros(14), [])).steps(2) == (7, 0.01)
