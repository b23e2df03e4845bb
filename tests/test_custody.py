"""Custody: whatever is lost, doubled, delayed or killed, the training is the same, bit by bit."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mtcd.engines.local import LocalEngine
from mtcd.federation.custody.iterations import iteration_postman
from mtcd.federation.custody.journal import Journal
from mtcd.federation.custody.postman import Postman
from mtcd.ledger.ledger import Ledger
from mtcd.methods.method import Method
from mtcd.methods.mtcd import MTCD, STCD
from mtcd.methods.svfl import SVFL
from mtcd.model.linear import Glm
from mtcd.network.topology import make_network
from mtcd.protocol.party import SERVER, Cast
from problems import make_data
from simulated import Faults, Killed, World

METHODS: dict[str, Method] = {
    "stcd": STCD(stepsize=0.02),
    "clusters": MTCD(clusters=[[0, 1, 2], [3, 4]], hops=3, stepsize=0.02),
    "average": MTCD(tokens=3, hops=3, stepsize=0.02),
    "visitors": MTCD(tokens=2, hops=3, stepsize=0.02, combine="visitors"),
    "mini-batch": MTCD(tokens=2, hops=2, stepsize=0.02, batch=4),
    "svfl": SVFL(stepsize=0.01),
}
MODEL = Glm("ridge", alpha=0.7)
DATA = make_data(MODEL, 12, [2, 1, 3, 2, 2], seed=3)
PROBLEM = MODEL.problem(DATA)
EVERYTHING = Faults(loss=0.1, double=0.1, crash=0.02, cut=0.02, hang=0.02)


def casting(name: str, network: str = "cycle") -> Callable[[], Cast]:
    return lambda: METHODS[name].cast(MODEL.problem(DATA), make_network(network, DATA.clients), 7)


def moment(told: Any) -> tuple[int, bytes, float]:
    """A settled moment, bit by bit: its number, the aggregate where it is known, and the penalty of all parameters."""
    aggregate = b"" if told.aggregate is None else told.aggregate.tobytes()
    return told.hop, aggregate, float(told.penalty)


def moments_without_faults(name: str, most: int) -> dict[int, tuple[int, bytes, float]]:
    found: dict[int, tuple[int, bytes, float]] = {}
    for told in LocalEngine(casting(name)(), Ledger()).run():
        found[told.hop] = moment(told)
        if len(found) == most:
            return found
    raise AssertionError("the training ended")


def run(world: World, moments: int, most: int = 60_000) -> None:
    while len({message.payload.hop for message in world.told}) < moments:
        world.step()
        assert world.time < most, world.happened


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", METHODS)
def test_with_any_faults_that_pass_the_training_is_the_same(name: str, seed: int) -> None:
    world = World(casting(name), seed, faults=EVERYTHING)
    run(world, 50)
    expected = moments_without_faults(name, 200)
    for message in world.told:
        assert moment(message.payload) == expected[message.payload.hop]
    assert set(world.processed.values()) <= {0, 1}
    assert min(world.happened[kind] for kind in ("crash", "loss", "double", "cut", "hang")) > 3


def server_world(name: str, seed: int) -> World:
    def make(number: int, cast: Cast, journal: Journal) -> Postman:
        return iteration_postman(number, cast.server if number == SERVER else cast.clients[number], journal, cast.opening)

    return World(casting(name, "complete" if name == "clusters" else "cycle"), seed, make=make, faults=EVERYTHING)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", ["clusters", "average", "visitors", "mini-batch"])
def test_iterations_started_anew_at_any_moment_are_the_same(name: str, seed: int) -> None:
    world = server_world(name, seed)
    anew = 0
    while len(world.told) < 40:
        world.step()
        server = world.postmen.get(SERVER)
        if server is not None and world.random.random() < 0.01:
            try:
                anew += server.start_anew()
            except Killed:
                world.crash(SERVER, world.time + 5)
        assert world.time < 60_000
    local = LocalEngine(world.cast(), Ledger()).run()
    expected = {told.hop: moment(told) for told, _ in zip(local, range(100), strict=False)}
    assert all(moment(message.payload) == expected[message.payload.hop] for message in world.told)
    assert anew > 5


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", ["clusters", "average", "visitors"])
def test_without_a_client_that_stays_dead_the_others_are_trained(name: str, seed: int) -> None:
    world = server_world(name, seed)
    while len(world.told) < 10:
        world.step()
    world.crash(2)
    quiet = world.time + 400
    while len(world.told) < 60:
        for postman in world.postmen.values():
            postman.dead = frozenset({2})
        world.step()
        if world.time > quiet and SERVER in world.postmen:
            quiet = world.time + 400
            try:
                world.postmen[SERVER].start_anew()
            except Killed:
                world.crash(SERVER, world.time + 5)
        assert world.time < 100_000, world.happened
