"""A party that is made again from its journal has every attribute of the one that wrote it,
whatever has happened."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

import mtcd
from lone_worlds import lone_world
from mtcd.federation.delivery.journal import MemoryJournal
from mtcd.federation.recovery.choose import make_reliable_party
from mtcd.methods.dcpa.dcpa import DCPA
from mtcd.methods.method import Method
from mtcd.methods.mtcd.mtcd import MTCD, STCD
from mtcd.methods.svfl.svfl import SVFL
from mtcd.network.topology import make_network
from mtcd.privacy.masked.masked import with_masks
from mtcd.privacy.sealed.bfv.cipher import find
from mtcd.privacy.sealed.dp.settings import PrivateTours
from mtcd.privacy.sealed.settings import SealedTours
from mtcd.protocol.codec.envelopes import End
from mtcd.protocol.party import SERVER
from mtcd.testing.simulator.world import Faults, World, make_with
from mtcd.training.plateau import WINDOWS, Windows
from problems import make_data
from same_objects import differences
from simulated_deliveries import DATA, PROBLEM

FAULTS = Faults(loss=0.05, duplicate=0.1, cut=0.01, hang=0.01)
NOT_KEPT = {
    "model": "columns, and what follows from them",
    "plan": "settings, and what follows from them",
    "masks": "from the keys",
    "double_masks": "from the keys",
    "journal": "it is a copy",
    "unchanged": "of the visit that has ended",
    "resumed": "whether this process began from a journal",
    "_prepared": "from the keys and the columns",
    "scales": "from the plan",
    "rounded": "from the columns",
    "column_scales": "from the columns",
    "down": "links report it again",
    "suspects": "links report it again",
    "latest": "a note for whoever watches",
    "reports": "whoever reads them empties it",
    "outbox": "an ack that has come since the last commit comes again",
}


def world_of(method: Method, network: str) -> World:
    graph = make_network(network, DATA.clients)
    return World(
        lambda: method.parties(PROBLEM, graph, 7), 1, make_with(make_reliable_party, graph), FAULTS
    )


def sealed_world(server: bool, dp: mtcd.DP | None = None) -> World:
    """The key is made once, as if it were in the folder of its holder."""
    graph, make_key = make_network("path", SEALED_DATA.clients), cache(find("clear").generate)
    settings: dict[str, Any] = {"scheme": "clear", "server": server}
    method = SealedTours(depth=2, **settings) if dp is None else PrivateTours(dp=dp, **settings)
    problem = LOGISTIC.problem(SEALED_DATA)
    return World(
        lambda: method.parties(problem, graph, 7, make_key=make_key),
        1,
        make_with(make_reliable_party, graph),
        FAULTS,
    )


LOGISTIC = mtcd.Glm("logistic", l2=0.5)
SEALED_DATA = make_data(LOGISTIC, 40, [8, 6, 7], seed=3)
CLUSTERS: dict[str, Any] = {"clusters": [[0, 1, 2], [3, 4]], "hops": 4, "stepsize": 0.02}
BATCHES = MTCD(tokens=2, hops=3, stepsize=0.005, batch=6)
WORLDS: dict[str, Callable[[], World]] = {
    "tokens": lambda: world_of(MTCD(tokens=2, hops=3, stepsize=0.02, combine="visitors"), "cycle"),
    "tours": lambda: world_of(MTCD(walk="tour", **CLUSTERS), "complete"),
    "mini-batches": lambda: world_of(BATCHES, "complete"),
    "rounds, masks": lambda: world_of(with_masks(SVFL(stepsize=0.005, batch=6)), "complete"),
    "rounds": lambda: world_of(SVFL(stepsize=0.005, batch=6), "complete"),
    "double masks": lambda: world_of(
        with_masks(SVFL(stepsize=0.005, batch=6), "double-masked"), "complete"
    ),
    "tokens, double masks": lambda: world_of(with_masks(BATCHES, "double-masked"), "complete"),  # type: ignore[attr-defined]
    "accelerated": lambda: world_of(
        MTCD(walk="tour", acceleration="momentum", **CLUSTERS), "complete"
    ),
    "optimal sync": lambda: world_of(
        MTCD(tokens=2, hops=3, stepsize=0.02, combine="optimal"), "cycle"
    ),
    "masks": lambda: world_of(with_masks(MTCD(**CLUSTERS)), "complete"),
    "iterations": lambda: world_of(DCPA(stepsize=0.05), "cycle"),
    "lone accelerated": lambda: world_of(
        STCD(stepsize=0.02, walk="tour", acceleration="conjugate"), "cycle"
    ),
    "sealed": lambda: sealed_world(True),
    "sealed, no server": lambda: sealed_world(False),
    "private": lambda: sealed_world(True, dp=mtcd.DP(epsilon=8.0, tours=6)),
    "lone token": lambda: lone_world("cycle", 1, FAULTS),
    "lone tour": lambda: lone_world("complete", 1, FAULTS, "random-tour"),
}


@pytest.mark.parametrize("name", WORLDS)
def test_nothing_that_a_party_knows_is_missing_in_its_journal(name: str) -> None:
    world, chance = WORLDS[name](), random.Random(2)
    long = name == "tokens" or "double" in name
    for moment in range(600 if long else 160):
        world.step()
        if chance.random() < 0.15:  # links report a party as down, or up again, rightly or wrongly
            observer, other = chance.sample(world.numbers, 2)
            if SERVER in world.numbers and observer != SERVER and chance.random() < 0.5:
                other = SERVER
            if observer in world.parties:
                world.report(observer, other, other not in world.parties[observer].down)
        if moment % (20 if long else 8) == 0:
            assert_kept(world)


def test_nor_is_the_end() -> None:
    world = WORLDS["tokens"]()
    for _ in range(30):
        world.step()
    server = world.parties[SERVER]
    server.stop_request = ("stopped", 40)
    server.put(WINDOWS.name, Windows(3, 0.25))
    server.ended, server.ended_here = End("plateau", 2, 6), True
    server.commit()
    assert_kept(world)


def assert_kept(world: World) -> None:
    for number, party in world.parties.items():
        again = world.from_journal(number)
        assert isinstance(again.journal, MemoryJournal)
        assert differences(party, again, NOT_KEPT) == []
        assert party.outbox.keys() <= again.outbox.keys()
        for place, envelope in party.outbox.items():
            assert differences(envelope, again.outbox[place]) == []
