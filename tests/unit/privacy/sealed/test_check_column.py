"""The check of the key holder's answers: true ones pass, others do not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mtcd
from clear_parties import CLEAR, NETWORK, parties_of, problem_of, run
from mtcd.core.errors import WireError
from mtcd.methods.privacy_modes import with_privacy
from mtcd.privacy.sealed.bfv.layout import centred
from mtcd.privacy.sealed.bfv.parameters import choose_parameters, plain_prime
from mtcd.privacy.sealed.check_column import draw_weights, with_check, without_check
from mtcd.protocol.party import SERVER

MODULI = [97, plain_prime(8192, 36), plain_prime(16384, 48)]


@given(st.sampled_from(MODULI), st.integers(1, 9), st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_the_last_column_is_the_combination_in_exact_arithmetic(
    modulus: int, columns: int, seed: int
) -> None:
    draw = np.random.default_rng(seed)
    weights = draw_weights(columns, modulus)
    assert 0 <= weights.min() <= weights.max() < modulus
    X = draw.integers(-min(modulus // 2, 2**36), min(modulus // 2, 2**36), (5, columns))
    extended = with_check(X, weights, modulus)
    np.testing.assert_array_equal(extended[:, :-1], X)
    exact = (X.astype(object) @ weights.astype(object)) % modulus
    np.testing.assert_array_equal(extended[:, -1] % modulus, exact.astype(np.int64))

    g = draw.integers(-99, 100, 5).astype(object)
    products = np.array([int(p) % modulus for p in extended.astype(object).T @ g], np.int64)
    answer = centred(products, modulus)
    np.testing.assert_array_equal(without_check(answer, weights, modulus), answer[:-1])


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("lie", [1, -1, 2**20])
def test_an_answer_with_one_false_number_is_refused(place: int, lie: int) -> None:
    modulus = MODULI[1]
    weights = np.array([12345, 2**35])
    products = np.array([3, -4, (3 * 12345 - 4 * 2**35) % modulus])
    np.testing.assert_array_equal(without_check(products, weights, modulus), [3, -4])
    products[place] += lie
    with pytest.raises(WireError, match="does not pass this client's check"):
        without_check(products, weights, modulus)


def test_weights_are_drawn_anew_for_every_client_and_run() -> None:
    modulus = choose_parameters(60, [5], 4).plain_modulus
    drawn = [tuple(draw_weights(5, modulus)) for _ in range(50)]
    assert len(set(drawn)) == 50
    largest = max(max(one) for one in drawn)
    assert 0.9 * modulus < largest < modulus


@pytest.mark.parametrize("server", [True, False])
def test_a_key_holder_that_answers_falsely_is_refused_by_the_client(server: bool) -> None:
    parties, holding = parties_of(problem_of(), replace(CLEAR, server=server))
    released = holding.steering.released

    def lied(values: Any, client: int, t: int) -> Any:
        told = released(values, client, t).copy()
        told[0] += client == 2 and t == 2
        return told

    holding.steering.released = lied
    with pytest.raises(WireError, match="has not decrypted what it was sent"):
        run(parties, 3)
    assert holding.completed == 1
    victim: Any = parties.clients[2]
    assert not victim.block.change.any()  # no step was taken


def test_an_answer_that_comes_after_a_restart_is_checked_with_the_same_weights() -> None:
    problem = problem_of()
    parties, _ = parties_of(problem)
    waiting = list(parties.opening)
    while True:
        message = waiting.pop(0)
        if message.to not in (SERVER, 0, 1, 2):
            continue
        party: Any = parties.server if message.to == SERVER else parties.clients[message.to]
        if message.to == 1 and type(message.payload).__name__ == "SealedAnswer":
            break
        waiting.extend(party.receive(message))

    again: Any = CLEAR.parties(problem, NETWORK, 0).clients[1]
    again.restore(parties.clients[1].state())
    [passed_on] = again.receive(message)
    assert passed_on.payload.place == message.payload.place + 1
    assert again.block.change.any()


def test_with_differential_privacy_there_is_no_check_as_answers_have_noise() -> None:
    method = with_privacy(
        mtcd.MTCD(walk="tour"), mtcd.Privacy("sealed", dp=mtcd.DP(epsilon=3)), split=False
    )
    problem = problem_of("logistic")
    plan = method.plan(problem, NETWORK, 0, None)  # type: ignore[attr-defined]
    assert [plan.asked(k) for k in range(3)] == [12, 13, 14]
    sealed = CLEAR.plan(problem, NETWORK, 0, None)
    assert [sealed.asked(k) for k in range(3)] == [13, 14, 15]
