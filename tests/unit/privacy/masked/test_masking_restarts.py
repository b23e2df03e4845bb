"""A client that is restarted, perhaps from an older journal, uses no mask again, and the sums are
still right."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

import mtcd
from masked_trainings import DATA, METHODS, MODEL, p_value
from mtcd.core.errors import WireError
from mtcd.methods.method import Method
from mtcd.privacy.masked.masked import with_masks
from mtcd.privacy.masked.pair_masks import new_private_key, public_key, shared_keys
from mtcd.privacy.masked.payloads import (
    DoubleMaskedUpload,
    MaskedToken,
    MaskedUpload,
    OpenedMasks,
    OpenMasks,
    PublicKeys,
)
from mtcd.protocol.codec.records import pack, unpack
from mtcd.protocol.party import MONITOR, SERVER, Message
from wired import Signs

UPLOADS = MaskedUpload | MaskedToken | DoubleMaskedUpload
K = len(DATA.clients)
CASES: dict[str, Method] = {
    "svfl": with_masks(METHODS["svfl"]),
    "mini-batches": with_masks(METHODS["mini-batches"]),
    "tokens": with_masks(METHODS["average"]),
    "double, svfl": with_masks(METHODS["svfl"], "double-masked"),
    "double, mini-batches": with_masks(METHODS["mini-batches"], "double-masked"),
}
WHO = 2


@dataclass
class Training:
    """A training whose messages are delivered one by one, with all uploads that were sent."""

    method: Method
    network: Any = field(default_factory=lambda: mtcd.make_network("complete", DATA.clients))
    uploads: list[tuple[int, Any]] = field(default_factory=list)
    """By client."""
    aggregates: dict[int, Any] = field(default_factory=dict)
    """By hop, of the reports to the monitor."""

    def __post_init__(self) -> None:
        self.parties = self.fresh()
        self.clients: list[Any] = list(self.parties.clients)
        self.waiting = deque(self.parties.opening)

    def fresh(self) -> Any:
        parties = self.method.parties(MODEL.problem(DATA), self.network, 3)
        for client in parties.clients:
            client.identity = Signs()
        return parties

    def step(self) -> None:
        message = self.waiting.popleft()
        if message.to == MONITOR:
            self.aggregates[message.payload.hop] = message.payload.aggregate
            return
        party = self.parties.server if message.to == SERVER else self.clients[message.to]
        if party.is_early(message.payload):
            self.waiting.append(message)
            return
        self.send(party.receive(message))

    def send(self, messages: Any) -> None:
        self.uploads += [
            (one.sender, one.payload) for one in messages if isinstance(one.payload, UPLOADS)
        ]
        self.waiting += messages

    def run(self, reports: int) -> None:
        while len(self.aggregates) < reports:
            self.step()

    def upload_of(self, client: int) -> Any:
        """Step until the client uploads again. Returns the message that caused it, the state
        before, and the upload."""
        while True:
            cause, before = pack(self.waiting[0]), pack(self.clients[client].state())
            count = len(self.uploads)
            self.step()
            made = [one for sender, one in self.uploads[count:] if sender == client]
            if made:
                return unpack(cause), before, made[0]

    def restart(self, client: int, journal: bytes) -> None:
        """Another process of a client begins with this journal, and its key is the next message
        that arrives."""
        again = self.fresh().clients[client]
        again.restore(unpack(journal))
        self.clients[client] = again
        self.waiting.extendleft(again.restarted())


def plain(method: str, reports: int) -> dict[int, Any]:
    training = Training(CASES[method])
    training.run(reports)
    return training.aggregates


def same_sync(one: Any, other: Any) -> bool:
    return sync_of(one) == sync_of(other) and getattr(one, "index", 0) == getattr(other, "index", 0)


def sync_of(upload: Any) -> int:
    return int(upload.sync if isinstance(upload, MaskedUpload) else upload.t)


@pytest.mark.parametrize(
    "older", [True, False], ids=["journal before the upload", "journal after it"]
)
@pytest.mark.parametrize("name", CASES)
def test_masks_differ_after_a_restart_and_the_sums_are_right(name: str, older: bool) -> None:
    training = Training(CASES[name])
    training.run(4)
    cause, before, first = training.upload_of(WHO)
    after = pack(training.clients[WHO].state())
    [sent] = [one for one in training.waiting if one.payload is first]
    training.waiting = deque(one for one in training.waiting if one is not sent)
    training.send(training.parties.server.receive(sent))  # others have still to upload
    if older:  # the client does not know that it has uploaded
        training.waiting.appendleft(cause)
    count = len(training.uploads)
    training.restart(WHO, before if older else after)
    training.run(12)

    expected = plain(name, 12)
    for hop, aggregate in training.aggregates.items():
        if aggregate is not None:
            np.testing.assert_allclose(aggregate, expected[hop], atol=1e-8)
    again = [
        one for sender, one in training.uploads[count:] if sender == WHO and same_sync(one, first)
    ]
    assert again, "the upload was not sent again"
    for one in again:  # of the same numbers, so that they differ by their masks
        assert p_value(one.words - first.words) > 1e-6


@pytest.mark.parametrize("name", CASES)
def test_no_two_uploads_of_anybody_have_the_same_masks(name: str) -> None:
    """Those of other clients, too: a mask that both of a pair have is new if one of all clients has
    a new key."""
    training = Training(CASES[name])
    training.run(3)
    for who in (1, 3, 1):
        training.upload_of(who)
        training.restart(who, pack(training.clients[who].state()))
        for _ in range(7):
            training.step()
    training.run(12)
    assert training.aggregates.keys() == plain(name, 12).keys()
    repeated = 0
    for number, (sender, one) in enumerate(training.uploads):
        for other_sender, other in training.uploads[:number]:
            if sender == other_sender and same_sync(one, other):
                repeated += 1
                assert one.generation != other.generation
                assert p_value(one.words - other.words) > 1e-6
    assert repeated >= 3


@pytest.mark.parametrize("name", ["svfl", "mini-batches", "double, svfl", "double, mini-batches"])
def test_the_others_refuse_the_key_of_a_client_whose_journal_lacks_uploads(name: str) -> None:
    """Also where the server says nothing. It would learn what one client has changed from two
    different sums."""
    training = Training(CASES[name])
    training.run(4)
    _, journal, _ = training.upload_of(WHO)
    training.run(8)
    training.restart(WHO, journal)
    with pytest.raises(
        WireError, match=f"one of client {WHO} with [0-9]+ uploads, but.*from an earlier moment"
    ):
        training.run(12)


def test_the_uploads_that_a_key_is_given_with_are_signed() -> None:
    training = Training(CASES["svfl"])
    training.run(4)
    training.restart(WHO, pack(training.clients[WHO].state()))
    keys: Any = None
    while keys is None:
        training.step()
        sent = [
            one for one in training.waiting if one.to == 0 and hasattr(one.payload, "signatures")
        ]
        keys = sent[0].payload if sent else None
    uploads = keys.uploads.copy()
    uploads[WHO] += 1
    with pytest.raises(AssertionError):  # of the signatures of the test
        training.clients[0].receive(Message(SERVER, 0, replace(keys, uploads=uploads)))


def test_keys_of_an_earlier_generation_or_process_are_not_used_again() -> None:
    training = Training(CASES["svfl"])
    first: Any = None
    while first is None:
        training.step()
        first = next(
            (one.payload for one in training.waiting if hasattr(one.payload, "signatures")), None
        )
    training.run(4)
    client = training.clients[WHO]
    assert client.receive(Message(SERVER, WHO, first)) == []
    training.restart(WHO, pack(client.state()))
    restarted = training.clients[WHO]
    late = replace(first, generation=9)  # its own key in it is that of the process before
    assert restarted.receive(Message(SERVER, WHO, late)) == []
    assert not len(restarted.public)


def test_a_token_is_masked_once_for_a_sync() -> None:
    """A server that starts a token twice would have two uploads with the same masks."""
    training = Training(CASES["tokens"])
    training.run(4)
    client = training.clients[training.uploads[-1][0]]
    sync, place, words = client.latest[-1]
    for at in (sync, sync - 2):
        with pytest.raises(WireError, match="made an upload before"):
            client._offer((at, place, words + 1))


def test_keys_of_pairs_follow_from_all_keys_and_their_generation() -> None:
    private = [new_private_key() for _ in range(3)]
    public = np.stack([public_key(one) for one in private])
    changed = public.copy()
    changed[2] = public_key(new_private_key())
    found = [shared_keys(0, private[0], public)[1], shared_keys(0, private[0], public, 1)[1]]
    found += [shared_keys(0, private[0], changed)[1], shared_keys(0, private[0], changed, 1)[1]]
    assert len(set(found)) == 4


# Double masks: a restart between the request to open masks and the sum


def until(training: Training, ready: Callable[[Any], bool]) -> Any:
    while not ready(training.parties.server):
        training.step()
    return training.parties.server


def lose_answers(training: Training, *clients: int) -> None:
    """What these clients have opened does not reach the server."""
    kept = [
        one
        for one in training.waiting
        if not (isinstance(one.payload, OpenedMasks) and one.sender in clients)
    ]
    training.waiting = deque(kept)


@pytest.mark.parametrize("who", [(2,), (2, 4)], ids=["one", "two"])
def test_a_restart_after_the_request_to_open_masks(who: tuple[int, ...]) -> None:
    """The others open the masks of one; with two, the same uploads are sent again, for a sum over
    the same clients."""
    name = "double, svfl"
    training = Training(CASES[name])
    training.run(5)
    server = until(training, lambda server: server.asked)
    batch, arrived = server.batch, tuple(server.arrived)
    for k in who:
        training.restart(k, pack(training.clients[k].state()))
    sums: list[tuple[int, ...]] = []
    while server.batch == batch:
        if server.generation == 0:
            lose_answers(training, *who)
        training.step()
        if server.asked and server.batch == batch:
            sums.append(tuple(server.arrived))
    assert set(sums) == {arrived}
    training.run(12)
    assert server.generation >= 1
    expected = plain(name, 12)
    np.testing.assert_allclose(training.aggregates[11], expected[11], atol=1e-8)


def test_after_a_restart_no_masks_of_the_earlier_key_are_opened() -> None:
    """The journal may not know that the client has opened masks for other uploads."""
    training = Training(CASES["double, svfl"])
    training.run(5)
    server = until(training, lambda server: server.asked)
    request = next(
        one for one in training.waiting if isinstance(one.payload, OpenMasks) and one.to == WHO
    )
    training.restart(WHO, pack(training.clients[WHO].state()))
    assert training.clients[WHO].is_early(request.payload)  # without keys
    until(
        training, lambda server: server.generation == 1 and bool(len(training.clients[WHO].public))
    )
    assert server.generation > request.payload.generation
    assert training.clients[WHO].receive(request) == []


def test_where_uploads_are_repeated_masks_are_opened_for_the_same_clients_only() -> None:
    training = Training(CASES["double, svfl"])
    training.run(5)
    request: Any = None
    while request is None:
        training.step()
        request = next(
            (one for one in training.waiting if isinstance(one.payload, OpenMasks) and one.to == 0),
            None,
        )
    client = training.clients[0]
    assert client.receive(request)
    keys = client.public.copy()
    keys[4] = public_key(new_private_key())
    uploads = np.full(K, request.payload.t + 1)
    client.identity = None
    [again] = client.receive(Message(SERVER, 0, PublicKeys(keys, uploads, 1, request.payload.t)))
    assert isinstance(again.payload, DoubleMaskedUpload)
    fewer = replace(request.payload, generation=1, arrived=(0, 1, 2))
    with pytest.raises(WireError, match="opened masks before"):
        client.receive(Message(SERVER, 0, fewer))
    assert client.receive(Message(SERVER, 0, replace(request.payload, generation=1)))
