"""The end of a training with reliable parties: all stop at one moment, with what a training in one
process has then."""

from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from mtcd.engines.choose import engine_for
from mtcd.engines.local import LocalEngine
from mtcd.engines.lockstep import LockstepEngine
from mtcd.federation.delivery.journal import Journal, MemoryJournal
from mtcd.federation.delivery.reliable_party import ReliableParty
from mtcd.federation.recovery.choose import make_reliable_party
from mtcd.federation.recovery.iterations import SPECULATIVE_TERMS
from mtcd.methods.dcpa.dcpa import DCPA
from mtcd.methods.method import Method
from mtcd.methods.mtcd.mtcd import MTCD
from mtcd.methods.tree_cg.tree_cg import TreeCG
from mtcd.network.changes import with_changes
from mtcd.network.topology import make_network
from mtcd.protocol.codec.envelopes import End
from mtcd.protocol.codec.records import pack, unpack
from mtcd.protocol.engine import Engine
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.protocol.party import SERVER, Parties
from mtcd.protocol.token import Token
from mtcd.testing.simulator.world import Crash, Faults, World
from recovering import iteration_party
from simulated_deliveries import DATA, EVERYTHING, METHODS, MODEL, making_parties, no_more_faults
from simulated_ends import (
    HOPS,
    ends,
    in_process,
    limit,
    limited,
    recovering,
    run_to_the_end,
    summed,
)
from simulated_methods import CASES, CROSSING
from simulated_methods import making_parties as casting_any


@pytest.mark.parametrize("faults", [Faults(), EVERYTHING], ids=["calm", "stormy"])
@pytest.mark.parametrize("name", METHODS)
def test_the_end_is_that_of_a_training_in_one_process(name: str, faults: Faults) -> None:
    world = World(making_parties(name), 3, make=limited(recovering(name, "cycle")), faults=faults)
    run_to_the_end(world)
    held, ledger = in_process(world.make_parties())
    crossing = name in ("average", "visitors")
    for mine, theirs in zip(world.parameters(), held, strict=True):
        np.testing.assert_allclose(
            mine, theirs, rtol=1e-12 if crossing else 0, atol=1e-12 if crossing else 0
        )
        assert np.abs(mine).max() > 0
    assert summed(world) == ledger
    for end in ends(world):
        assert end.status == "iterations"
        assert end.hop == HOPS
    no_more_faults(world)
    for _ in range(4000):  # nothing moves any more, and all is received
        world.step()
    assert all(not reliable.unacknowledged() for reliable in world.parties.values())
    assert summed(world) == ledger


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_the_end_of_every_method_is_that_of_a_training_in_one_process(name: str) -> None:
    changing = with_changes(make_network("cycle", DATA.clients), CASES[name][2])

    def make(number: int, parties: Parties, journal: Journal) -> ReliableParty:
        return make_reliable_party(number, parties, journal, changing)

    world = World(casting_any(name), 5, make=limited(make), faults=EVERYTHING)
    run_to_the_end(world)
    parties, ledger = world.make_parties(), Ledger()
    engine = engine_for(parties, ledger)
    next(told for told in engine.run() if limit(told))
    close = CROSSING.get(name, 1e-12)
    for mine, theirs in zip(world.parameters(), parties.parameters(), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=close, atol=close)
    assert summed(world) == ledger


def test_tokens_that_arrive_after_the_end_change_nothing() -> None:
    parties = making_parties("clusters", "complete")()
    (envelope, *_) = iteration_party(
        SERVER, parties.server, MemoryJournal(), parties.opening
    ).unacknowledged()
    token = unpack(pack(envelope))
    ended = unpack(pack(envelope._replace(sequence=1, message=envelope.message)))
    ended.message.payload = End("stopped", 0, 0)
    client = iteration_party(envelope.to, parties.clients[envelope.to], MemoryJournal())
    assert client.deliver(ended).ack is not None
    before = pack(client.party.state())
    assert client.deliver(token).ack is not None
    assert pack(client.party.state()) == before
    assert client.ended == End("stopped", 0, 0)
    assert not client.unacknowledged()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", ["stcd", "clusters", "average", "visitors", "mini-batch", "svfl"])
def test_asked_to_finish_all_stop_and_what_they_hold_fits_together(name: str, seed: int) -> None:
    network = "complete" if name == "clusters" else "cycle"
    world = World(
        making_parties(name, network), seed, make=recovering(name, network), faults=EVERYTHING
    )
    for _ in range(300 + 17 * seed):
        world.step()
    no_more_faults(world)
    for reliable in list(world.parties.values()):
        reliable.finish("stopped")
    run_to_the_end(world)
    end = ends(world)[0]
    assert end.status == "stopped"
    held, problem = world.parameters(), MODEL.problem(DATA)
    server = None if name == "stcd" else world.journals[SERVER].last()["party"]
    if name == "mini-batch":
        assert all(world.journals[k].last()["party"]["t"] == end.t for k in range(5))
    elif server is not None:
        np.testing.assert_allclose(problem.aggregate(held), server["aggregate"], rtol=0, atol=1e-9)
    else:
        told = world.reports[-1].payload
        assert told.hop == end.hop
        np.testing.assert_allclose(problem.aggregate(held), told.aggregate, rtol=0, atol=1e-9)


def server_and_clients(method: MTCD, network: str = "cycle") -> tuple[Any, dict[int, Any]]:
    parties = method.parties(MODEL.problem(DATA), make_network(network, DATA.clients), 7)
    clients = {k: iteration_party(k, parties.clients[k], MemoryJournal(), ()) for k in range(5)}
    return iteration_party(SERVER, parties.server, MemoryJournal(), parties.opening), clients


def test_the_server_sends_out_again_what_a_lost_client_may_have() -> None:
    method = METHODS["clusters"]
    assert isinstance(method, MTCD)
    server, _ = server_and_clients(method, "complete")
    party = server.party
    party.back[0] = party.token(0)  # that of clients 0, 1, 2 is back
    server.peer_lost(1)
    assert server.terms == {}
    server.peer_lost(4)
    assert server.terms == {0: SPECULATIVE_TERMS}
    server.peer_lost(4)
    assert server.terms == {0: SPECULATIVE_TERMS}  # nothing new
    server.peer_lost(3)
    assert server.terms == {0: 2 * SPECULATIVE_TERMS}
    assert party.back.keys() == {1}  # its cluster is gone: it stays
    assert server.down == {1, 3, 4}
    server.peer_found(4)
    assert server.down == {1, 3}


def test_a_client_that_cannot_pass_a_token_on_has_it_regenerated() -> None:
    method = MTCD(tokens=1, hops=8, stepsize=0.02)
    server, clients = server_and_clients(method)
    (envelope,) = server.unacknowledged()
    client = clients[envelope.to]
    while (envelope := unpack(pack(envelope))).to == client.number:
        client.deliver(envelope)
        envelope = client.unacknowledged()[-1]
    client.peer_lost(envelope.to)
    (stuck,) = [one for one in client.unacknowledged() if one.to == SERVER]
    server.deliver(unpack(pack(stuck)))
    assert server.terms == {0: SPECULATIVE_TERMS}
    server.deliver(unpack(pack(stuck._replace(sequence=1))))  # of a term that is over
    assert server.terms == {0: SPECULATIVE_TERMS}
    client.deliver(unpack(pack(server.unacknowledged()[-1]._replace(to=client.number))))
    assert envelope.to not in {
        one.to for one in client.unacknowledged() if isinstance(one.message.payload, Token)
    }


@pytest.mark.long
@pytest.mark.parametrize("network", ["cycle", "path", "star"])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("method", [DCPA(stepsize=0.05), TreeCG()], ids=["dcpa", "tree-cg"])
def test_who_goes_in_step_stops_in_step(method: Method, network: str, seed: int) -> None:
    """Some are asked to stop, at different moments, and some find that the time is up."""
    graph = make_network(network, DATA.clients)

    def make(number: int, parties: Parties, journal: Journal) -> ReliableParty:
        reliable = make_reliable_party(number, parties, journal, graph)
        late = 40 + 5 * number
        reliable.limit = lambda told: "seconds" if seed % 2 and told.iteration > late else None
        return reliable

    world = World(
        lambda: method.parties(MODEL.problem(DATA), graph, 7), seed, make=make, faults=EVERYTHING
    )
    while not all(ends(world)):
        world.step()
        if world.time > 500 and world.random.random() < 0.002 and world.parties:
            asked = world.random.choice(sorted(world.parties))
            with suppress(Crash):
                world.parties[asked].finish("stopped")
        assert world.time < 60_000, world.happened
    assert len({(end.status, end.hop) for end in ends(world) if end is not None}) == 1
    end = ends(world)[0]
    parties = world.make_parties()
    engine: Engine = LocalEngine(parties, Ledger())
    if parties.rounds is not None:
        engine = LockstepEngine(parties, Ledger())
    told = next(told for told in engine.run() if told.hop >= end.hop)
    expected = parties.parameters() if told.parameters is None else told.parameters
    for mine, theirs in zip(world.parameters(), expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("alone", [True, False])
def test_who_finds_that_the_time_is_up_names_an_iteration_and_stops_there_itself(
    alone: bool,
) -> None:
    """So many iterations later as there are clients; that the time is still up does not stop it any
    sooner."""
    graph = make_network("path", DATA.clients)

    def make(number: int, parties: Parties, journal: Journal) -> ReliableParty:
        reliable = make_reliable_party(number, parties, journal, graph)
        if number == 0 or not alone:
            reliable.limit = lambda told: "seconds" if told.iteration >= 10 else None
        return reliable

    world = World(lambda: DCPA(stepsize=0.05).parties(MODEL.problem(DATA), graph, 7), 0, make=make)
    while not all(ends(world)):
        world.step()
        assert world.time < 5000
    found, now = {(end.status, end.hop) for end in ends(world) if end is not None}, 10 + 1
    assert found == {("seconds", now + len(DATA.clients))}
