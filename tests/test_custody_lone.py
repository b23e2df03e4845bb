"""Custody of a lone token: one token at all times, whoever is suspected of being gone, rightly or wrongly."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

from mtcd.federation.custody.journal import Journal, MemoryJournal
from mtcd.federation.custody.lone_token import LonePostman
from mtcd.methods.mtcd import STCD
from mtcd.model.linear import Glm
from mtcd.network.topology import Network, make_network
from mtcd.objective.optimum import optimum
from mtcd.protocol.party import Cast
from mtcd.protocol.token import Token
from problems import make_data
from simulated import Faults, Killed, World

MODEL = Glm("ridge", alpha=0.7)
DATA = make_data(MODEL, 12, [2, 1, 3, 2, 2], seed=3)
PROBLEM = MODEL.problem(DATA)
FAULTS = Faults(loss=0.05, double=0.1, crash=0.005, cut=0.02, hang=0.02)


def lone_world(network: Network, seed: int, faults: Faults) -> World:
    def make(number: int, cast: Cast, journal: Journal) -> LonePostman:
        return LonePostman(number, cast.clients[number], journal, cast.opening, network)

    return World(lambda: STCD(stepsize=0.02, local_updates=5).cast(PROBLEM, network, 7), seed, make=make, faults=faults)


def custody(world: World) -> tuple[Token, list[np.ndarray]]:
    """The one token that counts and is still to be visited with, and what clients hold, from the journals alone."""
    fences: dict[int, int] = {}
    for journal in world.journals.values():
        fences |= journal.last()["fences"]
    postmen = {}
    for k in world.numbers:
        kept = MemoryJournal()
        kept.content = world.journals[k].content
        postmen[k] = world.make(k, world.cast(), kept)
        postmen[k].heed(fences)
    letters = [letter for postman in postmen.values() for letter in postman.outbox.values()]
    tokens = [
        letter.message.payload
        for letter in letters
        if isinstance(letter.message.payload, Token)
        and letter.generation == max(fences, default=0)
        and not postmen[letter.to].was_seen(letter)
    ]
    assert len(tokens) == 1
    return tokens[0], [postmen[k].party.parameters() for k in world.numbers]


def assert_kept(world: World) -> Token:
    token, held = custody(world)
    np.testing.assert_allclose(token.aggregate, PROBLEM.aggregate(held), rtol=0, atol=1e-9)
    penalty = sum(PROBLEM.client(k).penalty(theta) for k, theta in enumerate(held))
    assert token.penalty == pytest.approx(penalty, abs=1e-9)
    return token


def seek(world: World, who: int, gone: int) -> bool:
    if who not in world.postmen:
        return False
    postman: Any = world.postmen[who]
    try:
        return postman.seek(gone)
    except Killed:
        world.crash(who, world.time + 5)
        return True


@pytest.mark.parametrize("network", ["cycle", "complete"])
@pytest.mark.parametrize("seed", range(4))
def test_false_suspicions_never_double_or_lose_the_token(network: str, seed: int) -> None:
    world = lone_world(make_network(network, DATA.clients), seed, FAULTS)
    asked: Counter[str] = Counter()
    while world.time < 3000:
        world.step()
        if world.random.random() < 0.1:
            asked["asked"] += seek(world, *world.random.sample(world.numbers, 2))
        if world.time % 20 == 0:
            assert_kept(world)
    assert asked["asked"] > 5
    assert max(postman.generation_of(0) for postman in world.postmen.values()) > 0
    hop = assert_kept(world).hop
    world.faults = Faults()
    for _ in range(2000):
        world.step()
    assert assert_kept(world).hop > hop + 50


@pytest.mark.parametrize("seed", range(3))
def test_the_token_of_a_dead_client_is_made_anew_and_the_client_undoes_its_visit(seed: int) -> None:
    world = lone_world(make_network("cycle", DATA.clients), seed, Faults(loss=0.05, double=0.1))
    for _ in range(100 + seed):
        world.step()
    holder = next(
        k for k, postman in world.postmen.items() if postman.hop == max(p.hop for p in world.postmen.values())
    )
    world.crash(holder)
    hop = assert_kept(world).hop
    for _ in range(3000):
        for k in world.postmen:
            world.postmen[k].dead = frozenset({holder})
            seek(world, k, holder)
        world.step()
    assert assert_kept(world).hop > hop + 50
    for postman in world.postmen.values():
        postman.dead = frozenset()
    world.faults = Faults()
    world.start(holder)
    while max(postman.hop for postman in world.postmen.values()) < 2500:
        world.step()
    token = assert_kept(world)
    best = optimum(PROBLEM.blocks, PROBLEM.labels, PROBLEM.loss, PROBLEM.penalties).value
    assert PROBLEM.read_off(token.aggregate, token.penalty) == pytest.approx(best, rel=1e-5)


def test_where_the_network_would_fall_apart_the_token_is_waited_for() -> None:
    world = lone_world(make_network("path", DATA.clients), 1, Faults())
    postman: Any = world.postmen[1]
    assert not postman.can_seek(2)
    assert postman.can_seek(0)
