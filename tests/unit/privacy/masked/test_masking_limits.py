"""Limits of masked sums: the fewest clients, the most places, and counts that are just enough."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import mtcd
from masked_trainings import DATA, METHODS, MODEL, doubly
from mtcd.core.errors import ConfigError, WireError
from mtcd.privacy.masked.masked import MaskedSum, _check_tokens, with_masks
from mtcd.privacy.masked.pair_masks import MOST_PLACES, PairMasks, new_private_key, public_key
from mtcd.privacy.masked.payloads import OpenMasks, PublicKeys
from mtcd.protocol.party import SERVER, Message


@pytest.mark.parametrize(
    ("name", "clients", "allowed"),
    [
        ("masked", 2, False),
        ("masked", 3, True),
        ("double-masked", 3, False),
        ("double-masked", 4, True),
        ("masked", MOST_PLACES, True),
        ("masked", MOST_PLACES + 1, False),
    ],
)
def test_clients_of_a_sum(name: str, clients: int, allowed: bool) -> None:
    network: Any = SimpleNamespace(size=clients, changes=())
    if allowed:
        MaskedSum(name).check_network(METHODS["svfl"], network)
        return
    with pytest.raises(ConfigError, match=f"{name} needs at least . clients and at most"):
        MaskedSum(name).check_network(METHODS["svfl"], network)


def test_tokens_of_a_sum() -> None:
    _check_tokens(2)
    _check_tokens(MOST_PLACES)
    with pytest.raises(ConfigError, match="with one token that is the token itself"):
        _check_tokens(1)
    with pytest.raises(ConfigError, match=f"for at most {MOST_PLACES} tokens"):
        _check_tokens(MOST_PLACES + 1)


def test_masks_are_of_a_generation() -> None:
    private = [new_private_key() for _ in range(3)]
    public = np.stack([public_key(one) for one in private])
    words = np.zeros(4, "<i8")
    masked = [PairMasks(0, private[0], public, g).masked(words, 0, 0, [0, 1, 2]) for g in (0, 1)]
    assert not (masked[0] == masked[1]).any()
    assert not words.any()


# A client and its keys


def exchanged(name: str = "svfl", rounds: int = 3) -> tuple[Any, PublicKeys]:
    """Client 2 of a training after some uploads of its own, and the keys that it uses."""
    parties = with_masks(METHODS[name]).parties(
        MODEL.problem(DATA), mtcd.make_network("complete", DATA.clients), 3
    )
    client: Any = parties.clients[2]
    waiting, keys = deque(parties.opening), None
    while client.uploads < rounds:
        message = waiting.popleft()
        if message.to == 2 and isinstance(message.payload, PublicKeys):
            keys = message.payload
        if message.to == SERVER:
            assert parties.server is not None
            waiting += parties.server.receive(message)
        elif message.to >= 0:
            waiting += parties.clients[message.to].receive(message)

    assert keys is not None
    return client, keys


def test_keys_are_used_once_for_each_generation() -> None:
    client, keys = exchanged()
    masks = client.masks
    assert client.receive(Message(SERVER, 2, keys)) == []
    assert client.masks is masks
    [again] = client.receive(Message(SERVER, 2, replace(keys, generation=1, again=4)))
    assert again.payload.generation == 1
    assert client.masks is not masks


@pytest.mark.parametrize("fewer", [1, 2])
def test_another_client_may_lack_the_latest_upload_of_this_one_only(fewer: int) -> None:
    """It may not have made it; one more that is lacking it would make again."""
    client, keys = exchanged()
    changed, uploads = keys.keys.copy(), keys.uploads.copy()
    changed[0], uploads[0] = public_key(new_private_key()), client.uploads - fewer
    given = Message(SERVER, 2, replace(keys, keys=changed, uploads=uploads, generation=1, again=9))
    if fewer == 1:
        assert client.receive(given) == []
        assert client.generation == 1
    else:
        with pytest.raises(WireError, match="its journal is from an earlier moment"):
            client.receive(given)


def test_the_uploads_of_the_sync_that_is_asked_for_are_sent_again() -> None:
    client, keys = exchanged()
    [(sync, _, _)] = client.latest
    [again] = client.receive(Message(SERVER, 2, replace(keys, generation=1, again=sync)))
    assert again.payload.sync == sync // 2
    assert client.receive(Message(SERVER, 2, replace(keys, generation=2, again=sync + 1))) == []


# Double masks


def asked_for_masks() -> tuple[Any, Any, OpenMasks]:
    """The server and client 2, when each of five clients has been summed before, and the request to
    open the masks of a sync."""
    parties = doubly(METHODS["svfl"]).parties(
        MODEL.problem(DATA), mtcd.make_network("complete", DATA.clients), 3
    )
    server, waiting = parties.server, deque(parties.opening)
    while True:
        message = waiting.popleft()
        if isinstance(message.payload, OpenMasks) and message.to == 2 and message.payload.t == 3:
            return server, parties.clients[2], message.payload
        if message.to == SERVER:
            assert server is not None
            waiting += server.receive(message)
        elif message.to >= 0:
            waiting += parties.clients[message.to].receive(message)


def test_a_client_opens_masks_of_three() -> None:
    _, client, request = asked_for_masks()
    with pytest.raises(WireError, match="arrived are fewer than 3"):
        client.receive(Message(SERVER, 2, replace(request, gone=(0, 1, 4))))
    three = replace(request, gone=(0, 1), participants=(1, 2, 3))
    [opened] = client.receive(Message(SERVER, 2, three))
    assert opened.payload.mine[0].any()


def test_what_was_summed_is_settled() -> None:
    """Its words are in the sums of the server: the next change starts from them."""
    _, client, request = asked_for_masks()
    batch, words = client.offered
    assert batch == request.t
    client.receive(Message(SERVER, 2, replace(request, t=request.t - 1, included=request.t)))
    assert client.offered is not None
    client.receive(Message(SERVER, 2, request))
    assert client.offered is None
    assert np.array_equal(client.included, words)


def test_the_server_asks_about_clients_in_one_order() -> None:
    """Clients compare the set with the one that they have opened masks for."""
    server, _, _ = asked_for_masks()
    server.arrived = [3, 0, 4, 2, 1]
    requests = server._ask(server.batch)
    assert [one.to for one in requests] == [0, 1, 2, 3, 4]
    assert {one.payload.arrived for one in requests} == {(0, 1, 2, 3, 4)}


def test_the_server_goes_on_without_clients_that_are_down_while_three_are_left() -> None:
    server, _, _ = asked_for_masks()
    server.asked, server.arrived = False, [0, 1, 2]
    server.down = frozenset({3, 4})
    assert server._missing() == frozenset()
    server.down = frozenset({2, 3, 4})
    server.arrived = [0, 1]
    assert server._missing() == {2, 3, 4}
    assert server.waits_for() == {2, 3, 4}
    # the first sum of a sample is of all, whoever is down
    server.summed[:] = 0
    server.down, server.arrived = frozenset({4}), [0, 1, 2]
    assert server._missing() == {3, 4}
    assert server.waits_for() == {4}


@pytest.mark.parametrize(
    ("participants", "closed", "down", "possible"),
    [
        ((0, 1, 2, 3), {1}, {1}, True),
        ((0, 1, 2, 3), {1}, {1, 4}, True),
        ((0, 1, 2, 3), {1}, {2}, False),
        ((0, 1, 2, 3), {1, 2}, {1, 2}, False),
        # without one of three, two would be left
        ((0, 1, 2), {1}, {1}, False),
    ],
)
def test_masks_of_one_client_can_be_opened_by_three_others(
    participants: tuple[int, ...], closed: set[int], down: set[int], possible: bool
) -> None:
    server, _, _ = asked_for_masks()
    server.participants, server.arrived = participants, list(participants)
    server.down = frozenset(down)
    assert server._can_open_without(frozenset(closed)) == possible
    server.arrived = list(participants[1:])
    assert not server._can_open_without(frozenset(closed))
