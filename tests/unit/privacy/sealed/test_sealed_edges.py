"""The arithmetic of sealed tours at its edges: rounding errors, columns without curvature, room
that is just enough."""

from __future__ import annotations

import numpy as np
import pytest

import mtcd
from mtcd.models.glm.penalty import Penalty
from mtcd.privacy.sealed.bfv.parameters import choose_parameters
from mtcd.privacy.sealed.block import SealedBlock
from mtcd.privacy.sealed.plan import beside
from mtcd.privacy.sealed.scales import Scales, power_below
from mtcd.privacy.sealed.steering import Steering, _without_labels

N, DEPTH, TOKEN = 30, 2, 2.0**10


def scales(curvature: float = 0.25, start: float = 40.0) -> Scales:
    return Scales(choose_parameters(N + beside(DEPTH), (4,), 10), N, curvature, start, 3)


def block_of(X: np.ndarray, l2: float = 0.0, free: int = 0) -> SealedBlock:
    block = SealedBlock(X, Penalty(l2=l2, free=free), DEPTH)
    block.use(scales())
    return block


def products(block: SealedBlock, g: np.ndarray) -> np.ndarray:
    return np.rint((block.rounded.T @ g) * block.column_scales * TOKEN)


def test_a_block_knows_the_rounding_errors_of_its_scores_at_the_key_holder() -> None:
    """The scores at the key holder are followed here, from the integers that are added to the
    token."""
    rng = np.random.default_rng(0)
    block, unit = block_of(rng.standard_normal((N, 4)), l2=0.5), 0.25 * TOKEN
    at_start, moves, lengths = np.zeros(N), list[np.ndarray](), list[int]()
    weights, stretch = np.zeros(0), 1.0
    for tour in range(17, 24):
        corrected = block.tour == 20
        block.start_tour(tour, weights, stretch)
        at_key_holder = [at_start, np.zeros(N), *moves]
        for error, scores, theta in zip(
            block.errors, at_key_holder, [block.theta, block.change, *block.moves], strict=True
        ):
            np.testing.assert_allclose(error, scores - block.rounded @ theta, atol=1e-9)
        if corrected:
            assert np.abs(block.errors[0]).max() <= 1 / unit  # one rounding is left
        elif tour > 18:
            assert np.abs(block.errors[0]).max() > 1 / unit
        added = block.update(products(block, 0.3 * rng.standard_normal(N)), TOKEN, rng.random(N))
        change = added[:N] / unit
        np.testing.assert_allclose(
            block.errors[1], change - block.rounded @ block.change, atol=1e-12
        )
        weights = (
            np.eye(1, 1 + len(moves))[0] if tour == 20 else rng.uniform(1.5, 2.5, 1 + len(moves))
        )
        stretch = 0.5
        move = np.asarray(sum(w * v for w, v in zip(weights, [change, *moves], strict=True)))
        at_start = at_start + move
        if tour != 20:  # not kept
            moves = [stretch * move, *moves][:DEPTH]
        lengths.append(len(moves))
    assert lengths == [1, 2, 2, 2, 2, 2, 2]


def test_a_block_that_stays_where_it_is_keeps_its_moves_and_errors() -> None:
    rng = np.random.default_rng(1)
    block = block_of(rng.standard_normal((N, 4)), l2=0.5)
    block.start_tour(1, np.zeros(0), 1.0)
    block.update(products(block, rng.standard_normal(N)), TOKEN, rng.random(N))
    block.start_tour(2, np.array([1.0]), 2.0)
    theta, moves, errors = block.theta, list(block.moves), list(block.errors)
    block.update(products(block, rng.standard_normal(N)), TOKEN, rng.random(N))
    assert (block.preview(3, np.zeros(2)) == theta).all()
    block.start_tour(3, np.zeros(2), 2.0)
    assert (block.theta == theta).all()
    np.testing.assert_array_equal(block.moves, moves)
    np.testing.assert_array_equal(block.errors, errors)
    assert not block.change.any()
    assert block.tour == 3


@pytest.mark.parametrize("tour", [19, 20])
def test_a_correction_is_clipped_to_the_room_that_there_is_for_it(tour: int) -> None:
    block, unit = block_of(np.zeros((N, 1))), 0.25 * TOKEN
    most = block.scales.most_correction
    assert most > 20
    block.tour = tour
    errors = np.zeros(N)
    errors[:6] = np.array([3.0, -7.0, 2 * most, -2 * most, most + 0.25, 0.0]) / unit
    block.errors[0] = errors
    added = block.update(np.zeros(1), TOKEN, np.full(N, 0.5))
    expected = [-3, 7, np.floor(0.5 - most), np.floor(0.5 + most), np.floor(0.5 - most), 0]
    assert added[:6].tolist() == (expected if tour == 20 else [0] * 6)
    assert not added[6:].any()


def test_columns_that_repeat_each_other_share_the_step() -> None:
    rng = np.random.default_rng(2)
    x, g = rng.standard_normal(N), rng.standard_normal(N)
    alone, twins = block_of(x[:, None]), block_of(np.stack([x, x], axis=1))
    for block in (alone, twins):
        block.update(products(block, g), TOKEN, rng.random(N))
    step = -(x @ g) / (0.25 * x @ x)
    assert alone.change == pytest.approx([step], rel=1e-2)
    assert twins.change == pytest.approx([step / 2, step / 2], rel=1e-2)


def test_columns_of_very_different_sizes_each_get_their_step() -> None:
    rng = np.random.default_rng(3)
    X, g = np.linalg.qr(rng.standard_normal((N, 3)))[0] * [1e-4, 1.0, 1e4], rng.standard_normal(N)
    block = block_of(X)
    block.update(products(block, g), TOKEN, rng.random(N))
    assert block.change == pytest.approx(-(X.T @ g) / (0.25 * (X**2).sum(axis=0)), rel=2e-2)


def test_a_column_of_zeros_beside_others_is_left_alone() -> None:
    rng = np.random.default_rng(4)
    x, g = rng.standard_normal(N), rng.standard_normal(N)
    block = block_of(np.stack([x, np.zeros(N)], axis=1))
    block.update(products(block, g), TOKEN, rng.random(N))
    assert block.change == pytest.approx([-(x @ g) / (0.25 * x @ x), 0.0], rel=1e-2)


def test_other_keys_bring_other_scales_and_another_minimum() -> None:
    rng = np.random.default_rng(5)
    X, g = rng.standard_normal((N, 2)), rng.standard_normal(N)
    block = block_of(X)
    block.update(products(block, g), TOKEN, rng.random(N))
    first = block.change
    block.start_tour(1, np.zeros(0), 1.0)
    block.use(scales(curvature=1.0))
    block.update(products(block, g), TOKEN, rng.random(N))
    np.testing.assert_allclose(block.change, first / 4, rtol=1e-2)


def test_powers_of_two_below() -> None:
    assert [power_below(x) for x in (0.3, 0.5, 1.0, 3.9, 4.0, 4.1)] == [
        0.25,
        0.5,
        1.0,
        2.0,
        4.0,
        4.0,
    ]


def test_sums_leave_a_ninth_of_their_room() -> None:
    half = scales().parameters.half
    for start, k in (
        (half / (9 * 2.0**10) * (1 - 1e-9), 10),
        (half / (9 * 2.0**10) * (1 + 1e-9), 9),
    ):
        assert scales(start=start).sums == 2.0**k
    assert np.frexp(scales(start=0.0).sums)[0] == 0.5  # a power of two


@pytest.mark.parametrize("tokens", [1, 2, 3])
def test_a_column_is_as_fine_as_its_length_with_its_rounding_leaves_room_for(tokens: int) -> None:
    """Rounding N entries makes a column longer by half of the root of N at most; a thousandth is to
    spare."""
    s = scales()
    assert s.finer == 1.0
    # where the sum of the entries is not the tighter bound
    s = Scales(s.parameters, N, 0.25, 40.0, 3, 8.0)
    longest = s.parameters.half / (1.001 * tokens * s.longest) - np.sqrt(N) / 2
    column = np.where(np.arange(N) % 2, 1.0, -1.0)[:, None] / np.sqrt(N)
    for length, scale in (
        (longest * (1 - 1e-9), 1.0),
        (longest * (1 + 1e-9), 0.5),
        (longest / 4 * (1 - 1e-9), 4.0),
    ):
        assert s.integers(column * length, tokens)[1].tolist() == [scale]
        assert (s.integers(column * length)[1].tolist() == [scale]) == (tokens == 1)


@pytest.mark.parametrize("start", [20.0, 40.0])
def test_the_finest_token_is_that_of_a_share_of_2_to_the_minus_40_of_f_at_the_start(
    start: float,
) -> None:
    s = scales(start=start)
    assert s.token(0.0) == s.token(start * 2.0**-40) == 2.0**20 * s.token(start)
    assert np.frexp(scales(start=0.0).token(0.0))[0] == 0.5  # a power of two


def steering_of(start: float = 64.0) -> Steering:
    return Steering(mtcd.Glm("ridge").loss, N, DEPTH, start, 0.0)


def test_a_steering_begins_without_moves() -> None:
    steering = steering_of()
    assert (steering.weights.size, steering.stretch, steering.objective()) == (0, 1.0, 0.0)
    assert (steering.moves, steering.scores.tolist()) == ([], [0.0] * N)


def test_a_move_is_kept_at_the_size_at_which_it_changes_f_by_about_f_at_the_start() -> None:
    steering, move = steering_of(start=64.0), np.zeros(N)
    assert steering._stretch(move, 0.0) == 1.0
    assert steering._stretch(move, 4.0) == 4.0  # the root of 64 / 4
    move[0] = 8.0
    assert steering._stretch(move, 4.0) == 1.0  # the scores count for more than the penalty
    assert steering._stretch(move, 65.0) == 0.5


def test_a_tour_that_changes_nothing_is_over() -> None:
    steering = steering_of()
    steering.end_tour(np.zeros(N), np.zeros(beside(DEPTH)), 0.0, 0.0)
    assert steering.weights.tolist() == [1.0]
    assert steering.stretch == 1.0
    assert not steering.scores.any()


@pytest.mark.parametrize("constant", [-5.0, 0.0, 1.0])
def test_f_may_rise_by_what_rounding_may_do_and_not_at_all_where_f_is_0(constant: float) -> None:
    """Away from the minimum of z^2 / 2 at 0, by a change of one score that raises f by 1 / 200."""
    steering, change = steering_of(), np.zeros(N)
    steering.constant, change[0] = constant, 0.1
    rounding = 0.005**2 / 2 * 1.01  # |g|^2 is 2 f at most
    steering.end_tour(change, np.zeros(beside(DEPTH)), 0.0, rounding)
    assert steering.weights.tolist() == [float(constant == 1.0)]


@pytest.mark.parametrize("allowed", [False, True])
def test_f_may_rise_by_less_where_the_loss_is_less_curved(allowed: bool) -> None:
    """log(1 + e^z) - z / 2 is least at 0, and has |l'|^2 <= 2 c l with c = 1/4."""
    steering, change = Steering(mtcd.Glm("logistic").loss, N, DEPTH, 64.0, 0.0), np.zeros(N)
    change[0] = 0.1
    rise = np.log((1 + np.exp(0.1)) / 2) - 0.05
    rounding = rise**2 / (2 * 0.25 * N * np.log(2))
    steering.end_tour(change, np.zeros(beside(DEPTH)), 0.05, rounding * (1.01 if allowed else 0.99))
    assert steering.weights.tolist() == [float(allowed)]


def test_inner_products_without_labels_are_positive_semidefinite() -> None:
    P = np.array([[5.0, 1.0, 2.0], [1.0, 3.0, 0.0], [2.0, 0.0, -0.5]])
    found = _without_labels(P, np.array([7.0, 10.0, 20.0]))
    np.testing.assert_allclose(
        found, [[-9.0, -9.0, -18.0], [-9.0, 3.0, 0.0], [-18.0, 0.0, 0.0]], atol=1e-12
    )
    assert P[0, 0] == 5.0
