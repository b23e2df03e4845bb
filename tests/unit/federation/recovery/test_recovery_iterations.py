"""Restart of iterations, party by party: which visits count, which terms are kept, and where tokens
go."""

from typing import Any

import numpy as np
import pytest

from mtcd.federation.delivery.journal import MemoryJournal
from mtcd.federation.delivery.reliable_party import ReliableParty
from mtcd.federation.recovery.iteration_client import IterationClient
from mtcd.federation.recovery.iterations import SPECULATIVE_TERMS
from mtcd.methods.mtcd.client import Done, Share
from mtcd.methods.mtcd.mtcd import MTCD
from mtcd.models.glm.model import Glm
from mtcd.network.topology import make_network
from mtcd.protocol.codec.envelopes import End, Envelope, Undeliverable
from mtcd.protocol.party import SERVER, Message
from mtcd.protocol.token import Token
from problems import make_data
from recovering import iteration_party

MODEL = Glm("ridge", alpha=0.7)
DATA = make_data(MODEL, 12, [2, 1, 3, 2, 2], seed=3)
CYCLE = make_network("cycle", DATA.clients)
AVERAGE = MTCD(tokens=3, hops=3, stepsize=0.02, local_updates=5)
TOUR = MTCD(tokens=1, hops=12, stepsize=0.02, walk="tour")


class Visited:
    """Client 1, and tokens that come to it from the server."""

    def __init__(self, method: MTCD) -> None:
        party = method.parties(MODEL.problem(DATA), CYCLE, 7).clients[1]
        self.reliable = iteration_party(1, party, MemoryJournal(), network=CYCLE)
        self.party: Any = party
        self.sequence = 0

    @property
    def policy(self) -> IterationClient:
        assert isinstance(self.reliable.policy, IterationClient)
        return self.reliable.policy

    def hears(
        self, payload: Any, t: int = 0, term: int = 0, terms: dict[int, int] | None = None
    ) -> None:
        message = Message(SERVER, 1, payload)
        self.reliable.deliver(Envelope(SERVER, 1, self.sequence, t, term, terms or {}, message))
        self.sequence += 1

    def visited_by(self, index: int = 0, t: int = 0, hop: int = 0, term: int = 0) -> Envelope:
        """Where the token then goes."""
        self.hears(Token(index, t, hop, np.zeros(12), 0.0), t, term)
        return self.reliable.unacknowledged()[-1]

    def theta(self) -> Any:
        return self.party.parameters().copy()


def test_visits_in_speculative_terms_count_up_to_the_one_that_was_synced() -> None:
    """Whether it is the end that follows, or the next iteration."""
    for synced in (0, 1, 2):
        for following in (End("stopped", 1, 3), Token(0, 1, 0, np.zeros(12), 0.0)):
            client, after = Visited(AVERAGE), []
            for term in (0, 1, 2):
                client.visited_by(index=term, term=term)
                after.append(client.theta())
            assert len({theta.tobytes() for theta in after}) == 3
            client.hears(following, t=1, terms={0: synced} if synced else {})
            np.testing.assert_array_equal(client.party.theta[0], after[synced])
            assert client.party.t == 1
            assert not client.policy.checkpoints


def test_two_visits_in_one_speculative_term_are_undone_together() -> None:
    client = Visited(AVERAGE)
    client.visited_by(index=0)
    counts = client.theta()
    client.visited_by(index=1, term=1)
    client.visited_by(index=2, term=1)
    client.hears(End("stopped", 1, 3), t=1)
    np.testing.assert_array_equal(client.theta(), counts)


def test_what_follows_the_end_undoes_nothing() -> None:
    client = Visited(AVERAGE)
    client.hears(End("stopped", 0, 0))
    client.policy.checkpoints = {1: client.party.visits()}
    client.hears(End("stopped", 0, 0))
    assert set(client.policy.checkpoints) == {1}


def test_a_term_is_learned_once_and_only_of_iterations_that_are_not_over() -> None:
    client = Visited(AVERAGE)
    client.party.t = 4
    for terms, is_new in [
        ({}, False),
        ({4: 0}, False),
        ({4: 1}, True),
        ({4: 1}, False),
        ({4: 2, 5: 7}, True),
        ({4: 1, 5: 7}, False),
        ({3: SPECULATIVE_TERMS}, False),
    ]:
        assert client.policy.learn_terms(terms) is is_new, terms
    assert client.reliable.terms == {4: 2, 5: 7}


@pytest.mark.parametrize(
    ("term", "left"), [(1, {2, 3}), (2, {3}), (3, set()), (SPECULATIVE_TERMS, set())]
)
def test_of_the_checkpoints_those_of_later_speculative_terms_are_kept(
    term: int, left: set[int]
) -> None:
    client = Visited(AVERAGE)
    before = client.theta()
    for visit in (1, 2, 3):
        client.visited_by(index=visit - 1, term=visit)
    after = client.theta()
    assert set(client.policy.checkpoints) == {1, 2, 3}
    assert client.policy.learn_terms({0: term})
    assert set(client.policy.checkpoints) == left
    restarted = term == SPECULATIVE_TERMS
    np.testing.assert_array_equal(client.theta(), before if restarted else after)


@pytest.mark.parametrize("cancelled", ["by a restart", "by the next iteration", ""])
def test_only_tokens_that_count_are_reported_as_undeliverable(cancelled: str) -> None:
    client = Visited(TOUR)
    sent = client.visited_by()
    assert sent.to in (0, 2)
    if cancelled == "by a restart":
        client.policy.learn_terms({0: SPECULATIVE_TERMS})
    elif cancelled:
        assert client.visited_by(t=1, hop=11).to == SERVER
    client.reliable.peer_lost(sent.to)
    reports = [one.message.payload for one in client.reliable.unacknowledged() if one.to == SERVER]
    assert [one for one in reports if not isinstance(one, Token)] == (
        [] if cancelled else [Undeliverable(0)]
    )


def test_a_tour_that_lost_its_place_goes_on_along_a_link() -> None:
    """It was passed round a client that is up again: by now the plan leads elsewhere."""
    planned = set()
    for hop in range(11):
        client = Visited(TOUR)
        token = Token(0, 0, hop + 1, np.zeros(12), 0.0)
        planned.add(client.party.next_client(token))
        assert client.visited_by(hop=hop).to in (1, *CYCLE.neighbours[1])
    assert planned == set(range(5)), "some of them are no neighbours"


def server(method: MTCD) -> ReliableParty:
    parties = method.parties(MODEL.problem(DATA), CYCLE, 7)
    return iteration_party(SERVER, parties.server, MemoryJournal(), parties.opening)


def test_a_term_is_dropped_when_every_client_has_sent_something_of_a_later_iteration() -> None:
    reliable = server(AVERAGE)

    def arrives(sender: int, t: int) -> set[int]:
        reliable.terms |= dict.fromkeys(range(4), SPECULATIVE_TERMS)
        reliable.policy.arriving(
            Envelope(sender, SERVER, 0, t, 0, {}, Message(sender, SERVER, Undeliverable(t)))
        )
        return set(reliable.terms)

    for sender, t in ((0, 2), (1, 1), (2, 3), (3, 2), (4, 0)):
        assert arrives(sender, t) == {0, 1, 2, 3}
    assert arrives(4, 1) == {1, 2, 3}
    assert arrives(1, 2) == {1, 2, 3}
    assert arrives(4, 3) == {2, 3}
    assert arrives(4, 0) == {2, 3}, "an envelope that comes late says nothing new"


@pytest.mark.parametrize("batch", [None, 4])
def test_the_token_of_a_cluster_that_is_down_stays_as_it_was(batch: int | None) -> None:
    """With mini-batches nothing of a token comes back but that it is done."""
    reliable = server(MTCD(clusters=[[0, 1, 2], [3, 4]], hops=3, stepsize=0.02, batch=batch))
    party: Any = reliable.party
    reliable.down = frozenset({3, 4})
    reliable.policy.restart_iteration()  # type: ignore[attr-defined]
    (index, kept), *others = party.back.items()
    assert (index, others) == (1, [])
    if batch is None:
        assert (kept.t, kept.hop) == (0, 0)
        np.testing.assert_array_equal(kept.aggregate, party.aggregate)
    else:
        assert kept == Done(1)


def test_a_client_that_has_not_answered_gets_no_second_request_for_an_upload() -> None:
    reliable = server(MTCD(tokens=2, hops=2, stepsize=0.02, batch=4))
    assert not reliable.policy.is_gathering
    first, second = (Message(SERVER, 3, Share(t)) for t in (1, 2))
    assert reliable.send([first], None) == []
    assert reliable.policy.is_gathering
    reliable.party.t = 2  # type: ignore[attr-defined]
    assert reliable.send([second], None) == []
    waiting = [one for one in reliable.unacknowledged() if isinstance(one.message.payload, Share)]
    assert [(one.to, one.iteration, one.message.payload) for one in waiting] == [(3, 2, Share(2))]
