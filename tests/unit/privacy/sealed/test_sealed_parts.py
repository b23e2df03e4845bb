"""The parts of sealed tours, each against plain arithmetic: the fixed point, a client's block, the
mix of the tours."""

from __future__ import annotations

import math

import numpy as np
import pytest

import mtcd
from mtcd.models.glm.penalty import Penalty
from mtcd.privacy.sealed.bfv.parameters import Parameters, choose_parameters
from mtcd.privacy.sealed.block import SealedBlock
from mtcd.privacy.sealed.plan import beside
from mtcd.privacy.sealed.scales import Scales
from mtcd.privacy.sealed.steering import Steering

N, VISITS, DEPTH = 60, 5, 3


def parameters() -> Parameters:
    return choose_parameters(N + beside(DEPTH), (4, 1), 2 * (VISITS + 2))


def scales(curvature: float = 0.25, start: float = 40.0, finer: float = 1.0) -> Scales:
    return Scales(parameters(), N, curvature, start, VISITS, finer)


def is_power_of_two(x: float) -> bool:
    return math.frexp(x)[0] == 0.5


@pytest.mark.parametrize("finer", [1.0, 8.0])
@pytest.mark.parametrize("curvature", [0.25, 1.0, 3.0])
def test_a_token_fills_its_room_but_never_exceeds_it(curvature: float, finer: float) -> None:
    """|l'|^2 <= 2 c l: the root mean square of the integers is at most half of the bound, and
    corrections fit too."""
    s = scales(curvature, finer=finer)
    room = finer * s.parameters.token_bound / 2
    objectives = 40.0 * 2.0 ** -np.linspace(0, 6, 200)
    plain, corrected = (
        np.array([make(f) * math.sqrt(2 * curvature * f / N) for f in objectives])
        for make in (s.token, s.token_to_correct)
    )
    assert all(
        is_power_of_two(s.token(f)) and is_power_of_two(s.token_to_correct(f)) for f in objectives
    )
    with_corrections = corrected + VISITS * s.most_correction
    for found in (plain, with_corrections):
        assert room * 0.97 < found.max() <= room * (1 + 1e-12)
    assert plain.min() > room * 0.49  # a scale twice as fine would not fit
    # a sixteenth of the largest token
    assert VISITS * s.most_correction == pytest.approx(room / 17)


@pytest.mark.parametrize("finer", [1.0, 8.0])
@pytest.mark.parametrize("tokens", [1, 2])
def test_products_of_columns_with_tokens_do_not_wrap_around(tokens: int, finer: float) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, 4)) * [1.0, 1e-3, 50.0, 0.0]
    s = scales(finer=finer)
    integers, column_scales = s.integers(X, tokens)
    assert all(map(is_power_of_two, column_scales))
    assert integers.shape == (N + s.extras, 4)
    assert not integers[N:].any()
    assert (np.abs(integers[:N] / column_scales - X) <= 0.5 / column_scales).all()
    room = s.parameters.half / (tokens * s.longest)  # by the inequality of Cauchy and Schwarz
    norms = np.linalg.norm(integers, axis=0)
    assert (norms <= room).all()
    assert norms[3] == 0
    largest = rng.choice([-1.0, 1.0], N) * s.longest / math.sqrt(N)
    assert (np.abs(integers[:N].T @ (tokens * largest)) <= s.parameters.half).all()
    bound = np.abs(integers[:, :3]).sum(axis=0) * s.parameters.token_bound
    # no coarser than need be
    assert ((4 * norms[:3] > room) | (4 * bound > s.parameters.half)).all()


def test_a_token_has_room_for_the_rounding_of_every_visit() -> None:
    s = scales()
    root_mean_square = s.longest / math.sqrt(N)
    assert root_mean_square - s.parameters.token_bound / 2 == pytest.approx(
        8 * math.sqrt(VISITS + 2)
    )


def test_scores_come_back_from_the_token_with_the_error_of_its_rounding() -> None:
    rng = np.random.default_rng(1)
    s, token, c = scales(0.25), 512.0, 0.25
    before, after, sums = (
        rng.standard_normal(N),
        rng.standard_normal(N),
        rng.standard_normal(s.extras),
    )
    start, end = s.vector(c * before, token), s.vector(c * after, token)
    assert not start[N:].any()
    end[N:] = np.rint(sums * s.sums)
    change, read = s.changes(end, start, token)
    np.testing.assert_allclose(change, after - before, atol=1.0 / (c * token))
    np.testing.assert_allclose(read, sums, atol=0.5 / s.sums)


def test_the_variance_of_rounding_at_random() -> None:
    """A number x becomes floor(x) or floor(x) + 1, right on average: for a fraction p, the variance
    is p (1 - p)."""
    p = (np.arange(1000) + 0.5) / 1000
    each = float((p * (1 - p)).mean()) / (0.25 * 512.0) ** 2
    assert scales(0.25).rounding(512.0) == pytest.approx(VISITS * each, rel=1e-5)


@pytest.mark.parametrize("free", [0, 1])
def test_an_update_is_the_minimum_over_the_block_and_carries_the_inner_products(free: int) -> None:
    rng = np.random.default_rng(2)
    X, l2, token = rng.standard_normal((N, 4)), 0.7, 2.0**10
    X[:, -1] = 1.0
    block, s = SealedBlock(X, Penalty(l2=l2, free=free), DEPTH), scales(0.25)
    block.use(s)
    ridge = l2 * np.eye(4)
    ridge[4 - free :] = 0.0
    hessian = 0.25 * block.rounded.T @ block.rounded + ridge
    moves: list[np.ndarray] = []
    theta = np.zeros(4)
    for tour in range(1, 6):
        g = rng.standard_normal(N)
        products = np.rint((block.rounded.T @ g) * block.column_scales * token)
        draws = rng.random(N)
        added = block.update(products, token, draws)
        change = -np.linalg.solve(hessian, block.rounded.T @ g + ridge @ theta)
        np.testing.assert_allclose(block.change, change, rtol=1e-3, atol=1e-3)
        np.testing.assert_allclose(block.parameters(), theta + block.change)
        scores = block.rounded @ block.change * 0.25 * token
        assert (np.abs(added[:N] - scores) < 1).all()
        kept = [theta, block.change, *moves]
        wanted = [theta @ ridge @ other for other in (theta, *moves)]
        wanted += [moves[0] @ ridge @ other for other in moves]
        wanted += [block.change @ ridge @ other for other in (theta, block.change, *moves)]
        assert len(added) - N == beside(DEPTH) >= len(wanted)
        np.testing.assert_allclose(added[N:][: len(wanted)] / s.sums, wanted, atol=1.0 / s.sums)
        assert not added[N + len(wanted) :].any()
        weights, stretch = rng.standard_normal(len(kept) - 1), 4.0
        move = sum(w * v for w, v in zip(weights, kept[1:], strict=True))
        np.testing.assert_allclose(block.preview(tour + 1, weights), theta + move)
        assert (block.preview(block.tour, weights) == theta).all()
        block.start_tour(tour, weights, stretch)
        theta, moves = theta + move, [stretch * move, *moves][:DEPTH] if tour > 1 else []
        np.testing.assert_allclose(block.theta, theta)
        assert not block.change.any()
        assert len(block.moves) == len(moves)


def test_a_block_without_curvature_is_left_alone() -> None:
    block, s = SealedBlock(np.zeros((N, 2)), Penalty(), DEPTH), scales()
    block.use(s)
    added = block.update(np.zeros(2), 2.0**10, np.full(N, 0.5))
    assert not block.change.any()
    assert not added.any()


class Tours:
    """The parameters of one client, of which the key holder knows scores and inner products
    alone."""

    def __init__(self, kind: str, depth: int) -> None:
        rng = np.random.default_rng(3)
        self.X = rng.standard_normal((N, 6))
        labels = self.X @ rng.standard_normal(6) + rng.standard_normal(N)
        self.l2, self.depth, self.rng = 0.5, depth, rng
        problem = mtcd.Glm(kind, l2=self.l2).problem(
            mtcd.split(self.X, labels > 0 if kind == "logistic" else labels, 1)
        )
        self.problem, self.y, loss = problem, problem.labels, problem.loss
        zeros = np.zeros(N)
        constant = loss.value(zeros, self.y) - loss.value(zeros, zeros)
        self.start = problem.evaluate([np.zeros(6)])
        self.steering = Steering(loss, N, depth, self.start, constant)
        self.theta, self.moves = np.zeros(6), list[np.ndarray]()

    def gradient(self) -> np.ndarray:
        return (
            self.X.T @ self.problem.loss.gradient(self.X @ self.theta, self.y)
            + self.l2 * self.theta
        )

    def sums(self, change: np.ndarray) -> np.ndarray:
        theta, moves = self.theta, self.moves
        pairs = [(theta, other) for other in (theta, *moves)] + [
            (moves[0], other) for other in moves
        ]
        pairs += [(change, other) for other in (theta, change, *moves)]
        found = [self.l2 * a @ b for a, b in pairs]
        return np.array(found + [0.0] * (beside(self.depth) - len(found)))

    def end(self, change: np.ndarray, rounding: float = 0.0) -> list[np.ndarray]:
        """The directions of the mix."""
        scores, directions = self.X @ change, [change, *self.moves]
        self.steering.end_tour(scores, self.sums(change), float(self.y @ scores), rounding)
        move = np.asarray(
            sum(w * d for w, d in zip(self.steering.weights, directions, strict=True))
        )
        self.theta = self.theta + move
        self.moves = [self.steering.stretch * move, *self.moves][: self.depth]
        return directions

    def check(self) -> None:
        """What the key holder knows."""
        steering = self.steering
        assert steering.objective() == pytest.approx(self.problem.evaluate([self.theta]), rel=1e-9)
        np.testing.assert_allclose(steering.scores, self.X @ self.theta, atol=1e-9)
        known = np.array([self.theta, *self.moves])
        np.testing.assert_allclose(
            steering.products, self.l2 * known @ known.T, rtol=1e-6, atol=1e-9
        )
        np.testing.assert_allclose(steering.labels, known @ self.X.T @ self.y, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(
            steering.moves, [self.X @ move for move in self.moves], rtol=1e-6, atol=1e-9
        )
        np.testing.assert_allclose(
            self.X.T @ (steering.slope() - self.y) + self.l2 * self.theta, self.gradient()
        )


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("kind", ["ridge", "logistic"])
def test_every_tour_ends_at_the_minimum_over_its_change_and_the_last_moves(
    kind: str, depth: int
) -> None:
    tours, rounding = Tours(kind, depth), 1e-16
    errors: list[np.ndarray] = []  # of the moves, in terms of the independent errors of all changes
    for tour in range(5):
        change = -0.003 * (tours.gradient() + 3.0 * tours.rng.standard_normal(6))
        before = tours.gradient()
        directions = tours.end(change, rounding)
        tours.check()
        for direction in directions:
            length = np.linalg.norm(direction)
            assert abs(tours.gradient() @ direction) < 1e-4 * length * np.linalg.norm(before)
        move = tours.moves[0]
        size = max(
            tours.problem.loss.curvature * float(np.sum((tours.X @ move) ** 2)),
            tours.l2 * float(move @ move),
        )
        assert tours.start / 4 < size <= tours.start
        own = np.eye(5)[tour]
        weights, stretch = tours.steering.weights, tours.steering.stretch
        error = stretch * np.asarray(
            sum(w * e for w, e in zip(weights, [own, *errors], strict=True))
        )
        errors = [error, *errors][:depth]
        np.testing.assert_allclose(
            tours.steering.noise, rounding * np.array(errors) @ np.array(errors).T, rtol=1e-6
        )


@pytest.mark.parametrize("kind", ["ridge", "logistic"])
def test_a_tour_that_takes_off_rounding_errors_is_neither_mixed_nor_kept(kind: str) -> None:
    tours = Tours(kind, 2)
    for _ in range(2):
        tours.end(-0.003 * tours.gradient())
    change = 0.01 * tours.rng.standard_normal(6)
    scores = tours.X @ change
    tours.steering.correct(scores, tours.sums(change), float(tours.y @ scores))
    assert tours.steering.weights.tolist() == [1.0, 0.0, 0.0]
    tours.theta = tours.theta + change
    tours.check()
    tours.end(-0.003 * tours.gradient())
    tours.check()


def test_rounding_errors_alone_seem_to_lower_f_by_next_to_nothing() -> None:
    """Scores that change while no parameter does: the best weight would lower f by 1/N of it, on
    average."""
    size, lower, best = 1e-3, [], []
    noise = np.random.default_rng(4)
    for _ in range(50):
        steering, y = (tours := Tours("ridge", 2)).steering, tours.y
        error = size * noise.standard_normal(N)
        error *= -np.sign(error @ y)  # f is higher at the end of the tour
        before = steering.objective()
        steering.end_tour(error, np.zeros(beside(2)), float(y @ error), size**2)
        lower.append((before - steering.objective()) / before)
        best.append(float(y @ error) ** 2 / float(error @ error) / 2 / before)
    assert min(lower) >= 0
    assert np.mean(lower) == pytest.approx(2e-6, rel=0.3)  # 1e-6 with the curvature that is made up
    assert np.mean(best) == pytest.approx(1 / N, rel=0.3)


@pytest.mark.parametrize("allowed", [False, True])
def test_at_the_minimum_only_what_may_be_rounding_raises_f(allowed: bool) -> None:
    tours = Tours("ridge", 1)
    tours.end(-0.01 * tours.gradient())
    assert tours.steering.weights[0] > 0
    move, lowest = tours.moves[0], tours.steering.objective()
    there = tours.theta.copy()
    change = 0.1 * move
    rise = tours.problem.evaluate([there + change]) - lowest
    # a random error of this variance raises f so much
    rounding = rise**2 / (2 * tours.problem.loss.curvature * lowest)
    tours.end(change, rounding * (1.01 if allowed else 0.99))
    assert tours.steering.weights.tolist() == [float(allowed), 0.0]
    np.testing.assert_allclose(
        tours.steering.scores, tours.X @ (there + change * allowed), atol=1e-12
    )
