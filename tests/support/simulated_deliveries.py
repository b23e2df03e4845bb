"""Trainings of reliable parties in the simulator, with and without faults."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mtcd.engines.local import LocalEngine
from mtcd.federation.delivery.journal import Journal
from mtcd.federation.delivery.reliable_party import ReliableParty
from mtcd.methods.method import Method
from mtcd.methods.mtcd.mtcd import MTCD, STCD
from mtcd.methods.svfl.svfl import SVFL
from mtcd.models.glm.model import Glm
from mtcd.network.topology import make_network
from mtcd.protocol.codec.records import pack, unpack
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.protocol.party import SERVER, Parties
from mtcd.testing.simulator.invariants import check_server
from mtcd.testing.simulator.world import Crash, Faults, World
from problems import make_data
from recovering import iteration_party

METHODS: dict[str, Method] = {
    "stcd": STCD(stepsize=0.02, local_updates=5),
    "clusters": MTCD(clusters=[[0, 1, 2], [3, 4]], hops=3, stepsize=0.02, local_updates=5),
    "average": MTCD(tokens=3, hops=3, stepsize=0.02, local_updates=5),
    "visitors": MTCD(tokens=2, hops=3, stepsize=0.02, local_updates=5, combine="visitors"),
    "mini-batch": MTCD(tokens=2, hops=2, stepsize=0.02, batch=4),
    "svfl": SVFL(stepsize=0.01),
}


MODEL = Glm("ridge", alpha=0.7)


DATA = make_data(MODEL, 12, [2, 1, 3, 2, 2], seed=3)


PROBLEM = MODEL.problem(DATA)


EVERYTHING = Faults(loss=0.1, duplicate=0.1, crash=0.02, cut=0.02, hang=0.02)


def making_parties(name: str, network: str = "cycle") -> Callable[[], Parties]:
    return lambda: METHODS[name].parties(
        MODEL.problem(DATA), make_network(network, DATA.clients), 7
    )


def moments_without_faults(parties: Parties, most: int) -> dict[int, tuple[Any, float]]:
    told = LocalEngine(parties, Ledger()).run()
    found = {}
    for one, _ in zip(told, range(most), strict=False):  # a lone token goes on changing: copied
        found[one.hop] = None if one.aggregate is None else one.aggregate.copy(), float(one.penalty)
    return found


def assert_same(name: str, world: World, most: int = 200) -> None:
    """All moments told are those of a training without faults, bit for bit.

    Where tokens cross, what they tell of the sync is added up in the order of their visits, in any
    engine: then the penalty is the same but for rounding, and with 'visitors' so is the aggregate.
    """
    expected = moments_without_faults(world.make_parties(), most)
    for message in world.reports:
        told, (aggregate, penalty) = message.payload, expected[message.payload.hop]
        if name in ("average", "visitors"):
            assert told.penalty == pytest.approx(penalty, rel=1e-11)
        else:
            assert told.penalty == penalty
        if name == "visitors":
            np.testing.assert_allclose(told.aggregate, aggregate, rtol=1e-11, atol=1e-12)
        elif aggregate is not None:
            assert told.aggregate.tobytes() == aggregate.tobytes()


def run(world: World, moments: int, most: int = 60_000) -> None:
    while len({message.payload.hop for message in world.reports}) < moments:
        world.step()
        assert world.time < most, world.happened


def server_world(name: str, seed: int) -> World:
    def make(number: int, parties: Parties, journal: Journal) -> ReliableParty:
        return iteration_party(
            number,
            parties.server if number == SERVER else parties.clients[number],
            journal,
            parties.opening,
        )

    return World(
        making_parties(name, "complete" if name == "clusters" else "cycle"),
        seed,
        make=make,
        faults=EVERYTHING,
    )


def assert_the_server_knows_what_clients_hold(world: World) -> None:
    check_server(world, PROBLEM)


def no_more_faults(world: World) -> None:
    """All parties that are away start again."""
    world.faults = Faults()
    for number in list(world.away):
        world.start(number)


def restart_iteration(world: World) -> bool:
    """Whether the server, if it is there, did."""
    if SERVER not in world.parties:
        return False
    try:
        return bool(world.parties[SERVER].policy.restart_iteration())  # type: ignore[attr-defined]
    except Crash:
        world.crash(SERVER, world.time + 5)
        return False


def carry(sender: ReliableParty, to: ReliableParty) -> None:
    """What waits for somebody arrives, and there is an ack."""
    for envelope in sender.unacknowledged():
        if envelope.to == to.number:
            ack = to.deliver(unpack(pack(envelope))).ack
            assert ack is not None
            sender.acknowledge(ack)
