"""Custody of a lone token: one token at all times, whoever is suspected of being gone, rightly or wrongly."""

import numpy as np
import pytest

from lone_worlds import PROBLEM, assert_kept, lone_world, tell
from mtcd.network.topology import make_network
from simulated import Faults

FAULTS = Faults(loss=0.05, double=0.1, crash=0.005, cut=0.02, hang=0.02)


@pytest.mark.parametrize("network", ["cycle", "complete", "path", "star"])
@pytest.mark.parametrize("seed", range(3))
def test_false_suspicions_never_double_or_lose_the_token(network: str, seed: int) -> None:
    world = lone_world(network, seed, FAULTS)
    while world.time < 3000:
        world.step()
        if world.random.random() < 0.1:
            who, k = world.random.sample(world.numbers, 2)
            tell(world, who, k, world.random.random() < 0.7)
        if world.time % 10 == 0:
            assert_kept(world)
    made_anew = max(postman.generation_of(0) for postman in world.postmen.values())
    hop = assert_kept(world).hop
    world.faults = Faults()
    for who in list(world.postmen):
        for k in world.numbers:
            tell(world, who, k, False)
    for _ in range(2000):
        world.step()
    assert assert_kept(world).hop > hop + 50
    print(network, seed, hop, made_anew)
