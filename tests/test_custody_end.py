"""The end of a training in custody: all stop at one moment, with what a training in one process has then."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from mtcd.engines.local import LocalEngine
from mtcd.engines.lockstep import LockstepEngine
from mtcd.federation.custody.choose import make_postman
from mtcd.federation.custody.iterations import OVERTIMES
from mtcd.federation.custody.journal import Journal, MemoryJournal
from mtcd.federation.custody.letters import End
from mtcd.federation.custody.lone_token import LonePostman
from mtcd.federation.custody.postman import Postman
from mtcd.federation.custody.records import pack, unpack
from mtcd.ledger.ledger import Ledger
from mtcd.methods.dcpa import DCPA
from mtcd.methods.mtcd import MTCD
from mtcd.network.changes import with_changes
from mtcd.network.topology import make_network
from mtcd.protocol.party import SERVER, Cast, Part
from mtcd.protocol.token import Token
from simulated import Faults, Killed, World, iteration_postman, plain_postman
from test_custody import DATA, EVERYTHING, METHODS, MODEL, casting
from test_custody_methods import CASES, CROSSING
from test_custody_methods import casting as casting_any

HOPS = 60


def limit(told: Any) -> str | None:
    hop = told.iteration if isinstance(told, Part) else told.hop
    return "iterations" if hop >= HOPS else None


def custodian(name: str, network: str) -> Callable[[int, Cast, Journal], Postman]:
    """The postman that a federation uses."""

    def make(number: int, cast: Cast, journal: Journal) -> Postman:
        party: Any = cast.server if number == SERVER else cast.clients[number]
        if name == "stcd":
            return LonePostman(number, party, journal, cast.opening, make_network(network, DATA.clients))
        if name == "svfl":
            return plain_postman(number, cast, journal)
        return iteration_postman(number, party, journal, cast.opening)

    return make


def limited(make: Callable[[int, Cast, Journal], Postman]) -> Callable[[int, Cast, Journal], Postman]:
    def made(number: int, cast: Cast, journal: Journal) -> Postman:
        postman = make(number, cast, journal)
        postman.limit = limit
        return postman

    return made


def in_process(cast: Cast) -> tuple[list[np.ndarray], Ledger]:
    ledger = Ledger()
    next(told for told in LocalEngine(cast, ledger).run() if limit(told))
    return cast.parameters(), ledger


def summed(world: World) -> Ledger:
    """Of all parties, from their journals."""
    total = Ledger()
    for number in world.numbers:
        one = world.journals[number].last()["ledger"]
        for link in range(3):
            total.message_counts[link] += one.message_counts[link]
            total.float_counts[link] += one.float_counts[link]
        total.hops += one.hops
        total.unsent_hops += one.unsent_hops
        total.unsent_floats += one.unsent_floats
    return total


def ends(world: World) -> list[End | None]:
    return [world.journals[number].last()["ended"] for number in world.numbers]


def run_to_the_end(world: World, most: int = 60_000) -> None:
    while not all(ends(world)):
        for _ in range(20):
            world.step()
        assert world.time < most, world.happened
    assert len(set(map(repr, ends(world)))) == 1


@pytest.mark.parametrize("faults", [Faults(), EVERYTHING], ids=["calm", "stormy"])
@pytest.mark.parametrize("name", METHODS)
def test_the_end_is_that_of_a_training_in_one_process(name: str, faults: Faults) -> None:
    world = World(casting(name), 3, make=limited(custodian(name, "cycle")), faults=faults)
    run_to_the_end(world)
    held, ledger = in_process(world.cast())
    crossing = name in ("average", "visitors")
    for mine, theirs in zip(world.parameters(), held, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12 if crossing else 0, atol=1e-12 if crossing else 0)
        assert np.abs(mine).max() > 0
    assert summed(world) == ledger
    for end in ends(world):
        assert end is not None
        assert end.status == "iterations"
        assert end.hop == HOPS
    world.faults = Faults()
    for number in list(world.away):
        world.start(number)
    for _ in range(4000):  # nothing moves any more, and all is received
        world.step()
    assert all(not postman.waiting() for postman in world.postmen.values())
    assert summed(world) == ledger


@pytest.mark.parametrize("name", CASES)
def test_the_end_of_every_method_is_that_of_a_training_in_one_process(name: str) -> None:
    changing = with_changes(make_network("cycle", DATA.clients), CASES[name][2])

    def make(number: int, cast: Cast, journal: Journal) -> Postman:
        return make_postman(number, cast, journal, changing)

    world = World(casting_any(name), 5, make=limited(make), faults=EVERYTHING)
    run_to_the_end(world)
    cast, ledger = world.cast(), Ledger()
    engine = LocalEngine(cast, ledger) if cast.rounds is None else LockstepEngine(cast.rounds, ledger)
    next(told for told in engine.run() if limit(told))
    close = CROSSING.get(name, 1e-12)
    for mine, theirs in zip(world.parameters(), cast.parameters(), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=close, atol=close)
    assert summed(world) == ledger


def test_tokens_that_arrive_after_the_end_change_nothing() -> None:
    cast = casting("clusters", "complete")()
    (letter, *_) = iteration_postman(SERVER, cast.server, MemoryJournal(), cast.opening).waiting()
    token = unpack(pack(letter))
    ended = unpack(pack(letter._replace(sequence=1, message=letter.message)))
    ended.message.payload = End("stopped", 0, 0)
    client = iteration_postman(letter.to, cast.clients[letter.to], MemoryJournal())
    assert client.deliver(ended).receipt is not None
    before = pack(client.party.state())
    assert client.deliver(token).receipt is not None
    assert pack(client.party.state()) == before
    assert client.ended == End("stopped", 0, 0)
    assert not client.waiting()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", ["stcd", "clusters", "average", "visitors", "mini-batch", "svfl"])
def test_asked_to_finish_all_stop_and_what_they_hold_fits_together(name: str, seed: int) -> None:
    network = "complete" if name == "clusters" else "cycle"
    world = World(casting(name, network), seed, make=custodian(name, network), faults=EVERYTHING)
    for _ in range(300 + 17 * seed):
        world.step()
    world.faults = Faults()
    for number in list(world.away):
        world.start(number)
    for postman in list(world.postmen.values()):
        postman.finish("stopped")
    run_to_the_end(world)
    end = ends(world)[0]
    assert end is not None
    assert end.status == "stopped"
    held, problem = world.parameters(), MODEL.problem(DATA)
    server = None if name == "stcd" else world.journals[SERVER].last()["party"]
    if name == "mini-batch":
        assert all(world.journals[k].last()["party"]["t"] == end.t for k in range(5))
    elif server is not None:
        np.testing.assert_allclose(problem.aggregate(held), server["aggregate"], rtol=0, atol=1e-9)
    else:
        told = world.told[-1].payload
        assert isinstance(told, Token)
        assert told.hop == end.hop
        np.testing.assert_allclose(problem.aggregate(held), told.aggregate, rtol=0, atol=1e-9)


def server_and_clients(method: MTCD, network: str = "cycle") -> tuple[Any, dict[int, Any]]:
    cast = method.cast(MODEL.problem(DATA), make_network(network, DATA.clients), 7)
    clients = {k: iteration_postman(k, cast.clients[k], MemoryJournal(), ()) for k in range(5)}
    return iteration_postman(SERVER, cast.server, MemoryJournal(), cast.opening), clients


def test_the_server_sends_out_anew_what_a_lost_client_may_have() -> None:
    method = METHODS["clusters"]
    assert isinstance(method, MTCD)
    server, _ = server_and_clients(method, "complete")
    party = server.party
    party.back[0] = party.token(0)  # that of clients 0, 1, 2 is back
    server.lost(1)
    assert server.fences == {}
    server.lost(4)
    assert server.fences == {0: OVERTIMES}
    server.lost(4)
    assert server.fences == {0: OVERTIMES}  # nothing new
    server.lost(3)
    assert server.fences == {0: 2 * OVERTIMES}
    assert party.back.keys() == {1}  # its cluster is gone: it stays
    assert server.dead == {1, 3, 4}
    server.found(4)
    assert server.dead == {1, 3}


def test_a_client_that_cannot_pass_a_token_on_has_it_made_anew() -> None:
    method = MTCD(tokens=1, hops=8, stepsize=0.02)
    server, clients = server_and_clients(method)
    (letter,) = server.waiting()
    client = clients[letter.to]
    while (letter := unpack(pack(letter))).to == client.number:
        client.deliver(letter)
        letter = client.waiting()[-1]
    client.lost(letter.to)
    (stuck,) = [one for one in client.waiting() if one.to == SERVER]
    server.deliver(unpack(pack(stuck)))
    assert server.fences == {0: OVERTIMES}
    server.deliver(unpack(pack(stuck._replace(sequence=1))))  # of a generation that is over
    assert server.fences == {0: OVERTIMES}
    client.deliver(unpack(pack(server.waiting()[-1]._replace(to=client.number))))
    assert letter.to not in {one.to for one in client.waiting() if isinstance(one.message.payload, Token)}


@pytest.mark.parametrize("network", ["cycle", "path", "star"])
@pytest.mark.parametrize("seed", range(4))
def test_who_goes_in_step_stops_in_step(network: str, seed: int) -> None:
    """Some are asked to stop, at different moments, and some find that the time is up."""
    graph = make_network(network, DATA.clients)
    method = DCPA(stepsize=0.05)

    def make(number: int, cast: Cast, journal: Journal) -> Postman:
        postman = make_postman(number, cast, journal, graph)
        late = 40 + 5 * number
        postman.limit = lambda told: "seconds" if seed % 2 and told.iteration > late else None
        return postman

    world = World(lambda: method.cast(MODEL.problem(DATA), graph, 7), seed, make=make, faults=EVERYTHING)
    while not all(ends(world)):
        world.step()
        if world.time > 500 and world.random.random() < 0.002 and world.postmen:
            asked = world.random.choice(sorted(world.postmen))
            with suppress(Killed):
                world.postmen[asked].finish("stopped")
        assert world.time < 60_000, world.happened
    assert len({(end.status, end.hop) for end in ends(world) if end is not None}) == 1
    end = ends(world)[0]
    assert end is not None
    cast = world.cast()
    assert cast.rounds is not None
    next(told for told in LockstepEngine(cast.rounds, Ledger()).run() if told.hop >= end.hop)
    for mine, theirs in zip(world.parameters(), cast.parameters(), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("alone", [True, False])
def test_who_finds_that_the_time_is_up_names_an_iteration_and_stops_there_itself(alone: bool) -> None:
    """So many iterations later as there are clients; that the time is still up does not stop it any sooner."""
    graph = make_network("path", DATA.clients)

    def make(number: int, cast: Cast, journal: Journal) -> Postman:
        postman = make_postman(number, cast, journal, graph)
        if number == 0 or not alone:
            postman.limit = lambda told: "seconds" if told.iteration >= 10 else None
        return postman

    world = World(lambda: DCPA(stepsize=0.05).cast(MODEL.problem(DATA), graph, 7), 0, make=make)
    while not all(ends(world)):
        world.step()
        assert world.time < 5000
    found, now = {(end.status, end.hop) for end in ends(world) if end is not None}, 10 + 1
    assert found == {("seconds", now + len(DATA.clients))}
