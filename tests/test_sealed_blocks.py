"""The block of a client in sealed tours: its account of rounding errors, and columns without curvature of their own."""

from __future__ import annotations

import numpy as np
import pytest

from mtcd.methods.sealed.block import SealedBlock
from mtcd.methods.sealed.plan import beside
from mtcd.methods.sealed.scales import Scales
from mtcd.objective.penalty import Penalty
from mtcd.sealing.parameters import choose_parameters

N, DEPTH, TOKEN = 30, 2, 2.0**10


def scales(curvature: float = 0.25) -> Scales:
    return Scales(choose_parameters(N + beside(DEPTH), (4,), 10), N, curvature, 40.0, 3)


def block_of(X: np.ndarray, l2: float = 0.0, free: int = 0) -> SealedBlock:
    block = SealedBlock(X, Penalty(l2=l2, free=free), DEPTH)
    block.use(scales())
    return block


def products(block: SealedBlock, g: np.ndarray) -> np.ndarray:
    return np.rint((block.rounded.T @ g) * block.column_scales * TOKEN)


def test_a_block_knows_the_rounding_errors_of_its_scores_at_the_key_holder() -> None:
    """The scores at the key holder are followed here, from the integers that are added to the token."""
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
        np.testing.assert_allclose(block.errors[1], change - block.rounded @ block.change, atol=1e-12)
        weights = np.eye(1, 1 + len(moves))[0] if tour == 20 else rng.uniform(1.5, 2.5, 1 + len(moves))
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
