"""What a client promises to initiators of ballots; and where it sends a token around clients that
are down."""

from collections import Counter
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lone_worlds import DATA, lone_world
from mtcd.federation.recovery.detours import next_around
from mtcd.federation.recovery.lone_token import LoneToken
from mtcd.federation.recovery.search import Promises, Search
from mtcd.network.topology import make_network
from mtcd.network.walks import make_walk
from mtcd.protocol.codec.envelopes import End, Envelope, Prepare, Promise, Release
from mtcd.protocol.party import Message
from mtcd.protocol.token import Token
from mtcd.testing.simulator.world import Faults
from searching_clients import BINDING, Client, asked, others, passed_on

HOP = 7


def test_an_initiator_is_promised_each_ballot_once_and_none_that_is_older() -> None:
    promises = Promises()
    cases = [(0, False), (1, True), (1, False), (6, True), (4, False), (7, True)]
    for ballot, promised in cases:
        assert promises.promise(3, Prepare(HOP, ballot, False), 0, {}) is promised
    assert promises.promise(2, Prepare(HOP, 1, False), 0, {}) is True, (
        "others have their own ballots"
    )
    assert {k: prepare.ballot for k, (prepare, _) in promises.promised.items()} == {3: 7, 2: 1}


def test_what_is_released_is_over_with_all_before_it() -> None:
    promises = Promises()
    promises.promise(3, Prepare(HOP, 6, True), 0, {})
    promises.release(3, 5)
    assert promises.is_bound_to(3), "a later ballot than that is open"
    promises.release(3, 6)
    assert not promises.is_bound_to(3)
    promises.release(3, 2)  # a late one
    assert promises.promise(3, Prepare(HOP, 6, True), 0, {}) is False
    assert promises.promise(3, Prepare(HOP, 7, True), 0, {}) is True
    promises.release(2, 9)  # before the ballot itself is heard of
    assert promises.promise(2, Prepare(HOP, 9, True), 0, {}) is False
    assert promises.promise(2, Prepare(HOP, 10, False), 0, {}) is True
    promises.release(4, 0)  # no ballot has this number
    assert promises.promise(4, Prepare(HOP, 1, False), 0, {}) is True


def test_only_binding_ballots_and_terms_count_as_the_highest_number() -> None:
    promises = Promises()
    assert promises.highest == 0
    promises.promise(1, Prepare(HOP, 8, False), 0, {})
    assert (promises.highest, promises.binding_hops(), promises.is_bound_to(1)) == (0, [], False)
    promises.promise(2, Prepare(HOP + 1, 5, True), 0, {})
    promises.promise(3, Prepare(HOP, 4, True), 0, {})
    assert (promises.highest, sorted(promises.binding_hops())) == (5, [HOP, HOP + 1])
    promises.learn({3: HOP + 5})
    assert promises.highest == 5
    promises.learn({6: HOP})  # the ballots 5 and 4 are over by it, 8 is not
    assert (promises.highest, set(promises.promised)) == (6, {1})


def test_who_is_bound_to_a_ballot_is_released_after_the_end_too() -> None:
    client = Client()
    first, second, *_ = others(client)
    assert client.hears(first, Prepare(HOP, 20, BINDING))
    assert client.hears(second, End("stopped", 0, 7))
    assert client.reliable.policy.promises.is_bound_to(first)
    assert client.hears(first, Release(20))
    assert not client.reliable.policy.promises.is_bound_to(first)


@pytest.mark.parametrize(("restart", "undone"), [(6, True), (7, False), (8, False)])
def test_an_end_is_undone_by_a_term_that_restarts_before_it(restart: int, undone: bool) -> None:
    client = Client()
    first, *_ = others(client)
    assert client.hears(first, End("stopped", 0, 7))
    client.reliable.ended_here = True
    client.reliable.policy.learn_terms({20: restart})
    assert client.reliable.ended == (None if undone else End("stopped", 0, 7))
    assert client.reliable.ended_here is not undone


def test_when_an_end_is_undone_all_are_asked_again() -> None:
    """To the questions before they answered with the end alone."""
    maker, envelope = passed_on()
    hop, everybody = envelope.message.payload.hop, [k for k in range(5) if k != maker.number]
    maker.peer_lost(envelope.to)
    sender = everybody[-1]
    end = Message(sender, maker.number, End("stopped", 0, hop + 9))
    maker.deliver(Envelope(sender, maker.number, 0, 0, 0, {}, end))
    assert maker.ended is not None
    before = asked(maker)
    assert [to for to, _ in before] == everybody
    maker.policy.learn_terms({3: hop + 5})
    assert maker.ended is None
    again = asked(maker)[len(before) :]
    assert [to for to, _ in again] == everybody
    ballots = (
        {question.ballot for _, question in before},
        {question.ballot for _, question in again},
    )
    assert [len(one) for one in ballots] == [1, 1]
    assert max(ballots[0]) < min(ballots[1])
    assert {(question.hop, question.binding) for _, question in again} == {(hop, False)}


@pytest.mark.parametrize("reachable", [False, True])
def test_a_ballot_that_cannot_be_decided_any_more_is_followed_by_a_probe(reachable: bool) -> None:
    """So that nobody stays bound to it."""
    maker, _ = passed_on()
    beyond = (maker.number + 2) % 5
    maker.policy.search = Search(7, (maker.number + 1) % 5, frozenset({beyond}), None)
    maker.policy.search.ask(10, binding=True)
    maker.policy.promises.highest = 10
    maker.down = frozenset({(maker.number + 1) % 5})
    down = frozenset() if reachable else frozenset({beyond})
    answer = Message((maker.number + 3) % 5, maker.number, Promise(10, 2, 10, down))
    maker.deliver(Envelope(answer.sender, maker.number, 0, 0, 0, {}, answer))
    assert {(question.hop, question.binding) for _, question in asked(maker)} == (
        set() if reachable else {(7, False)}
    )
    assert maker.policy.search.binding is reachable


@pytest.mark.parametrize(("down", "up"), [({1}, [2, 3, 4]), ({1, 3}, [2, 4]), ({1, 2, 3}, [4])])
def test_around_a_client_that_is_down_all_other_neighbours_are_as_likely(
    down: set[int], up: list[int]
) -> None:
    network = make_network("star", [f"c{k}" for k in range(5)])
    walk, draws = make_walk("lazy", network), np.arange(120) / 120
    found = Counter(next_around(walk, network, 1, 0, 0, down, draw) for draw in draws)
    assert found == {k: 120 // len(up) for k in up}
    assert {next_around(walk, network, 4, 0, 0, down, draw) for draw in draws} == {4}, (
        "that one is up"
    )


def test_a_token_whose_neighbours_are_all_down_stays() -> None:
    network = make_network("star", [f"c{k}" for k in range(5)])
    assert next_around(make_walk("lazy", network), network, 0, 2, 0, {0}, 0.9) == 2
    assert next_around(make_walk("tour", network), network, 0, 2, 0, {0}, 0.9) == 2


def passed_to(network: str, sender: int, hop: int, avoid: frozenset[int] = frozenset()) -> int:
    """The next client of a lone token on its tour that came to client 2."""
    client = lone_world(network, 0, Faults(), "tour").parties[2]
    token = Token(0, 0, hop, np.zeros(DATA.samples), 0.0)
    client.deliver(Envelope(sender, 2, 0, 0, 0, {}, Message(sender, 2, token), avoid))
    return client.unacknowledged()[-1].to


@pytest.mark.parametrize(("sender", "to"), [(1, 3), (3, 1)])
def test_around_a_client_that_is_down_a_tour_keeps_its_direction(sender: int, to: int) -> None:
    assert {passed_to("path", sender, hop, frozenset({4})) for hop in range(8)} == {to}


def test_a_lone_tour_that_lost_its_place_goes_on_along_a_link() -> None:
    found = {passed_to("cycle", 1, hop) for hop in range(5)}
    assert found <= {1, 2, 3}


class Open:
    """A client of a lone token with these ballots open, of others and of its own."""

    def __init__(
        self, promised: dict[int, tuple[int, bool]], own: tuple[int, bool] | None = None
    ) -> None:
        self.lone: Any = object.__new__(LoneToken)
        self.lone.promises = Promises()
        for initiator, (hop, binding) in promised.items():
            self.lone.promises.promised[initiator] = Prepare(hop, 9, binding), 0
        self.lone.search = None
        if own is not None:
            self.lone.search = SimpleNamespace(hop=own[0], binding=own[1])
        self.lone.delivery = SimpleNamespace(terms={4: 1})

    def defers(self, payload: Any, term: int = 4) -> bool:
        message = Message(2, 1, payload)
        return bool(self.lone.must_defer(Envelope(2, 1, 0, 0, term, {}, message, frozenset())))


TOKEN = Token(0, 0, 3, np.ones(1), 0.0)


@pytest.mark.parametrize(
    ("promised", "own", "defers"),
    [
        ({}, None, False),
        ({2: (5, False)}, None, False),
        ({2: (5, True)}, None, True),
        ({}, (5, False), False),
        ({}, (5, True), True),
        ({2: (5, False)}, (5, True), True),
    ],
)
def test_a_token_waits_while_a_binding_ballot_is_open(
    promised: dict[int, tuple[int, bool]], own: tuple[int, bool] | None, defers: bool
) -> None:
    client = Open(promised, own)
    assert client.defers(TOKEN) == defers
    assert not client.defers(TOKEN, term=3), "a stale one is not waited for"
    assert not client.defers(Release(1))


@pytest.mark.parametrize(("hop", "defers"), [(4, False), (5, False), (6, True)])
def test_of_two_initiators_the_one_with_the_later_hop_waits(hop: int, defers: bool) -> None:
    for client in (Open({2: (5, True)}), Open({}, (5, True))):
        assert client.defers(Prepare(hop, 9, True)) == defers
        assert not client.defers(Prepare(hop, 9, False))
    assert not Open({2: (5, False)}, (5, False)).defers(Prepare(hop, 9, True))
