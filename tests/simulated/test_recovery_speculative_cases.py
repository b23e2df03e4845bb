"""Tokens that were taken back from a server that seemed to be gone: what must not happen to them,
case by case."""

import numpy as np
import pytest

from mtcd.core.errors import NetworkError
from mtcd.federation.delivery.reliable_party import ReliableParty
from mtcd.federation.recovery.iterations import SPECULATIVE_TERMS, base_term, has_speculative_term
from mtcd.methods.method import Method
from mtcd.methods.mtcd.mtcd import MTCD
from mtcd.network.topology import make_network
from mtcd.protocol.codec.envelopes import Envelope, HolderLost, ResendTokens, Undeliverable
from mtcd.protocol.codec.records import pack, unpack
from mtcd.protocol.party import SERVER, Message
from mtcd.protocol.token import Token
from mtcd.testing.simulator.world import Faults, World
from simulated_deliveries import DATA, METHODS, assert_the_server_knows_what_clients_hold, carry
from simulated_roaming import go_on, recovery_world, tell


def started(
    method: Method | str = "average", network: str = "cycle", seed: int = 0
) -> tuple[World, ReliableParty]:
    """A training without faults, and its server."""
    found = METHODS[method] if isinstance(method, str) else method
    world = recovery_world(found, make_network(network, DATA.clients), seed, Faults())
    return world, world.parties[SERVER]


def roam(world: World, index: int, at: int) -> int:
    """A token goes one hop further; where it then is."""
    tokens = [
        envelope
        for envelope in world.parties[at].unacknowledged()
        if isinstance(envelope.message.payload, Token)
    ]
    (to,) = [envelope.to for envelope in tokens if envelope.message.payload.index == index]
    carry(world.parties[at], world.parties[to])
    return to


def test_a_token_that_was_taken_back_and_is_lost_is_not_waited_for() -> None:
    """The server has an earlier state of it, and so no reason to miss it, until another one comes
    up."""
    method = MTCD(clusters=[[0, 1, 2], [3, 4]], hops=1, stepsize=0.02)
    world, server = started(method, "complete")
    one, other = (envelope.to for envelope in server.unacknowledged())
    carry(world.parties[SERVER], world.parties[one])
    carry(world.parties[SERVER], world.parties[other])
    carry(world.parties[one], world.parties[SERVER])
    for k in range(5):  # the server hangs
        world.parties[k].peer_lost(SERVER)
    holder = roam(world, 0, one)
    while holder == one:
        holder = roam(world, 0, holder)
    world.crash(holder)
    other = roam(world, 1, other)
    tell(world, {holder})
    go_on(world, reports=5)
    assert_the_server_knows_what_clients_hold(world)


def test_nor_if_the_server_hears_that_somebody_is_missed_before_it_notices_that_he_is_gone() -> (
    None
):
    """It has no reason yet to restart the iteration; later it must remember that the token may have
    been there."""
    method = MTCD(clusters=[[0, 1, 2], [3, 4]], hops=1, stepsize=0.02)
    world, server = started(method, "complete")
    one, other = (envelope.to for envelope in server.unacknowledged())
    for at in (one, other):
        carry(world.parties[SERVER], world.parties[at])
    carry(world.parties[one], world.parties[SERVER])
    for k in range(5):  # the server hangs
        world.parties[k].peer_lost(SERVER)
    giver, holder = one, roam(world, 0, one)
    while holder == giver:
        holder = roam(world, 0, holder)
    roam(world, 1, other)
    world.crash(holder)
    for k in world.parties.keys() - {SERVER}:
        world.parties[k].peer_found(SERVER)
        world.parties[k].peer_lost(holder)
    carry(world.parties[giver], world.parties[SERVER])
    server.peer_lost(holder)
    assert server.terms == {}
    go_on(world, reports=5)
    assert_the_server_knows_what_clients_hold(world)


def test_a_token_of_another_cluster_is_refused() -> None:
    """Or it could go up from here, and when it is taken back there is no way on for it."""
    world, _ = started("clusters", "complete")
    token = Token(0, 0, 2, np.zeros(12), 0.0, previous=1)
    before = world.journals[4].content
    with pytest.raises(NetworkError):
        world.parties[4].deliver(Envelope(1, 4, 0, 0, 0, {}, Message(1, 4, token, 12, 12)))
    assert world.journals[4].content == before


def test_the_speculative_terms_of_a_term_are_the_numbers_up_to_the_next() -> None:
    for start in (0, SPECULATIVE_TERMS, 5 * SPECULATIVE_TERMS):
        among = range(start, start + SPECULATIVE_TERMS)
        assert {base_term(term) for term in among} == {start}
        assert [term for term in among if not has_speculative_term(term)] == [among[-1]]


def test_after_the_last_speculative_term_tokens_wait_for_the_server() -> None:
    """Its number is followed by that of a term which only the server starts."""
    world, server = started()
    envelope = server.unacknowledged()[0]
    token = envelope.message.payload
    token.hop = 2
    client = world.parties[envelope.to]
    client.deliver(unpack(pack(envelope._replace(term=SPECULATIVE_TERMS - 1))))
    client.peer_lost(SERVER)
    (up,) = client.unacknowledged()
    assert (up.to, up.term) == (SERVER, SPECULATIVE_TERMS - 1)
    server.deliver(unpack(pack(up)))
    assert server.terms == {0: SPECULATIVE_TERMS - 1}
    world.start(SERVER)
    assert world.parties[SERVER].terms == {0: SPECULATIVE_TERMS}
    tell(world, set())
    go_on(world, reports=5)


def test_somebody_who_sends_old_tokens_is_asked_once() -> None:
    _, server = started()
    for number in range(20):
        token = Token(min(number, 1), 0, 3, np.zeros(12), 0.0)
        server.deliver(
            Envelope(1, SERVER, number, 0, int(number == 0), {}, Message(1, SERVER, token, 12, 12))
        )
    assert server.terms == {0: 1}
    assert server.party.back.keys() == {0}, "those are not taken in"
    assert [
        envelope.to
        for envelope in server.unacknowledged()
        if isinstance(envelope.message.payload, ResendTokens)
    ] == [1]


def test_a_request_of_an_earlier_speculative_term_does_not_stand_for_one_of_a_later() -> None:
    """The answer to the earlier one no longer counts, so the token would be waited for without
    end."""
    _, server = started()
    # by whom, its number, token, term
    sent = [(1, 0, 0, 1), (1, 1, 1, 0), (2, 0, 0, 2), (1, 2, 1, 1)]
    for sender, number, index, term in sent:
        message = Message(sender, SERVER, Token(index, 0, 3, np.zeros(12), 0.0), 12, 12)
        server.deliver(Envelope(sender, SERVER, number, 0, term, {}, message))
    asked = [
        one for one in server.unacknowledged() if isinstance(one.message.payload, ResendTokens)
    ]
    assert [(envelope.to, envelope.term) for envelope in asked] == [(1, 1), (1, 2)]


def test_a_token_is_not_requested_again_from_a_client_that_is_down() -> None:
    """Its upload came although the server has no connection to it: the iteration restarts instead
    of waiting for it."""
    _, server = started()
    server.peer_lost(1)
    assert server.terms == {0: SPECULATIVE_TERMS}
    for sender, index, term in [(1, 0, SPECULATIVE_TERMS), (2, 1, SPECULATIVE_TERMS + 1)]:
        message = Message(sender, SERVER, Token(index, 0, 3, np.zeros(12), 0.0), 12, 12)
        server.deliver(Envelope(sender, SERVER, 0, 0, term, {}, message))
    assert server.terms == {0: 2 * SPECULATIVE_TERMS}
    assert not any(isinstance(one.message.payload, ResendTokens) for one in server.unacknowledged())


def test_a_client_whom_only_the_server_missed_is_missed_by_its_neighbours_when_it_dies() -> None:
    """It has a token, for which there was an ack, and the server, whose link to it is cut, notices
    nothing new."""
    world, server = started(MTCD(tokens=1, hops=50, stepsize=0.02), seed=1)
    server.peer_lost(2)
    world.parties[2].peer_lost(SERVER)
    *_, at = (envelope.to for envelope in server.unacknowledged())
    carry(world.parties[SERVER], world.parties[at])
    while at != 2:
        at = roam(world, 0, at)
    world.crash(2)
    tell(world, {2})
    go_on(world, reports=5, most=2000)
    assert_the_server_knows_what_clients_hold(world)


def test_a_hop_that_is_taken_back_is_charged_once() -> None:
    """When a token goes up its hop is charged as one that sends nothing; then it goes to a
    neighbour after all."""
    method = MTCD(tokens=1, hops=1, stepsize=0.02, walk="tour")  # which never stays where it is
    world, server = started(method, seed=1)
    (envelope,) = server.unacknowledged()
    carry(server, world.parties[envelope.to])
    client = world.parties[envelope.to]
    charged = client.ledger.messages("charged")["client_client"]
    assert (client.ledger.hops, client.ledger.unsent_hops, charged) == (1, 1, 1)
    client.peer_lost(SERVER)
    (roaming,) = [one for one in client.unacknowledged() if isinstance(one.message.payload, Token)]
    assert roaming.to not in (envelope.to, SERVER)
    charged = client.ledger.messages("charged")["client_client"]
    assert (client.ledger.hops, client.ledger.unsent_hops, charged) == (1, 0, 1)
    world.start(envelope.to)  # all of this is in the journal
    (kept,) = [
        one
        for one in world.parties[envelope.to].unacknowledged()
        if isinstance(one.message.payload, Token)
    ]
    assert (kept.to, kept.sequence) == (roaming.to, roaming.sequence)


@pytest.mark.parametrize("arrived", [False, True])
@pytest.mark.parametrize("to", [0, 2])
def test_the_server_is_told_of_tokens_that_somebody_may_have_lost(to: int, arrived: bool) -> None:
    """Whoever it is, and also by a process that starts again."""
    method = MTCD(tokens=1, hops=50, stepsize=0.02)
    for hop in range(50):
        world, _ = started(method)
        token = Token(0, 0, hop, np.zeros(12), 0.0)
        world.parties[1].deliver(
            Envelope(SERVER, 1, 0, 0, 0, {}, Message(SERVER, 1, token, 12, 12))
        )
        (envelope,) = world.parties[1].unacknowledged()
        if envelope.to == to:
            break
    assert envelope.to == to
    if arrived:
        carry(world.parties[1], world.parties[to])
    world.parties[1].peer_lost(to)
    world.start(1)
    told = [one.message.payload for one in world.parties[1].unacknowledged() if one.to == SERVER]
    assert told == [HolderLost(0, to) if arrived else Undeliverable(0)]


def test_clients_wait_for_the_server_and_the_server_for_anybody() -> None:
    world, server = started()
    client = world.parties[1]
    client.peer_lost(2)
    assert client.policy.waits_for == frozenset()
    client.peer_lost(SERVER)
    assert client.policy.waits_for == {2, SERVER}
    for k in range(4):
        server.peer_lost(k)
    assert server.policy.waits_for == frozenset()
    server.peer_lost(4)
    assert server.policy.waits_for == frozenset(range(5))


def test_nothing_restarts_after_the_end() -> None:
    world, server = started()
    assert server.policy.restart_iteration()
    server.finish("stopped")
    assert server.ended_here
    before = world.journals[SERVER].content
    assert not server.policy.restart_iteration()
    assert world.journals[SERVER].content == before


def test_how_a_training_turned_out_is_written_down_once_it_is_over() -> None:
    world, server = started()
    server.correct_status("converged")
    assert server.ended is None
    server.finish("stopped")
    server.correct_status("converged")
    world.start(SERVER)
    ended = world.parties[SERVER].ended
    assert ended.status == "converged"


@pytest.mark.parametrize("lost", range(5))
def test_only_tokens_whose_start_is_down_start_elsewhere(lost: int) -> None:
    _, server = started(MTCD(tokens=4, hops=3, stepsize=0.02))
    before = {one.message.payload.index: one.to for one in server.unacknowledged()}
    server.peer_lost(lost)
    again = [one for one in server.unacknowledged() if isinstance(one.message.payload, Token)]
    after = {one.message.payload.index: one.to for one in again}
    assert after.keys() == before.keys()
    assert lost not in after.values()
    assert {index: to for index, to in after.items() if before[index] != lost} == {
        index: to for index, to in before.items() if to != lost
    }


def test_uploads_that_only_somebody_who_is_down_has_not_sent_are_complete() -> None:
    world, server = started("mini-batch")
    while server.policy.tokens_out:
        for number in world.numbers:
            for to in world.numbers:
                if not (to == SERVER and server.policy.is_gathering):
                    carry(world.parties[number], world.parties[to])
    for k in range(4):
        carry(world.parties[SERVER], world.parties[k])
        carry(world.parties[k], world.parties[SERVER])
    assert server.policy.is_gathering
    assert server.party.t == 1
    server.peer_lost(4)
    assert not server.policy.is_gathering
    tokens = [one.to for one in server.unacknowledged() if isinstance(one.message.payload, Token)]
    assert len(tokens) == 2
    assert 4 not in tokens
