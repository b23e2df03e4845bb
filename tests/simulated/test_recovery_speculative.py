"""Speculative roaming while the server is down, or seems to be: uploaded tokens roam on, and count
or do not."""

from collections import Counter

import numpy as np
import pytest

from mtcd.federation.delivery.reliable_party import ReliableParty
from mtcd.federation.recovery.iterations import SPECULATIVE_TERMS
from mtcd.methods.mtcd.mtcd import MTCD
from mtcd.methods.mtcd.server import TokenClient, Visits
from mtcd.models.glm.optimum.optimum import optimum
from mtcd.network.topology import make_network
from mtcd.protocol.codec.envelopes import Envelope
from mtcd.protocol.party import SERVER
from mtcd.protocol.token import Token
from mtcd.testing.simulator.world import Crash, Faults, World
from simulated_deliveries import (
    DATA,
    METHODS,
    PROBLEM,
    assert_the_server_knows_what_clients_hold,
    no_more_faults,
)
from simulated_roaming import recovery_world, tell, with_the_server_again, without_the_server

MANY = {
    "average": METHODS["average"],
    "visitors": METHODS["visitors"],
    "clusters": METHODS["clusters"],
    "one": MTCD(tokens=1, hops=2, stepsize=0.02, local_updates=5),
    "tours": MTCD(
        tokens=2, hops=4, stepsize=0.02, local_updates=5, walk="random-tour", combine="average"
    ),
}
BEST = optimum(PROBLEM.blocks, PROBLEM.labels, PROBLEM.loss, PROBLEM.penalties).value
STORM = Faults(loss=0.05, duplicate=0.1, crash=0.003, cut=0.01, hang=0.01)


def world_of(name: str, seed: int, faults: Faults) -> World:
    network = make_network("complete" if name == "clusters" else "cycle", DATA.clients)
    world = recovery_world(MANY[name], network, seed, faults)
    world.eager = 0.4
    return world


def to_come(world: World) -> list[Envelope]:
    """Tokens that are still to be visited with, if they count."""
    found = []
    for number, journal in world.journals.items():
        for envelope in journal.last()["outbox"]:
            if not isinstance(envelope.message.payload, Token):
                continue
            sender, receiver = as_kept(world, number), as_kept(world, envelope.to)
            if not (
                receiver.is_duplicate(envelope)
                or receiver.policy.is_stale(envelope)
                or sender.policy.is_stale(envelope)
            ):
                found.append(envelope)
    return found


def as_kept(world: World, number: int) -> ReliableParty:
    """A party as its journal has it, also if it is down. It has heard which terms the server knows
    to count."""
    reliable = world.from_journal(number)
    reliable.policy.learn_terms(world.journals[SERVER].last()["terms"])
    return reliable


def assert_tokens_are_true(world: World) -> int:
    """Every token is the aggregate of the copies that clients hold for it, also while it roams
    speculatively."""
    clients = [as_kept(world, k) for k in range(len(DATA.clients))]
    checked = 0
    for envelope in to_come(world):
        token = envelope.message.payload
        if any(client.party.t > token.t for client in clients):
            continue  # it does not count
        held = []
        for client in clients:
            if client.party.t < token.t:
                client.policy.roll_back()
            held.append(client.party.copy_for(token))
        np.testing.assert_allclose(PROBLEM.aggregate(held), token.aggregate, rtol=0, atol=1e-9)
        checked += 1
    return checked


def reach_the_optimum(world: World) -> None:
    no_more_faults(world)
    tell(world, set())
    goal = world.reports[-1].payload.hop + 3000
    while world.reports[-1].payload.hop < goal:
        world.step()
    assert_the_server_knows_what_clients_hold(world)
    last = world.reports[-1].payload
    assert PROBLEM.read_off(last.aggregate, last.penalty) == pytest.approx(BEST, rel=1e-5)


@pytest.mark.long
@pytest.mark.parametrize("name", MANY)
def test_whenever_the_server_dies_tokens_roam_on(name: str) -> None:
    """Also with few hops between syncs, and if it had all of them: at whatever moment between two
    syncs."""
    for moment in range(30):
        world = world_of(name, moment % 3, Faults(loss=0.05, duplicate=0.1))
        while len(world.reports) < 3:
            world.step()
        for _ in range(moment):
            world.step()
        without_the_server(world)
        assert max(envelope.message.payload.hop for envelope in to_come(world)) > 10
        assert assert_tokens_are_true(world) > 0
        with_the_server_again(world, 3)
        assert_the_server_knows_what_clients_hold(world)
    reach_the_optimum(world)


@pytest.fixture
def undone(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Iterations, each time that a speculative term of one turned out not to count at some
    client."""
    found: list[int] = []
    undo = TokenClient.undo_visits

    def counted(client: TokenClient, since: Visits | None = None) -> None:
        found.extend([] if since is None else [client.t])
        undo(client, since)

    monkeypatch.setattr(TokenClient, "undo_visits", counted)
    return found


@pytest.mark.parametrize("name", ["average", "visitors", "clusters", "tours"])
def test_what_was_done_without_the_server_counts_unless_it_had_synced(
    name: str, undone: list[int]
) -> None:
    """Also what a token did that had come back to it."""
    for seed in range(5):
        world = world_of(name, seed, Faults(loss=0.05))
        while len(world.reports) < 5 or not world.journals[SERVER].last()["uploaders"]:
            world.step()
        server = world.journals[SERVER].last()
        without_the_server(world)
        roamed = {
            envelope.message.payload.index: envelope.message.payload.hop
            for envelope in to_come(world)
        }
        assert all(roamed[index] > 10 for index in server["uploaders"])
        with_the_server_again(world, 1)
        assert_the_server_knows_what_clients_hold(world)
        # but earlier ones may be: not all clients knew that they are over
        assert server["party"]["t"] not in undone
        undone.clear()


@pytest.mark.long
@pytest.mark.parametrize("name", MANY)
def test_through_right_and_wrong_beliefs_all_that_counts_fits(name: str, undone: list[int]) -> None:
    happened = Counter[str]()
    for seed in range(2):
        world = world_of(name, seed, STORM)
        believe_anything_until(world, 60, happened)
    assert undone
    assert min(happened["counted"], happened["true"]) > 0
    reach_the_optimum(world)


def believe_anything_until(world: World, told: int, happened: Counter[str]) -> None:
    """All the while what is kept fits. Counts tokens looked at, and speculative terms that were
    synced."""
    while len(world.reports) < told:
        believe_anything(world)
        if SERVER in world.parties and world.random.random() < 0.01:
            world.crash(SERVER, world.time + world.random.randrange(150))
        world.step()
        if world.time % 30 == 0:
            assert_the_server_knows_what_clients_hold(world)
            happened["true"] += assert_tokens_are_true(world)
        server = world.journals[SERVER].last()
        happened["counted"] += any(
            g % SPECULATIVE_TERMS for t, g in server["terms"].items() if t < server["party"]["t"]
        )
        assert world.time < 60_000, world.happened


def believe_anything(world: World) -> None:
    """Clients and the server take each other for gone and for back, as if by chance."""
    for number, reliable in list(world.parties.items()):
        others = range(len(DATA.clients)) if number == SERVER else [SERVER]
        for k in others:
            chance = world.random.random()
            try:
                if chance < (0.0005 if number == SERVER else 0.01):
                    reliable.peer_lost(k)
                elif chance < 0.05:
                    reliable.peer_found(k)
            except Crash:
                world.crash(number, world.time + 5)
                break


@pytest.mark.long
@pytest.mark.parametrize("name", MANY)
def test_the_end_is_that_of_the_last_sync_whatever_roamed_speculatively(name: str) -> None:
    for seed in range(3):
        world = world_of(name, seed, STORM)
        believe_anything_until(world, 15, Counter())
        while SERVER not in world.parties:
            world.step()
        world.faults = Faults()
        world.parties[SERVER].finish("stopped")
        no_more_faults(world)
        for _ in range(1500):
            world.step()
        server = world.journals[SERVER].last()
        assert {repr(world.journals[number].last()["ended"]) for number in world.numbers} == {
            repr(server["ended"])
        }
        np.testing.assert_allclose(
            PROBLEM.aggregate(world.parameters()), server["party"]["aggregate"], rtol=0, atol=1e-9
        )
