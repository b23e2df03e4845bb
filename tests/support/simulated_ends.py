"""The end of simulated trainings, and what they are compared with."""

from collections.abc import Callable
from typing import Any

import numpy as np

from mtcd.engines.local import LocalEngine
from mtcd.federation.delivery.journal import Journal
from mtcd.federation.delivery.reliable_party import ReliableParty
from mtcd.federation.recovery.choose import make_reliable_party
from mtcd.network.topology import make_network
from mtcd.protocol.codec.envelopes import End
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.protocol.party import SERVER, Part, Parties
from mtcd.testing.simulator.world import Make, World
from recovering import iteration_party, waiting_party
from simulated_deliveries import DATA

HOPS = 60


def limit(told: Any) -> str | None:
    hop = told.iteration if isinstance(told, Part) else told.hop
    return "iterations" if hop >= HOPS else None


def limited(make: Make, limit: Callable[[Any], str | None] = limit) -> Make:
    """Reliable parties that end by this rule."""

    def made(number: int, parties: Parties, journal: Journal) -> ReliableParty:
        reliable = make(number, parties, journal)
        reliable.limit = limit
        return reliable

    return made


def recovering(name: str, network: str) -> Callable[[int, Parties, Journal], ReliableParty]:
    """The reliable that a federation uses."""

    def make(number: int, parties: Parties, journal: Journal) -> ReliableParty:
        party: Any = parties.server if number == SERVER else parties.clients[number]
        if name == "stcd":
            return make_reliable_party(
                number, parties, journal, make_network(network, DATA.clients)
            )
        if name == "svfl":
            return waiting_party(number, parties, journal)
        return iteration_party(number, party, journal, parties.opening)

    return make


def in_process(
    parties: Parties, limit: Callable[[Any], str | None] = limit
) -> tuple[list[np.ndarray], Ledger]:
    ledger = Ledger()
    next(told for told in LocalEngine(parties, ledger).run() if limit(told))
    return parties.parameters(), ledger


def summed(world: World) -> Ledger:
    """Of all parties, from their journals."""
    total = Ledger()
    for number in world.numbers:
        one = world.journals[number].last()["ledger"]
        for link in range(3):
            total.message_counts[link] += one.message_counts[link]
            total.float_counts[link] += one.float_counts[link]
            total.wide_counts[link] += one.wide_counts[link]
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
