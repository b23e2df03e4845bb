"""The parties of sealed tours, message by message, with a cipher in the clear: what they compute,
send and refuse."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from clear_parties import (
    CLEAR,
    MODELS,
    NETWORK,
    WIDTHS,
    N,
    of_kind,
    parties_of,
    problem_of,
    run,
)
from mtcd.core.errors import DataError, WireError
from mtcd.engines.local import LocalEngine
from mtcd.methods.past_weights import PAST
from mtcd.privacy.sealed.bfv.cipher import find
from mtcd.privacy.sealed.client import LabelHolder, SealedClient
from mtcd.privacy.sealed.conditions import SealedSizes
from mtcd.privacy.sealed.holder import KeyHolding, LoneHolder
from mtcd.privacy.sealed.payloads import (
    NextTour,
    SealedAnswer,
    SealedEnd,
    SealedKeys,
    SealedRequest,
    SealedToken,
    as_block,
)
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.protocol.party import MONITOR, SERVER, Message, Progress

HOLDERS = pytest.mark.parametrize("server", [True, False], ids=["server", "alone"])


@HOLDERS
@pytest.mark.parametrize("holder", [0, 1])
def test_the_first_tour_minimises_f_block_by_block(server: bool, holder: int) -> None:
    """For squared loss the bound is f itself: a tour is one round of the method of Gauss and
    Seidel."""
    problem = problem_of()
    parties, holding = parties_of(problem, replace(CLEAR, server=server, holder=holder))
    seen = run(parties, 1)
    residual, l2 = -problem.labels, 0.5
    visited = list(dict.fromkeys(holding.plan.order(1)))
    for k in visited:
        X, client = problem.blocks[k], parties.clients[k]
        theta = -np.linalg.solve(X.T @ X + l2 * np.eye(X.shape[1]), X.T @ residual)
        np.testing.assert_allclose(client.block.change, theta, atol=2e-2 * np.abs(theta).max())
        residual = residual + X @ client.block.change
    assert [request.client for request in of_kind(seen, SealedRequest)][-1] == visited[-1]
    exact, resolution = problem.labels @ problem.labels / 2, holding.steering.resolution
    assert holding.steering.constant == pytest.approx(exact, abs=resolution)
    assert holding.steering.constant >= exact * (1 - 1e-12)
    assert resolution == (holding.plan.start / 2**16 if server else 0)
    assert (holding.tour, holding.completed) == (1, 1)


@HOLDERS
@pytest.mark.parametrize("kind", MODELS)
def test_the_key_holder_knows_f_and_the_scores_of_the_models(kind: str, server: bool) -> None:
    problem = problem_of(kind)
    parties, holding = parties_of(problem, replace(CLEAR, server=server))
    if server:
        holder: Any = parties.clients[0]
        holder.sums.budget = 1000
    run(parties, 4)
    steering, theta = holding.steering, parties.parameters()
    scores = problem.aggregate(theta)
    np.testing.assert_allclose(steering.scores, scores, atol=0.02 * np.abs(scores).max())
    assert steering.labels[0] == pytest.approx(problem.labels @ scores, rel=0.01)
    assert steering.objective() == pytest.approx(problem.evaluate(theta), rel=0.01)
    assert problem.evaluate(theta) < 0.5 * problem.evaluate([np.zeros(d) for d in WIDTHS])
    assert {i: weight.tolist() for i, weight in holding.past.items()} == {
        i: [weight] for i, weight in enumerate(steering.weights)
    }


@HOLDERS
def test_the_model_is_that_of_the_tour_that_ended_last_while_the_next_is_under_way(
    server: bool,
) -> None:
    parties, _ = parties_of(problem_of(), replace(CLEAR, server=server))
    engine, latest, seen = LocalEngine(parties, Ledger()), list[list[np.ndarray]](), []

    def see(message: Message) -> None:
        seen.append(message)
        for now, then in zip(parties.parameters(), latest[-1], strict=True):
            np.testing.assert_array_equal(now, then)

    engine.listeners = {"test": SimpleNamespace(see=see)}  # type: ignore[dict-item]
    for told in engine.run():
        latest.append([theta.copy() for theta in parties.parameters()])
        if told is not None and told.hop == 2:
            break
    assert len(latest) == 3
    assert all((a != b).any() for a, b in zip(latest[1], latest[2], strict=True))
    assert len(seen) > 10


@HOLDERS
def test_what_the_key_holder_opens_is_flooded_and_nothing_else(server: bool) -> None:
    """The label holder is in the middle, where a tour passes it halfway."""
    parties, holding = parties_of(problem_of(), replace(CLEAR, server=server, holder=1))
    seen = run(parties, 2)
    key, length = holding.key, holding.plan.length
    assert length == 4
    places = [token.place for token in of_kind(seen, SealedToken) if token.t == 2]
    assert places == ([0, 1, 2, 3, 4] if server else [1, 2, 3, 4])
    for token in of_kind(seen, SealedToken):
        flooded = key.vector_from_bytes(token.data.tobytes()).flooded
        assert flooded == (token.place == length and not server)
    ends = of_kind(seen, SealedEnd)
    assert len(ends) == 2 * server
    assert all(key.vector_from_bytes(end.token.tobytes()).flooded for end in ends)
    hops = [message for message in seen if message.hop_floats]
    assert all(message.hop_floats == message.floats for message in hops)
    assert [(message.sender, message.to) for message in hops[:4]] == list(
        zip(holding.plan.order(1), holding.plan.order(1)[1:], strict=False)
    )


@HOLDERS
def test_keys_are_sent_once_to_all_but_their_holder(server: bool) -> None:
    parties, holding = parties_of(problem_of(), replace(CLEAR, server=server))
    keys = [message for message in run(parties, 2) if isinstance(message.payload, SealedKeys)]
    sent = [(message.sender, message.to, message.payload.client) for message in keys]  # type: ignore[attr-defined]
    if server:
        assert sent == [(SERVER, 0, 0), (SERVER, 1, 1), (SERVER, 2, 2)]
    else:
        assert sent == [(0, 1, 1), (0, 1, 2), (1, 2, 2)]
    assert holding.fingerprint == holding.key.fingerprint


@pytest.mark.parametrize("ones", [3, 5, 11, 20])
def test_a_sum_over_labels_is_as_fine_as_a_difference_of_two_tokens_leaves_room_for(
    ones: int,
) -> None:
    problem = replace(problem_of("logistic"), labels=(np.arange(N) < ones).astype(float))
    parties, holding = parties_of(problem)
    run(parties, 1)
    holder: Any = parties.clients[0]
    column, scale = holder._label_column()
    s = holding.scales
    assert (column[:N, 0] == scale * problem.labels).all()
    largest = scale * np.sqrt(ones) * 2 * s.longest
    assert 0.49 * s.parameters.half < largest <= s.parameters.half


def test_tours_go_on_until_their_number_is_reached() -> None:
    plan = parties_of(problem_of())[1].plan
    for most, t, goes_on in ((None, 99, True), (3, 2, True), (3, 3, False), (3, 4, False)):
        holding = KeyHolding(SERVER, replace(plan, most_tours=most), None)
        holding.tour = t
        report, *signal = holding._next_tour()
        assert (report.to, report.payload) == (MONITOR, Progress(t, t, None, 0.0))
        assert [(one.sender, one.to, one.payload) for one in signal] == [
            (SERVER, SERVER, NextTour(t + 1))
        ] * goes_on


def test_the_first_messages_of_a_training() -> None:
    for server in (True, False):
        parties, _ = parties_of(problem_of(), replace(CLEAR, server=server))
        holder = SERVER if server else 0
        report, signal = parties.opening
        assert (report.sender, report.to, report.payload) == (
            holder,
            MONITOR,
            Progress(0, 0, None, 0.0),
        )
        assert (signal.sender, signal.to, signal.payload) == (holder, holder, NextTour(1))
        last = parties.server or parties.clients[0]
        assert last.last_sync() == (0, 0)
        run(parties, 2)
        assert last.last_sync() == (2, 2)
        assert all(isinstance(client, SealedClient) for client in parties.clients)
        assert isinstance(parties.clients[0], LabelHolder if server else LoneHolder)


def test_a_tour_that_corrects_has_a_token_with_room_for_it() -> None:
    _, holding = parties_of(problem_of())
    differ = 0
    for f in 100.0 * 2.0 ** np.linspace(0, 2, 30):
        holding.steering.constant = f  # which is f where all scores are 0
        scales = [holding.begin(t) and holding.scale for t in (19, 20, 21)]
        assert scales == [
            holding.scales.token(f),
            holding.scales.token_to_correct(f),
            holding.scales.token(f),
        ]
        differ += scales[0] != scales[1]
    assert differ > 0


def test_what_is_for_others_is_passed_on() -> None:
    parties, _ = parties_of(problem_of(), replace(CLEAR, server=False))
    middle, data = parties.clients[1], as_block(bytes(16))
    keys, answer, request = (
        SealedKeys(1, 2, data),
        SealedAnswer(2, 1, 2, np.ones(3)),
        SealedRequest(2, 1, 2, data),
    )
    for payload, sender, to, floats in ((keys, 0, 2, 2), (answer, 0, 2, 3), (request, 2, 0, 2)):
        [passed] = middle.receive(Message(sender, 1, payload))
        assert (passed.sender, passed.to, passed.floats, passed.hop_floats) == (1, to, floats, 0)
        assert passed.payload is payload
    with pytest.raises(WireError, match="a client of sealed tours receives"):
        middle.receive(Message(0, 1, NextTour(1)))


def test_at_the_end_clients_are_where_the_last_complete_tour_ended() -> None:
    """Client 1 has begun tour 3: it moves to the mix of tour 3 if that is the last one, and back if
    tour 2 is.

    It has nothing from which it could go back further.
    """
    for last, weights in ((3, [0.5, 2.0]), (2, [9.0, 9.0]), (1, [9.0, 9.0])):
        client: Any = parties_of(problem_of())[0].clients[1]
        block, d = client.block, WIDTHS[1]
        theta, change, move = (np.arange(float(d)) + i for i in range(3))
        block.tour, block.theta, block.change, block.moves = 3, theta, change, [move]
        block.errors = [np.zeros(N)] * 3
        client.token = client.mask = object()
        np.testing.assert_array_equal(client.parameters(), theta + change)
        # the first of each
        past = {i: np.array([w, 7.0]) for i, w in enumerate(weights)}
        client.stop_at_sync(last, {"past": past})
        expected = {3: theta + 0.5 * change + 2.0 * move, 2: theta, 1: theta + change}[last]
        np.testing.assert_array_equal(client.parameters(), expected)
        assert (client.token, client.mask, block.tour) == (None, None, max(last + 1, 3))


@HOLDERS
def test_the_key_is_the_one_that_its_owner_keeps(server: bool) -> None:
    """In a federation it lies in the run folder: a new one could not open tokens of the last."""
    kept: list[Any] = []

    def make_key(parameters: Any) -> Any:
        kept.append(find("clear").generate(parameters))
        return kept[-1]

    method, problem = replace(CLEAR, server=server, holder=0), problem_of()
    parties: Any = method.parties(problem, NETWORK, 0, None, make_key)
    holding = (parties.server or parties.clients[0]).holding
    assert holding.key is kept[0]
    assert holding.key is holding.key
    assert len(kept) == 1


def test_the_weights_of_the_end_are_those_of_the_moves_in_order() -> None:
    parties, _ = parties_of(problem_of(), CLEAR)
    client: Any = parties.clients[1]
    used: list[tuple[int, list[float]]] = []
    client.block = SimpleNamespace(
        tour=3, start_tour=lambda t, weights, stretch: used.append((t, weights.tolist()))
    )
    past = {i: np.array([float(i)]) for i in (2, 0, 1)}
    for ended in (3, 2, 1):
        client.stop_at_sync(ended, {PAST.name: past})
    # after tour 3 its own mix; after tour 2 what tour 3 has begun is undone; tour 1 is long over
    assert used == [(4, [0.0, 1.0, 2.0]), (3, [])]


def test_f_may_be_at_its_least_but_not_below_it(monkeypatch: pytest.MonkeyPatch) -> None:
    parties, holding = parties_of(problem_of("logistic"), CLEAR)
    run(parties, 1)
    least = 5.0
    monkeypatch.setattr(type(holding.plan.loss), "least", lambda self, samples: least)

    def ends_at(objective: float) -> None:
        monkeypatch.setattr(type(holding.steering), "objective", lambda self: objective)
        holding.end_tour(holding.opened, holding.opened, lambda change: 0.0)

    ends_at(least)
    assert holding.seen[-1] == least
    with pytest.raises(DataError):
        ends_at(float(np.nextafter(least, -np.inf)))


def test_sizes_that_were_agreed_go_before_those_of_the_problem() -> None:
    """In a federation nobody has the whole problem: the bound of f(0) is the label holder's."""
    parties: Any = CLEAR.parties(problem_of(), NETWORK, 0, SealedSizes(WIDTHS, 2.0**20))
    assert parties.clients[1].plan.start == 2.0**20


def test_what_was_measured_before_stays_known() -> None:
    _, holding = parties_of(problem_of(), CLEAR)
    steering = holding.steering
    known = steering.products.copy()
    steering._measured(np.arange(1.0, 4.0))
    assert (steering.products == known).all()
