"""Tokens that were taken back from a server that seemed to be gone: what must not happen to them, case by case."""

import numpy as np
import pytest

from mtcd.errors import NetworkError
from mtcd.federation.custody.iterations import OVERTIMES
from mtcd.federation.custody.letters import Again, Letter, Missed, Stuck
from mtcd.federation.custody.records import pack, unpack
from mtcd.federation.custody.syncs import ServerPostman
from mtcd.methods.mtcd import MTCD
from mtcd.network.topology import make_network
from mtcd.protocol.party import SERVER, Message
from mtcd.protocol.token import Token
from simulated import Faults, World
from test_custody import DATA, METHODS, assert_the_server_knows_what_clients_hold
from test_custody_roaming import custody_world, tell


def carry(world: World, sender: int, to: int) -> None:
    """What waits for somebody arrives, and there is a receipt."""
    for letter in world.postmen[sender].waiting():
        if letter.to == to:
            delivery = world.postmen[to].deliver(unpack(pack(letter)))
            assert delivery.receipt is not None
            world.postmen[sender].received(delivery.receipt)


def roam(world: World, index: int, at: int) -> int:
    """A token goes one hop further; where it then is."""
    tokens = [letter for letter in world.postmen[at].waiting() if isinstance(letter.message.payload, Token)]
    (to,) = [letter.to for letter in tokens if letter.message.payload.index == index]
    carry(world, at, to)
    return to


def test_a_token_that_was_taken_back_and_is_lost_is_not_waited_for() -> None:
    """The server has an earlier state of it, and so no reason to miss it, until another token comes up in overtime."""
    world = custody_world(
        MTCD(clusters=[[0, 1, 2], [3, 4]], hops=1, stepsize=0.02), make_network("complete", DATA.clients), 0, Faults()
    )
    server = world.postmen[SERVER]
    one, other = (letter.to for letter in server.waiting())
    carry(world, SERVER, one)
    carry(world, SERVER, other)
    carry(world, one, SERVER)
    for k in range(5):  # the server hangs
        world.postmen[k].lost(SERVER)
    holder = roam(world, 0, one)
    while holder == one:
        holder = roam(world, 0, holder)
    world.crash(holder)
    other = roam(world, 1, other)
    tell(world, {holder})
    while len(world.told) < 5:
        world.step()
        assert world.time < 1000
    assert_the_server_knows_what_clients_hold(world)


def test_nor_if_the_server_hears_that_somebody_is_missed_before_it_notices_that_he_is_gone() -> None:
    """It has no reason yet to start anew; later it has to remember that the token may have been with that one."""
    world = custody_world(
        MTCD(clusters=[[0, 1, 2], [3, 4]], hops=1, stepsize=0.02), make_network("complete", DATA.clients), 0, Faults()
    )
    server = world.postmen[SERVER]
    one, other = (letter.to for letter in server.waiting())
    for at in (one, other):
        carry(world, SERVER, at)
    carry(world, one, SERVER)
    for k in range(5):  # the server hangs
        world.postmen[k].lost(SERVER)
    giver, holder = one, roam(world, 0, one)
    while holder == giver:
        holder = roam(world, 0, holder)
    roam(world, 1, other)
    world.crash(holder)
    for k in world.postmen.keys() - {SERVER}:
        world.postmen[k].found(SERVER)
        world.postmen[k].lost(holder)
    carry(world, giver, SERVER)
    server.lost(holder)
    assert server.fences == {}
    while len(world.told) < 5:
        world.step()
        assert world.time < 1000
    assert_the_server_knows_what_clients_hold(world)


def test_a_token_of_another_cluster_is_refused() -> None:
    """Or it could go up from here, and when it is taken back there is no way on for it."""
    world = custody_world(METHODS["clusters"], make_network("complete", DATA.clients), 0, Faults())
    token = Token(0, 0, 2, np.zeros(12), 0.0, previous=1)
    before = world.journals[4].content
    with pytest.raises(NetworkError):
        world.postmen[4].deliver(Letter(1, 4, 0, 0, 0, {}, Message(1, 4, token, 12, 12)))
    assert world.journals[4].content == before


def test_after_the_last_overtime_tokens_wait_for_the_server() -> None:
    """Its number is followed by that of a generation which only the server starts."""
    world = custody_world(METHODS["average"], make_network("cycle", DATA.clients), 0, Faults())
    server = world.postmen[SERVER]
    assert isinstance(server, ServerPostman)
    letter = server.waiting()[0]
    token = letter.message.payload
    token.hop = 2
    client = world.postmen[letter.to]
    client.deliver(unpack(pack(letter._replace(generation=OVERTIMES - 1))))
    client.lost(SERVER)
    (up,) = client.waiting()
    assert (up.to, up.generation) == (SERVER, OVERTIMES - 1)
    server.deliver(unpack(pack(up)))
    assert server.fences == {0: OVERTIMES - 1}
    world.start(SERVER)
    assert world.postmen[SERVER].fences == {0: OVERTIMES}
    tell(world, set())
    while len(world.told) < 5:
        world.step()
        assert world.time < 1000


def test_somebody_who_sends_old_tokens_is_asked_once() -> None:
    world = custody_world(METHODS["average"], make_network("cycle", DATA.clients), 0, Faults())
    server = world.postmen[SERVER]
    for number in range(20):
        token = Token(min(number, 1), 0, 3, np.zeros(12), 0.0)
        server.deliver(Letter(1, SERVER, number, 0, int(number == 0), {}, Message(1, SERVER, token, 12, 12)))
    assert server.fences == {0: 1}
    assert [letter.to for letter in server.waiting() if isinstance(letter.message.payload, Again)] == [1]


def test_a_question_of_an_earlier_overtime_does_not_stand_for_one_of_a_later() -> None:
    """The answer to the earlier one no longer counts, so the token would be waited for without end."""
    world = custody_world(METHODS["average"], make_network("cycle", DATA.clients), 0, Faults())
    server = world.postmen[SERVER]
    sent = [(1, 0, 0, 1), (1, 1, 1, 0), (2, 0, 0, 2), (1, 2, 1, 1)]  # by whom, its number, token, overtime
    for sender, number, index, overtime in sent:
        message = Message(sender, SERVER, Token(index, 0, 3, np.zeros(12), 0.0), 12, 12)
        server.deliver(Letter(sender, SERVER, number, 0, overtime, {}, message))
    asked = [letter for letter in server.waiting() if isinstance(letter.message.payload, Again)]
    assert [(letter.to, letter.generation) for letter in asked] == [(1, 1), (1, 2)]


def test_a_client_whom_only_the_server_missed_is_missed_by_its_neighbours_when_it_dies() -> None:
    """It has a token, for which there was a receipt, and the server, whose link to it is cut, notices nothing new."""
    world = custody_world(MTCD(tokens=1, hops=50, stepsize=0.02), make_network("cycle", DATA.clients), 1, Faults())
    server = world.postmen[SERVER]
    server.lost(2)
    world.postmen[2].lost(SERVER)
    *_, at = (letter.to for letter in server.waiting())
    carry(world, SERVER, at)
    while at != 2:
        at = roam(world, 0, at)
    world.crash(2)
    tell(world, {2})
    while len(world.told) < 5:
        world.step()
        assert world.time < 2000
    assert_the_server_knows_what_clients_hold(world)


def test_a_hop_that_is_taken_back_is_charged_once() -> None:
    """When a token goes up its hop is charged as one that sends nothing; then it goes to a neighbour after all."""
    method = MTCD(tokens=1, hops=1, stepsize=0.02, walk="tour")  # which never stays where it is
    world = custody_world(method, make_network("cycle", DATA.clients), 1, Faults())
    (letter,) = world.postmen[SERVER].waiting()
    carry(world, SERVER, letter.to)
    client = world.postmen[letter.to]
    charged = client.ledger.messages("charged")["client_client"]
    assert (client.ledger.hops, client.ledger.unsent_hops, charged) == (1, 1, 1)
    client.lost(SERVER)
    (roaming,) = [one for one in client.waiting() if isinstance(one.message.payload, Token)]
    assert roaming.to not in (letter.to, SERVER)
    charged = client.ledger.messages("charged")["client_client"]
    assert (client.ledger.hops, client.ledger.unsent_hops, charged) == (1, 0, 1)
    world.start(letter.to)  # all of this is in the journal
    (kept,) = [one for one in world.postmen[letter.to].waiting() if isinstance(one.message.payload, Token)]
    assert (kept.to, kept.sequence) == (roaming.to, roaming.sequence)


@pytest.mark.parametrize("arrived", [False, True])
@pytest.mark.parametrize("to", [0, 2])
def test_the_server_is_told_of_tokens_that_somebody_may_have_lost(to: int, arrived: bool) -> None:
    """Whoever it is, and also by a process that starts again."""
    method = MTCD(tokens=1, hops=50, stepsize=0.02)
    for hop in range(50):
        world = custody_world(method, make_network("cycle", DATA.clients), 0, Faults())
        token = Token(0, 0, hop, np.zeros(12), 0.0)
        world.postmen[1].deliver(Letter(SERVER, 1, 0, 0, 0, {}, Message(SERVER, 1, token, 12, 12)))
        (letter,) = world.postmen[1].waiting()
        if letter.to == to:
            break
    assert letter.to == to
    if arrived:
        carry(world, 1, to)
    world.postmen[1].lost(to)
    world.start(1)
    told = [one.message.payload for one in world.postmen[1].waiting() if one.to == SERVER]
    assert told == [Missed(0, to) if arrived else Stuck(0)]


def test_clients_wait_for_the_server_and_the_server_for_anybody() -> None:
    world = custody_world(METHODS["average"], make_network("cycle", DATA.clients), 0, Faults())
    client, server = world.postmen[1], world.postmen[SERVER]
    client.lost(2)
    assert client.waits_for == frozenset()
    client.lost(SERVER)
    assert client.waits_for == {2, SERVER}
    for k in range(4):
        server.lost(k)
    assert server.waits_for == frozenset()
    server.lost(4)
    assert server.waits_for == frozenset(range(5))


def test_nothing_starts_anew_after_the_end() -> None:
    world = custody_world(METHODS["average"], make_network("cycle", DATA.clients), 0, Faults())
    server = world.postmen[SERVER]
    assert isinstance(server, ServerPostman)
    assert server.start_anew()
    server.finish("stopped")
    assert server.ended_here
    before = world.journals[SERVER].content
    assert not server.start_anew()
    assert world.journals[SERVER].content == before
