"""Exactly-once delivery: whatever is lost, duplicated, delayed or crashes, the training is the
same, bit for bit."""

import numpy as np
import pytest

from mtcd.models.glm.optimum.optimum import optimum
from mtcd.protocol.party import SERVER
from mtcd.testing.simulator.world import Faults, World
from recovering import waiting_party
from simulated_deliveries import (
    EVERYTHING,
    METHODS,
    PROBLEM,
    assert_same,
    assert_the_server_knows_what_clients_hold,
    making_parties,
    restart_iteration,
    run,
    server_world,
)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", METHODS)
def test_with_any_faults_that_pass_the_training_is_the_same(name: str, seed: int) -> None:
    world = World(making_parties(name), seed, waiting_party, EVERYTHING)
    run(world, 50)
    assert_same(name, world)
    assert set(world.processed.values()) <= {0, 1}
    assert min(world.happened[kind] for kind in ("crash", "loss", "duplicate", "cut", "hang")) > 3


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", ["clusters", "average", "visitors", "mini-batch"])
def test_iterations_started_restarts_at_any_moment_are_the_same(name: str, seed: int) -> None:
    world = server_world(name, seed)
    restarts = 0
    while len(world.reports) < 40:
        world.step()
        if SERVER in world.parties and world.random.random() < 0.01:
            restarts += restart_iteration(world)
        assert world.time < 60_000
    assert_same(name, world)
    assert restarts > 5


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1))
@pytest.mark.parametrize("name", ["clusters", "average", "visitors"])
def test_a_client_that_stays_dead_keeps_its_place_and_may_come_back(name: str, seed: int) -> None:
    world = server_world(name, seed)
    while len(world.reports) < 10:
        world.step()
    world.crash(2)
    before = world.parameters()
    quiet, moments = world.time + 300, 60
    while len(world.reports) < moments:
        for reliable in world.parties.values():
            reliable.down = frozenset({2})
        world.step()
        if world.time > quiet:
            quiet = world.time + 300
            restart_iteration(world)
        if world.time % 50 == 0:
            assert_the_server_knows_what_clients_hold(world)
        assert world.time < 60_000, world.happened
    held = world.parameters()
    np.testing.assert_array_equal(held[2], before[2])
    assert all(np.abs(held[k] - before[k]).max() > 1e-6 for k in (0, 1, 3, 4))
    world.faults = Faults()
    for reliable in world.parties.values():
        reliable.down = frozenset()
    world.start(2)
    best = optimum(PROBLEM.blocks, PROBLEM.labels, PROBLEM.loss, PROBLEM.penalties).value
    while world.reports[-1].payload.hop < 2400:
        world.step()
    assert_the_server_knows_what_clients_hold(world)
    last = world.reports[-1].payload
    assert PROBLEM.read_off(last.aggregate, last.penalty) == pytest.approx(best, rel=1e-5)
