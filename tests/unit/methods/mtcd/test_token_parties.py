"""Clients and servers of tokens by hand: copies, syncs, and what visits leave on a token."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hand_made_clients import MODEL, arriving, client_of
from mtcd.core.errors import WireError
from mtcd.methods.membership.roaming import Relay
from mtcd.methods.mtcd.client import Done, Share
from mtcd.methods.mtcd.mtcd import MTCD, STCD
from mtcd.methods.mtcd.server import TokenClient
from mtcd.methods.tours.parties import tours_of
from mtcd.models.trees.gains import AWAITED, UNKNOWN, ComparedGains
from mtcd.network.changes import with_changes
from mtcd.network.topology import Change, make_network
from mtcd.privacy.masked.masked import with_masks
from mtcd.protocol.batches import Batches
from mtcd.protocol.codec.extensions import check_slots
from mtcd.protocol.codec.limits import Bounds
from mtcd.protocol.model import LocalUpdates
from mtcd.protocol.party import MONITOR, SERVER, Message
from mtcd.protocol.token import Token
from problems import make_data

DATA = make_data(MODEL, 12, [3, 2, 2], seed=3)
PROBLEM = MODEL.problem(DATA)
PATH = make_network("path", DATA.clients)
START = tuple(np.arange(1.0, 1.0 + block.shape[1]) for block in DATA.blocks)
WARM = replace(PROBLEM, start=START)


def test_a_client_holds_a_copy_for_each_token_of_the_iteration_and_their_average_for_the_next() -> (
    None
):
    client = client_of(MTCD(4, 3, 3, 0.01))
    client.visit(arriving(0))
    client.visit(arriving(1))
    first, second = client.copies[0][0], client.copies[1][0]
    assert first.any()
    assert not np.allclose(first, second)
    assert np.array_equal(client.copy_for(arriving(0)), first)
    assert np.array_equal(client.copy_for(arriving(1)), second)
    assert not client.copy_for(arriving(2)).any()  # theta_k was 0
    mean = (first + second) / 4  # tokens 2 and 3 have not been here
    np.testing.assert_allclose(client.copy_for(Token(0, 1, 0, np.zeros(12), 0.0)), mean)
    np.testing.assert_allclose(client.parameters(), mean)
    client.visit(replace(arriving(2), t=1))  # the sync is behind it
    np.testing.assert_allclose(client.theta[0], mean)
    np.testing.assert_allclose(client.parameters(), mean + (client.copies[2][0] - mean) / 4)


def test_the_penalties_that_tokens_bring_to_the_sync_add_up_to_that_of_the_combined_model() -> None:
    client, tokens = client_of(MTCD(3, 3, 3, 0.01)), [arriving(0), arriving(1)]
    for token in (*tokens, tokens[0]):
        client.visit(token)
    assert all(token.sync_penalty > 0 for token in tokens)
    assert sum(token.sync_penalty for token in tokens) == pytest.approx(
        0.35 * (client.parameters() ** 2).sum()
    )
    assert tokens[0].penalty == pytest.approx(0.35 * (client.copies[0][0] ** 2).sum())


def test_the_message_after_a_visit_says_whether_it_changed_anything(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = client_of(MTCD(2, 3, 3, 0.01))
    message = Message(SERVER, 0, arriving(0))
    assert not client.receive(message)[0].unchanged
    monkeypatch.setattr(client.model, "local_update", lambda theta, *_: theta)
    assert client.receive(message)[0].unchanged


@pytest.mark.parametrize(
    "method", [STCD(1, 0.1), MTCD(2, 3, 1, 0.1), MTCD(2, 3, 1, 0.1, combine="optimal")]
)
def test_training_begins_in_iteration_0(method: MTCD) -> None:
    assert client_of(method).state()["t"] == 0


def test_uploads_before_the_first_token_are_of_the_first_batch() -> None:
    parties = MTCD(2, 3, 1, 0.01, batch=4).parties(WARM, PATH, 7)
    rows = Batches(12, 4, 7).rows(0)
    assert [message.sender for message in parties.opening] == [0, 1, 2]
    for message, block, theta in zip(parties.opening, DATA.blocks, START, strict=True):
        np.testing.assert_allclose(message.payload.representation, (block @ theta)[rows])
        assert message.payload.penalty == pytest.approx(0.35 * (theta**2).sum())


def test_a_client_that_stops_at_a_sync_adopts_its_model_unless_it_has_done_so() -> None:
    client = client_of(MTCD(2, 3, 3, 0.01))
    client.visit(arriving(0))
    client.stop_at_sync(0, {})
    assert client.copies
    assert not client.theta[0].any()
    client.stop_at_sync(1, {})
    assert not client.copies
    assert client.t == 1
    np.testing.assert_array_equal(client.theta[0], client.parameters())
    assert client.parameters().any()


def test_visits_are_undone_up_to_any_earlier_one() -> None:
    client = client_of(MTCD(4, 3, 3, 0.01))
    before = client.parameters()
    client.visit(arriving(0))
    once, kept = client.parameters(), client.visits()
    client.visit(arriving(1))
    assert not np.allclose(client.parameters(), once)
    client.undo_visits(kept)
    np.testing.assert_array_equal(client.parameters(), once)
    assert [*client.copies] == [0]
    client.undo_visits()
    np.testing.assert_array_equal(client.parameters(), before)
    assert not client.copies


def test_a_server_tells_the_hops_of_its_syncs_and_sends_tokens_without_instruction() -> None:
    server = MTCD(2, 5, 1, 0.01).parties(PROBLEM, PATH, 7).server
    server.t = 3
    assert server.last_sync() == (3, 15)
    progress, *sent = [message.payload for message in server.start_iteration()]
    assert (progress.hop, progress.t, progress.penalty) == (15, 3, 0.0)
    assert [(token.index, token.t, token.hop, token.penalty) for token in sent] == [
        (0, 3, 0, 0.0),
        (1, 3, 0, 0.0),
    ]
    assert all(token.slots == {} for token in sent)
    assert progress.aggregate is server.aggregate  # of all samples, unlike that of a batch
    batches = MTCD(2, 5, 1, 0.01, batch=4).parties(PROBLEM, PATH, 7)
    assert batches.opening[0].payload.aggregate is None


def test_the_changes_that_visits_bring_to_the_sync_add_up_to_the_combined_model() -> None:
    client, tokens = client_of(MTCD(3, 3, 3, 0.01, combine="visitors")), [arriving(0), arriving(1)]
    for token in (*tokens, tokens[0]):
        client.visit(token)
    changes = [token.slots["sync_change"] for token in tokens]
    assert len(changes) == 2
    np.testing.assert_allclose(sum(changes), client.model.represent(client.parameters()))


@pytest.mark.parametrize(("hops", "unknown"), [(None, AWAITED), (3, UNKNOWN)])
def test_a_visit_leaves_its_gain_on_the_token(
    hops: int | None, unknown: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = client_of(MTCD(1, hops, 1, 0.01, features=(ComparedGains(3),)))
    token = client.plan.new_token(0, 0, np.zeros(12), 0.0)
    assert token.slots["gains"].tolist() == [unknown] * 3
    assert (token.hop, token.floats) == (0, 12 + 3)

    def gaining(theta: np.ndarray, _: np.ndarray, updates: LocalUpdates) -> np.ndarray:
        updates.gains.own = 2.5
        return theta

    monkeypatch.setattr(client.model, "local_update", gaining)
    client.visit(token)
    assert token.slots["gains"].tolist() == [2.5, unknown, unknown]


def test_the_first_tour_has_the_step_size_of_the_plan_only_where_it_chooses_the_others() -> None:
    for adaptive in (False, True):
        method = replace(
            STCD(stepsize=0.25, walk="tour", acceleration="conjugate"), adaptive=adaptive
        )
        plan = method.plan(12, 1, PATH, 0)
        opening = tours_of(plan).begin(np.zeros(12), 0.0, PROBLEM.fit, 4).opening()
        assert (opening.tour, opening.stepsize) == (4, 0.25 if adaptive else 0.0)


@pytest.mark.parametrize("batch", [None, 4])
def test_a_sync_begins_when_all_tokens_are_back(batch: int | None) -> None:
    server: Any = MTCD(2, 5, 1, 0.01, batch).parties(PROBLEM, PATH, 7).server
    back = [
        Token(i, 0, 5, np.full(12, 1.0 + i), 0.0, 0.5) if batch is None else Done(i)
        for i in range(2)
    ]
    assert server.receive(Message(0, SERVER, back[1])) == []
    sent = server.receive(Message(2, SERVER, back[0]))
    assert (server.t, server.back) == (1, {})
    if batch is None:
        np.testing.assert_allclose(server.aggregate, 1.5)  # the average of both
        assert server.penalty == 1.0
        assert [message.payload.t for message in sent] == [1, 1, 1]
    else:
        assert [(message.to, message.payload) for message in sent] == [
            (k, Share(1)) for k in range(3)
        ]


def test_the_lone_token_starts_with_nothing_at_its_first_client() -> None:
    starts = set()
    for seed in range(8):
        method = STCD(stepsize=0.25)
        first = method.plan(12, 1, PATH, seed).roaming.first(0, 0)
        report, start = method.parties(PROBLEM, PATH, seed).opening
        token = start.payload
        assert (report.sender, report.to, start.sender, start.to) == (first, MONITOR, first, first)
        assert (token.index, token.t, token.hop, token.penalty, token.floats) == (0, 0, 0, 0.0, 12)
        assert not token.aggregate.any()
        starts.add(first)
    assert starts == {0, 1, 2}


def test_a_lone_token_from_given_parameters_collects_all_representations_before_it_trains() -> None:
    for seed in range(6):
        parties = STCD(1, 0.01).parties(WARM, PATH, seed)
        first = STCD(1, 0.01).plan(12, 1, PATH, seed).roaming.first(0, 0)
        (message,) = parties.opening
        assert message.to == message.sender
        while message.payload.hop < 0:
            sent = parties.clients[message.to].receive(message)
            message = sent[-1]
        assert [(one.sender, one.to) for one in sent] == [(first, MONITOR), (first, first)]
        aggregate = sum(block @ theta for block, theta in zip(DATA.blocks, START, strict=True))
        np.testing.assert_allclose(message.payload.aggregate, aggregate)
    assert MTCD(2, 3, 1, 0.01).parties(WARM, PATH, 0).server is not None


def test_clients_forward_tokens_only_where_some_may_be_absent() -> None:
    changing = with_changes(PATH, [Change(3, leave=["c0"])])
    kinds = [type(STCD(1, 0.01).parties(PROBLEM, one, 0).clients[0]) for one in (PATH, changing)]
    assert kinds == [TokenClient, Relay]


def test_masked_tokens_are_held_by_their_last_clients() -> None:
    for batch in (None, 4):
        method = with_masks(MTCD(2, 3, 1, 0.01, batch))
        server: Any = method.parties(PROBLEM, PATH, 7).server
        holders, plan = server.masking.token_holders, method.plan(12, 1, PATH, 7)
        assert (holders is None) == (batch is not None)
        assert holders is None or [holders(t) for t in range(3)] == [
            plan.last_clients(t) for t in range(3)
        ]


def test_gains_on_a_token_are_known_or_not_but_never_negative() -> None:
    bounds = Bounds("a run", 3, frozenset(), (2,), tokens=1).with_slots("gains", gains=3)

    def carrying(*gains: float) -> Token:
        return Token(0, 0, 0, np.zeros(2), 0.0, slots={"gains": np.array(gains)})

    check_slots(carrying(0.5, UNKNOWN, 0.0), bounds)
    with pytest.raises(WireError, match="a negative number"):
        check_slots(carrying(0.5, -0.5, 0.0), bounds)
