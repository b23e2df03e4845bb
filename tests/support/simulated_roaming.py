"""Simulated federations with a server that goes and comes back."""

from mtcd.federation.delivery.journal import Journal
from mtcd.federation.delivery.reliable_party import ReliableParty
from mtcd.methods.method import Method
from mtcd.network.topology import Network
from mtcd.protocol.party import SERVER, Parties
from mtcd.testing.simulator.world import Crash, Faults, World
from recovering import iteration_party
from simulated_deliveries import DATA, MODEL


def recovery_world(method: Method, network: Network, seed: int, faults: Faults) -> World:
    def make(number: int, parties: Parties, journal: Journal) -> ReliableParty:
        party = parties.server if number == SERVER else parties.clients[number]
        return iteration_party(number, party, journal, parties.opening, network=network)

    return World(
        lambda: method.parties(MODEL.problem(DATA), network, 7), seed, make=make, faults=faults
    )


def tell(world: World, gone: set[int]) -> None:
    """Every link knows who is gone, as soon as it can."""
    for number, reliable in list(world.parties.items()):
        try:
            for k in gone - reliable.down:
                reliable.peer_lost(k)
            for k in reliable.down - gone:
                reliable.peer_found(k)
        except Crash:
            world.crash(number, world.time + 5)


def go_on(world: World, reports: int, most: int = 1000) -> None:
    """Until there are so many reports."""
    while len(world.reports) < reports:
        world.step()
        assert world.time < most


def without_the_server(world: World) -> None:
    """It dies, all notice, and time goes by."""
    world.crash(SERVER)
    tell(world, {SERVER})
    for _ in range(200):
        world.step()


def with_the_server_again(world: World, syncs: int) -> None:
    """It comes back, and so many syncs follow."""
    told, until = len(world.reports), world.time + 3000
    world.start(SERVER)
    tell(world, set())
    go_on(world, told + syncs, until)
