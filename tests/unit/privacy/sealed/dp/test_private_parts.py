"""The parts of private tours without a training: the fixed point, a client's block, the noise, and
what notes say."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

import mtcd
from mtcd.core.errors import ConfigError, WireError
from mtcd.engines.local import LocalEngine
from mtcd.models.glm.penalty import Penalty
from mtcd.privacy.sealed.bfv.parameters import Parameters, choose_parameters
from mtcd.privacy.sealed.client import SealedClient
from mtcd.privacy.sealed.dp.noise import gaussian_noise
from mtcd.privacy.sealed.dp.plan import (
    PrivateBlock,
    PrivatePlan,
    PrivateScales,
    PrivateSteering,
    clip_rows,
    clipping_length,
)
from mtcd.privacy.sealed.dp.settings import PrivateTours, by_party
from mtcd.privacy.sealed.payloads import SealedEnd
from mtcd.protocol.ledger.ledger import Ledger
from problems import make_data

N, VISITS = 30, 4
MODEL = mtcd.Glm("logistic", l2=1.0)
DP = mtcd.DP(epsilon=8.0, tours=6, parties={"p1": 2.0}, insecure_seeded_noise=True)
CLEAR = PrivateTours(scheme="clear", dp=DP)
NETWORK = mtcd.make_network("path", ["p0", "p1", "p2"])


def parameters() -> Parameters:
    return choose_parameters(2 * N, (4,), VISITS + 2)


def scales(noisiest: float = 3.0) -> PrivateScales:
    return PrivateScales(parameters(), N, 0.25, 32.0, VISITS, noisiest=noisiest)


def plan_of(method: PrivateTours = CLEAR, seed: int = 5) -> PrivatePlan:
    problem: Any = MODEL.problem(make_data(MODEL, N, [3, 7, 5], seed=1))
    plan = method.plan(problem, NETWORK, seed, None)
    assert isinstance(plan, PrivatePlan)
    return plan


@pytest.mark.parametrize("noisiest", [0.5, 3.0, 20.0, 300.0, 1e4])
def test_gradients_with_their_noise_fill_the_modulus_but_do_not_wrap_around(
    noisiest: float,
) -> None:
    s = scales(noisiest)
    # N rows of the clipping length, and nine deviations
    largest = s.sensitivity * (N + 9 * noisiest)
    assert s.parameters.half / 2 < largest <= s.parameters.half
    assert s.radius * s.unit == s.sensitivity
    assert s.radius in (s.unit, 2 * s.unit)
    assert s.token(0.1) == s.token(100.0) == s.unit


def test_noise_that_leaves_fewer_than_fourteen_bits_is_refused() -> None:
    most = (scales().parameters.half / 2.0**14 - N) / 9
    assert scales(most * (1 - 1e-9)).sensitivity == 2.0**14
    with pytest.raises(ConfigError, match="leaves no room for the gradients"):
        scales(most * (1 + 1e-9)).sensitivity  # noqa: B018


def test_rows_are_rounded_towards_zero_with_zeros_for_the_scores_beside() -> None:
    s = scales()
    X = np.array([[0.6, -0.8], [0.3, 0.01]]) * 5.0
    rows = s.rows(np.vstack([X, np.zeros((N - 2, 2))]), 5.0)
    assert rows.shape == (2 * N, 2)
    expected = [
        [math.floor(0.6 * s.radius), -math.floor(0.8 * s.radius)],
        [math.floor(0.3 * s.radius), 0],
    ]
    expected[1][1] = math.floor(0.01 * s.radius)
    assert rows[:2].tolist() == expected
    assert not rows[2:].any()


def test_the_changes_of_all_parties_fit_beside_g_and_come_back() -> None:
    s = scales()
    assert s.parameters.half / 2 < 2.0**14 * s.sums <= s.parameters.half
    rng = np.random.default_rng(0)
    changes = rng.standard_normal((VISITS, N)) * 100
    draws = rng.random((VISITS, N))
    added = [s.shifts(change, draw) for change, draw in zip(changes, draws, strict=True)]
    assert all(not one[:N].any() and len(one) == 2 * N for one in added)
    start = np.arange(2 * N)
    read, sums = s.changes(start + sum(added), start, s.unit)
    np.testing.assert_allclose(read, changes.sum(axis=0), atol=VISITS / s.sums)
    assert sums.size == 0
    one = s.shifts(np.full(N, 0.25 / s.sums), np.full(N, 0.74))
    other = s.shifts(np.full(N, 0.25 / s.sums), np.full(N, 0.76))
    assert (one[N:] == 0).all()
    assert (other[N:] == 1).all()


def test_a_change_that_is_too_large_is_clipped_to_the_share_of_a_party() -> None:
    s = scales()
    share = 2.0**14 * s.sums / VISITS
    for sign, draws in ((1, 0.0), (1, 0.999), (-1, 0.0), (-1, 0.999)):
        added = s.shifts(np.full(N, sign * 1e9), np.full(N, draws))[N:]
        # one less, so that rounding up never exceeds the share
        assert (added == sign * (share - 1)).all()


def test_the_length_of_clipped_rows() -> None:
    assert clipping_length(5, 0, 3.0) == pytest.approx(math.sqrt(45))
    assert clipping_length(5, 1, 3.0) == pytest.approx(math.sqrt(36 + 1))
    X = np.array([[3.0, 4.0, 1.0], [0.3, 0.4, 1.0], [0.0, 0.0, 1.0]])
    np.testing.assert_allclose(
        clip_rows(X, 1, 1.0), [[3 * 2**0.5 / 5, 4 * 2**0.5 / 5, 1], [0.3, 0.4, 1], [0, 0, 1]]
    )
    np.testing.assert_allclose(clip_rows(X[1:2], 1, 0.1), [[0.06 * 2**0.5, 0.08 * 2**0.5, 1]])
    np.testing.assert_allclose(clip_rows(X[1:2], 0, 0.1), X[1:2] * 0.1 * 3**0.5 / 1.25**0.5)


@pytest.mark.parametrize("tours", [1, 4, 5])
def test_a_block_steps_against_its_gradients_and_ends_at_the_mean_of_the_later_half(
    tours: int,
) -> None:
    rng, l2 = np.random.default_rng(3), 0.7
    X = np.hstack([rng.standard_normal((N, 2)), np.ones((N, 1))])
    block, s = (
        PrivateBlock(
            X, Penalty(l2=l2, free=1), mtcd.DP(epsilon=1.0, tours=tours, clip=2.0, stepsize=0.5)
        ),
        scales(),
    )
    assert block.use(s).shape == (2 * N, 3)
    theta, later, token = np.zeros(3), list[np.ndarray](), s.unit
    for tour in range(1, tours + 1):
        block.start_tour(tour, np.zeros(0), 1.0)
        before = np.mean(later, axis=0) if later else theta
        np.testing.assert_allclose(block.parameters(), before)
        gradient = rng.standard_normal(3) * 20
        # 3 is the clipping length: two columns by 2, and the intercept
        products = gradient / 3.0 * s.radius * token
        draws = rng.random(N)
        added = block.update(products, token, draws)
        step = -0.5 / (N + l2) * (gradient + l2 * theta * [1, 1, 0])
        np.testing.assert_allclose(block.change, step)
        np.testing.assert_array_equal(added[N:], np.floor(X @ block.change * s.sums + draws))
        np.testing.assert_allclose(block.preview(tour, np.zeros(0)), before)
        theta = theta + step
        if 2 * tour > 2 * (tours // 2):
            later.append(theta)
        now = np.mean(later, axis=0) if later else theta
        np.testing.assert_allclose(block.parameters(), now)
        np.testing.assert_allclose(block.preview(tour + 1, np.zeros(0)), now)
    assert len(later) == tours - tours // 2


def test_a_tour_that_is_undone_changes_nothing() -> None:
    block, s = PrivateBlock(np.ones((N, 2)), Penalty(), mtcd.DP(epsilon=1.0, tours=3)), scales()
    block.use(s)
    block.start_tour(1, np.zeros(0), 1.0)
    block.update(np.array([1e6, -1e6]), s.unit, np.zeros(N))
    change = block.change.copy()
    assert change.any()
    block.start_tour(1, np.zeros(0), 1.0)
    assert not block.theta.any()
    assert not block.change.any()
    block.update(np.array([1e6, -1e6]), s.unit, np.zeros(N))
    block.start_tour(2, np.zeros(0), 1.0)
    assert (block.theta == change).all()
    assert not block.change.any()


def test_the_cipher_of_private_tours_has_room_for_two_numbers_a_sample() -> None:
    plan = plan_of()
    found = plan.parameters()
    assert (found.samples, found.most_columns, found.visits) == (2 * N, 7, 3 + 2)
    s = plan.scales(found)
    assert (found.token_bound, s.samples, s.visits, s.curvature) == (s.unit, N, 3, 0.25)
    assert s.noisiest == max(plan.budget.multipliers) == plan.budget.multipliers[1]
    assert not any(plan.corrects(t) for t in range(100))
    assert not plan.needs_label_sums
    assert CLEAR.token_numbers(N) == 2 * N


def test_an_answer_is_the_gradient_with_the_noise_of_its_client_modulo_t() -> None:
    plan = plan_of()
    p, steering = plan.parameters(), PrivateSteering(plan)
    for client in range(3):
        deviation = plan.budget.multipliers[client] * plan.scales(p).sensitivity
        noise = gaussian_noise(deviation, 4, steering.secret, client, 6)
        wanted = np.array([p.half, -p.half, 0, 17])
        given = (wanted - noise + p.half) % p.plain_modulus - p.half
        np.testing.assert_array_equal(steering.released(given, client, 6), wanted)
    with pytest.raises(WireError, match="is of tour 7, but the budget is for 6"):
        steering.released(given, 0, 7)


def test_noise_is_of_the_operating_system_unless_it_is_asked_for_by_its_name() -> None:
    assert not mtcd.DP(epsilon=1.0).insecure_seeded_noise
    secure = PrivateTours(scheme="clear", dp=replace(DP, insecure_seeded_noise=False))
    secrets = [PrivateSteering(plan_of(secure)).secret.tobytes() for _ in range(3)]
    assert len(set(secrets)) == 3
    assert secure.in_federation(1) == replace(secure, holder=1)
    with pytest.raises(ConfigError, match="every party could take the noise off"):
        CLEAR.in_federation(1)


def test_seeded_noise_is_bound_to_the_data_and_all_settings() -> None:
    """Two trainings with the same noise would cancel it."""
    problem: Any = MODEL.problem(make_data(MODEL, N, [3, 7, 5], seed=1))

    def secret(
        problem: Any = problem, seed: int = 5, clients: Any = NETWORK, **changed: Any
    ) -> bytes:
        method = replace(CLEAR, dp=replace(DP, **changed))
        plan = method.plan(problem, clients, seed, None)
        assert isinstance(plan, PrivatePlan)
        return PrivateSteering(plan).secret.tobytes()

    row, label = np.array(problem.blocks[2]), np.array(problem.labels)
    row[17, 3] += 1e-9
    label[4] = 1 - label[4]
    other_model: Any = mtcd.Glm("logistic", l2=2.0).problem(make_data(MODEL, N, [3, 7, 5], seed=1))
    found = [
        secret(),
        secret(seed=6),
        secret(epsilon=8.0001),
        secret(delta=2e-5),
        secret(tours=7),
        secret(clip=2.0),
        secret(stepsize=0.5),
        secret(parties={"p1": 3.0}),
        secret(replace(problem, blocks=(*problem.blocks[:2], row))),
        secret(replace(problem, labels=label)),
        secret(replace(problem, blocks=(problem.blocks[1], problem.blocks[0], problem.blocks[2]))),
        secret(other_model),
        secret(clients=mtcd.make_network("path", ["p0", "p1", "other"])),
    ]
    assert len(set(found)) == len(found)
    assert found[0] == secret()


def test_the_order_in_which_parties_are_named_changes_nothing() -> None:
    problem: Any = MODEL.problem(make_data(MODEL, N, [3, 7, 5], seed=1))
    named = {"c": 1.0, "a": 2.0, "b": 3.0}
    secrets = []
    for parties in (named, dict(sorted(named.items()))):
        tours = replace(CLEAR, dp=replace(CLEAR.dp, parties=parties))
        secrets.append(tours._insecure_secret(problem, NETWORK, 5).tobytes())
    assert secrets[0] == secrets[1]


def test_the_secret_is_forgotten_after_the_last_tour() -> None:
    steering, change = PrivateSteering(plan_of()), np.zeros(N)
    for _ in range(5):
        steering.end_tour(change, np.zeros(0), 0.0, 0.0)
    assert steering.secret.size
    steering.released(np.zeros(4, np.int64), 0, 6)
    steering.end_tour(change, np.zeros(0), 0.0, 0.0)
    assert not steering.state()["secret"].size
    with pytest.raises(WireError, match="the budget is for 6"):
        steering.released(np.zeros(4, np.int64), 0, 6)


def test_a_tour_adds_its_change_to_the_scores_and_mixes_nothing() -> None:
    steering, change = PrivateSteering(plan_of()), np.arange(float(N))
    for _ in range(2):
        steering.end_tour(change, np.zeros(0), 0.0, 0.0)
    np.testing.assert_array_equal(steering.scores, 2 * change)
    assert steering.weights.size == 0


def test_two_tours_move_the_scores_by_what_the_parameters_change() -> None:
    problem: Any = MODEL.problem(make_data(MODEL, N, [3, 7, 5], seed=1))
    parties = CLEAR.parties(problem, NETWORK, 5)
    engine, ends = LocalEngine(parties, Ledger()), list[SealedEnd]()

    def see(message: Any) -> None:
        if isinstance(message.payload, SealedEnd):
            ends.append(message.payload)

    engine.listeners = {"test": SimpleNamespace(see=see)}  # type: ignore[dict-item]
    for told in engine.run():
        if told is not None and told.hop == 2:
            break
    holding, clients = parties.server.holding, cast(list[SealedClient], list(parties.clients))
    scores = sum(
        X @ (one.block.theta + one.block.change)
        for X, one in zip(problem.blocks, clients, strict=True)
    )
    np.testing.assert_allclose(holding.steering.scores, scores, atol=2 * 3 / holding.scales.sums)
    assert np.abs(scores).max() > 0
    assert [(end.t, end.told, end.label_sum, end.constant) for end in ends] == [
        (1, False, 0.0, 0.0),
        (2, False, 0.0, 0.0),
    ]
    assert holding.answered == [0, 1, 2]


def test_numbers_by_party() -> None:
    names = tuple("abcdefghi")
    assert by_party((2.0, 2.0, 2.0 + 1e-9), names[:3], "{:.1f}") == "2.0"
    assert by_party((2.0, 2.0 + 1e-7), names[:2], "{:.1f}") == "2.0 (a), 2.0 (b)"
    assert by_party((0.0, 0.0), names[:2], "{:.1f}") == "0.0"
    assert by_party((1.0, 2.5), names[:2], "{:.1f}") == "1.0 (a), 2.5 (b)"
    eight = by_party(tuple(range(8)), names[:8], "{:.0f}")
    assert eight == "0 (a), 1 (b), 2 (c), 3 (d), 4 (e), 5 (f), 6 (g), 7 (h)"
    assert by_party((3, 1, 2, 4, 5, 6, 7, 9, 8), names, "{:.0f}") == "1 to 9"


def test_notes_say_what_a_training_will_spend_and_what_it_has_spent() -> None:
    budget = CLEAR.budget(NETWORK)
    notes = CLEAR.notes(NETWORK)
    noise = ", ".join(f"{m:.1f} (p{k})" for k, m in enumerate(budget.multipliers))
    assert "6 tours, with a noisy gradient for each of 3 parties, 18 releases in all" in notes[1]
    assert f"Noise in clipping lengths: {noise}. Spends epsilon" in notes[1]
    assert "2 (p1)" in notes[1]
    secure = replace(CLEAR, dp=replace(DP, insecure_seeded_noise=False))
    assert [("protects nobody" in " ".join(one.notes(NETWORK))) for one in (CLEAR, secure)] == [
        True,
        False,
    ]
    [part], [whole], [over] = (CLEAR.conditions.end_notes(NETWORK, tours) for tours in (5, 6, 7))
    assert part.startswith("Spent so far: ")
    assert part.endswith("after 5 of 6 tours.")
    assert f"{budget.spent(5)[1]:.3g} (p1)" in part
    assert whole == over
    assert whole.startswith("The budget is spent, and the training has ended: ")
    assert whole.endswith("after 6 of 6 tours.")


def test_private_tours_are_as_many_as_the_budget_is_for() -> None:
    problem: Any = MODEL.problem(make_data(MODEL, N, [3, 7, 5], seed=1))
    assert (
        CLEAR.conditions.most_iterations(problem)
        == CLEAR.most_tours((2, 2, 2))
        == plan_of().most_tours
        == 6
    )
    assert CLEAR.conditions.noisy
    assert CLEAR.describe() == "Private tours, T=6, key at the server"
    with pytest.raises(ConfigError, match="gives the key to the label holder"):
        PrivateTours(server=False, dp=DP)
    with pytest.raises(ConfigError, match="no party is called 'p1'"):
        CLEAR.check(mtcd.make_network("path", ["a", "b"]))
