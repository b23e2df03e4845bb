"""Double masks: the sum of any uploads that have arrived can be opened, and no upload alone,
whoever is late."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mtcd
from masked_trainings import DATA, METHODS, MODEL, delivered, doubly, p_value
from mtcd.core.errors import WireError
from mtcd.federation.recovery.iterations import is_over
from mtcd.methods.privacy_modes import with_privacy
from mtcd.methods.svfl.svfl import SVFL, Shared
from mtcd.privacy.masked.double_client import fewest
from mtcd.privacy.masked.double_masks import DoubleMasks, Opened, add_pair_mask, unmasked
from mtcd.privacy.masked.masked import with_masks
from mtcd.privacy.masked.pair_masks import new_private_key, public_key
from mtcd.privacy.masked.payloads import (
    DoubleMaskedUpload,
    OpenedMasks,
    OpenMasks,
    PublicKey,
    PublicKeys,
)
from mtcd.protocol.codec.envelopes import Envelope
from mtcd.protocol.party import SERVER, Begin, Message
from wired import Signs

UPLOADING = {name: METHODS[name] for name in ("mini-batches", "svfl", "svfl, mini-batches")}
K = 6
PRIVATE = [new_private_key() for _ in range(K)]
PUBLIC = np.stack([public_key(one) for one in PRIVATE])
MASKS = [DoubleMasks(k, PRIVATE[k], PUBLIC) for k in range(K)]


# Masks


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_the_sum_of_those_that_arrived_is_opened_by_them(data: Any) -> None:
    """Left out, and one that is down after its upload; with one answer fewer nothing comes out."""
    participants = tuple(sorted(data.draw(st.sets(st.integers(0, K - 1), min_size=3))))
    arrived = tuple(sorted(data.draw(st.sets(st.sampled_from(participants), min_size=2))))
    whole = len(arrived) == len(participants)
    gone = data.draw(st.sampled_from(arrived)) if whole and data.draw(st.booleans()) else None
    words = data.draw(st.lists(st.integers(-(2**62), 2**62), min_size=K * 3, max_size=K * 3))
    plain = np.array(words, "<i8").reshape(K, 3)
    sent = {k: MASKS[k].masked(plain[k], 5, participants) for k in participants}
    total = sum(sent[k] for k in arrived)
    answers = {
        k: MASKS[k].opened(5, participants, arrived, () if gone is None else (gone,))
        for k in arrived
    }
    if gone is not None:
        del answers[gone]
    before = np.array(total)
    found = unmasked(total, participants, arrived, answers)
    np.testing.assert_array_equal(found, sum(plain[k] for k in arrived))
    np.testing.assert_array_equal(total, before)  # the sum with masks is kept
    np.testing.assert_array_equal(plain, np.array(words, "<i8").reshape(K, 3))
    del answers[next(iter(answers))]
    if gone is not None or len(arrived) < len(participants):
        assert unmasked(total, participants, arrived, answers) is None


def known_masks(participants: tuple[int, ...], sync: int, answers: dict[int, list[Opened]]) -> Any:
    """The seeds that answers contain: of pairs, and shares of own masks, found by comparing with
    all that exist."""
    contained = {
        row.tobytes()
        for given_ in answers.values()
        for one in given_
        for row in (*one.theirs, *one.mine)
    }
    pairs, shares = set(), set()
    for i in participants:
        for j in participants:
            if i < j:
                pair, of_first, of_second = MASKS[i]._seeds(j, sync)
                pairs |= {(i, j), (j, i)} if pair.tobytes() in contained else set()
                # of the mask of i, with j
                shares |= {(i, j)} if of_first.tobytes() in contained else set()
                shares |= {(j, i)} if of_second.tobytes() in contained else set()
    return pairs, shares


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_never_are_all_masks_of_an_upload_open(data: Any) -> None:
    """Even if a server tells each client something else: a client answers for one set of
    uploads."""
    participants = tuple(range(K))
    answers = {}
    for k in participants:
        others = data.draw(st.sets(st.sampled_from(participants), min_size=fewest(K)))
        arrived = tuple(sorted({*others, k}))
        others = [j for j in arrived if j != k]
        gone = tuple(data.draw(st.sets(st.sampled_from(others), max_size=len(arrived) - fewest(K))))
        answers[k] = [MASKS[k].opened(9, participants, arrived, down) for down in ((), gone)]
    pairs, shares = known_masks(participants, 9, answers)
    for k in participants:
        others = [j for j in participants if j != k]
        assert not all((k, j) in pairs and (k, j) in shares for j in others)


def test_a_late_upload_keeps_its_own_mask_and_a_summed_one_its_pair_masks() -> None:
    participants, arrived = tuple(range(K)), (0, 1, 2, 4, 5)
    answers = {k: [MASKS[k].opened(3, participants, arrived, ())] for k in arrived}
    pairs, shares = known_masks(participants, 3, answers)
    assert {(3, j) for j in arrived} <= pairs
    assert not any(owner == 3 for owner, _ in shares)
    for k in arrived:
        assert {(k, j) for j in participants if j != k} <= shares
        assert {j for i, j in pairs if i == k} == {3}
    late = MASKS[3].masked(np.zeros(4000, "<i8"), 3, participants)
    for k in arrived:  # what a server can take off
        add_pair_mask(late, answers[k][0].theirs[3], k, 3)
    assert p_value(late) > 1e-6


def test_masks_of_syncs_differ() -> None:
    zeros = np.zeros(4000, "<i8")
    one, two = (MASKS[0].masked(zeros, sync, range(K)) for sync in (1, 2))
    assert p_value(one) > 1e-6
    assert p_value(one - two) > 1e-6


# Training


@pytest.mark.parametrize("name", UPLOADING)
def test_the_training_is_the_masked_one_bit_for_bit(name: str) -> None:
    method = UPLOADING[name]
    masked, double = (
        mtcd.train(DATA, MODEL, "cycle", one, mtcd.Stop(iterations=60))
        for one in (with_masks(method), doubly(method))
    )
    np.testing.assert_array_equal(double.coefficients, masked.coefficients)
    uploads = masked.ledger.message_counts[1]
    more = np.array(double.ledger.message_counts) - masked.ledger.message_counts
    assert more.tolist() == [0, uploads, uploads]  # one for each upload, and one to its client


@pytest.mark.parametrize("name", UPLOADING)
def test_a_warm_start_is_the_masked_one(name: str) -> None:
    first = mtcd.train(DATA, MODEL, "cycle", METHODS["svfl"], mtcd.Stop(iterations=5))
    masked, double = (
        mtcd.train(DATA, MODEL, "cycle", one, mtcd.Stop(iterations=20), start=first)
        for one in (with_masks(UPLOADING[name]), doubly(UPLOADING[name]))
    )
    np.testing.assert_array_equal(double.coefficients, masked.coefficients)


@pytest.mark.parametrize("name", UPLOADING)
def test_the_server_receives_uniform_words_and_seeds(name: str) -> None:
    messages, _ = delivered(doubly(UPLOADING[name]), 400)
    words = np.concatenate(
        [one.payload.words for one in messages if isinstance(one.payload, DoubleMaskedUpload)]
    )
    seeds = [
        one.payload.theirs[k]
        for one in messages
        if isinstance(one.payload, OpenedMasks)
        for k in range(5)
    ]
    assert p_value(words) > 1e-6
    assert p_value(np.concatenate([seed for seed in seeds if seed.any()])) > 1e-6
    kinds = {type(one.payload).__name__ for one in messages}
    assert kinds <= {"PublicKey", "DoubleMaskedUpload", "OpenedMasks", "Done"}
    assert all(
        not one.payload.mine.any() for one in messages if isinstance(one.payload, OpenedMasks)
    )


# Who takes part


def asked_at(name: str, t: int, down: frozenset[int] = frozenset()) -> tuple[Any, OpenMasks]:
    """Client 2 after its upload for a batch, and the request to open masks, made while these
    clients are down, though all have uploaded."""
    method = doubly(UPLOADING[name])
    parties = method.parties(MODEL.problem(DATA), mtcd.make_network("complete", DATA.clients), 3)
    server: Any = parties.server
    waiting = deque(parties.opening)
    while True:
        message = waiting.popleft()
        if server.batch == t and len(server.arrived) == 4:
            server.down = down
        if isinstance(message.payload, OpenMasks) and message.to == 2 and message.payload.t == t:
            return parties.clients[2], message.payload
        party = (
            server
            if message.to == SERVER
            else parties.clients[message.to]
            if message.to >= 0
            else None
        )
        waiting += [] if party is None else party.receive(message)


@pytest.mark.parametrize(
    ("name", "down", "after", "participants"),
    [
        ("svfl", {4}, 3, (0, 1, 2, 3)),
        ("svfl", {1, 4}, 3, (0, 2, 3)),
        ("svfl", {0, 1, 4}, 3, (0, 1, 2, 3, 4)),  # two are too few: all, so the next sync waits
        ("svfl, mini-batches", {4}, 2, (0, 1, 2, 3, 4)),  # the first epoch: all must be there once
        ("svfl, mini-batches", {4}, 9, (0, 1, 2, 3)),
    ],
)
def test_the_clients_that_are_up_take_part_in_the_next_sync(
    name: str, down: set[int], after: int, participants: tuple[int, ...]
) -> None:
    _, found = asked_at(name, after, frozenset(down))
    assert found.arrived == (0, 1, 2, 3, 4)
    assert found.participants == participants


@pytest.mark.parametrize("clients", range(4, 12))
def test_a_sum_has_three_clients_or_more_and_more_than_half(clients: int) -> None:
    assert fewest(clients) == min(n for n in range(3, clients) if 2 * n > clients)


# A server that asks for more than it may


@pytest.fixture
def asked() -> tuple[Any, OpenMasks]:
    """When every sample has been summed."""
    return asked_at("svfl", 3)


def request(payload: OpenMasks, **changed: Any) -> Message:
    return Message(SERVER, 2, replace(payload, **changed))


def test_masks_are_opened_for_one_set_of_uploads_only(asked: Any) -> None:
    client, payload = asked
    [first] = client.receive(request(payload))
    [again] = client.receive(request(payload, gone=(4,)))
    assert np.array_equal(first.payload.theirs, again.payload.theirs)
    assert again.payload.mine[4].any()
    [late] = client.receive(request(payload))
    assert np.array_equal(late.payload.mine, again.payload.mine)
    for more in ({"arrived": (0, 1, 2, 3)}, {"gone": (0,)}, {"gone": (0, 4)}):
        with pytest.raises(WireError, match="opened masks before"):
            client.receive(request(payload, **more))


@pytest.mark.parametrize(("name", "t"), [("svfl", 1), ("svfl, mini-batches", 2)])
def test_nobody_is_left_out_of_the_first_sum_of_a_sample(name: str, t: int) -> None:
    """The next change would be the representation itself."""
    for arrived in ((0, 1, 2, 3), (0, 1, 3, 4)):
        client, payload = asked_at(name, t)
        with pytest.raises(WireError, match="first sum of a sample"):
            client.receive(request(payload, arrived=arrived, included=t + 1 if 2 in arrived else 0))
        # links may have overtaken the first sum
        assert client.is_early(request(payload, arrived=arrived).payload)
    assert not client.is_early(payload)
    assert len(client.receive(request(payload))) == 1


def test_in_a_federation_keys_are_exchanged_once(asked: Any) -> None:
    """New ones would let a client upload its representation again, instead of its change."""
    client, _ = asked
    client.identity = Signs()
    with pytest.raises(WireError, match="exchanged before"):
        client.receive(Message(SERVER, 2, Begin()))
    assert (
        client.receive(Message(SERVER, 2, PublicKeys(client.public, np.zeros(5, "<i8"), 0, 0)))
        == []
    )


def test_the_key_of_another_client_is_refused_and_would_be_of_no_use() -> None:
    """Client ``thief`` gives the public key of ``victim``: the seeds that it shares with others
    stay its own.

    The keys of a pair are in the order of the numbers: where both are above the other client, or
    both below it, only the numbers tell the two pairs apart.
    """
    for victim, thief, third in ((0, 5, 3), (4, 5, 3), (5, 4, 0), (0, 1, 3), (2, 0, 5)):
        public = PUBLIC.copy()
        public[thief] = public[victim]
        other = DoubleMasks(third, PRIVATE[third], public)
        theirs = {row.tobytes() for row in other._seeds(victim, 1)}
        assert not theirs & {row.tobytes() for row in other._seeds(thief, 1)}
    public = PUBLIC.copy()
    public[5] = public[0]
    method = doubly(UPLOADING["svfl"])
    parties = method.parties(MODEL.problem(DATA), mtcd.make_network("complete", DATA.clients), 3)
    with pytest.raises(WireError, match="the same of two clients"):
        parties.clients[1].receive(
            Message(SERVER, 1, PublicKeys(public[[0, 1, 2, 3, 5]], np.zeros(5, "<i8"), 0, 0))
        )


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"arrived": (1, 2)}, "arrived are fewer than 3"),
        ({"gone": (0, 1, 4)}, "fewer than 3"),
        ({"gone": (2,)}, "take part"),
        ({"participants": (2,)}, "participants are fewer than 3"),
        ({"included": 0}, "leaves out an upload"),
    ],
)
def test_a_request_that_would_reveal_too_much_is_refused(
    asked: Any, changed: Any, reason: str
) -> None:
    client, payload = asked
    with pytest.raises(WireError, match=reason):
        client.receive(request(payload, **changed))


def test_a_client_uploads_once_for_a_batch_and_only_if_it_takes_part(asked: Any) -> None:
    """Two uploads with the same masks would differ by what is masked."""
    client, payload = asked
    shared = Message(SERVER, 2, Shared(payload.t - 1, np.ones(60)))
    assert client.receive(shared) == []
    client.receive(request(payload, participants=(0, 1, 3, 4)))
    assert client.receive(Message(SERVER, 2, Shared(payload.t, np.ones(60)))) == []


def test_an_announcement_that_was_overtaken_changes_nothing(asked: Any) -> None:
    client, payload = asked
    client.receive(request(payload))
    client.receive(request(payload, t=payload.t + 1, arrived=(0, 1, 3), participants=(0, 2, 3)))
    known = client.known
    assert client.receive(request(payload)) == []
    assert client.known == known == (payload.t + 2, (0, 2, 3))
    later, early = (Shared(payload.t + ahead, np.ones(60)) for ahead in (2, 1))
    assert client.is_early(later)
    assert not client.is_early(early)


def test_a_training_that_begins_again_has_new_keys(asked: Any) -> None:
    client, _ = asked
    [first], [second] = (client.receive(Message(SERVER, 2, Begin())) for _ in range(2))
    assert not np.array_equal(first.payload.key, second.payload.key)
    assert client.is_early(Shared(0, np.ones(60)))
    assert not client.is_early(Begin())


def test_a_client_that_is_left_out_opens_nothing(asked: Any) -> None:
    client, payload = asked
    assert client.receive(request(payload, arrived=(0, 1, 3, 4), included=0)) == []


def test_messages_about_masks_are_never_stale() -> None:
    """They do not depend on tokens: an iteration that restarts must not take them back."""
    seeds = np.ones((4, 2), "<i8")
    about_masks = (
        DoubleMaskedUpload(2, 0, seeds[0]),
        OpenMasks(2, 0, (), (), (), 0),
        OpenedMasks(2, 0, seeds, seeds),
    )
    keys = PublicKey(seeds[0], 0), PublicKeys(seeds, seeds[:, 0], 0, 0)
    for payload in (*about_masks, Begin(), *keys):
        envelope = Envelope(0, SERVER, 0, 2, 0, {}, Message(0, SERVER, payload))
        assert not is_over(envelope, 5, 4096)


# Settings


def test_privacy_in_train_and_in_configs() -> None:
    privacy = mtcd.Privacy(aggregation="double-masked")
    assert with_privacy(SVFL(), privacy, split=False) == doubly(SVFL())
    network = mtcd.make_network("complete", DATA.clients)
    costs = mtcd.Costs(per="float")
    method = doubly(SVFL(stepsize=0.01))
    run = mtcd.train(DATA, MODEL, network, method, mtcd.Stop(iterations=3), costs=costs)
    per_round = method.prices(network, 0).iteration(costs, method.messages(network, 0, 60, 1).sizes)
    assert run.final.cost == pytest.approx(3 * per_round)
