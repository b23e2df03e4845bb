"""A lone token when clients die for good, one after the other: the others go on, and say for whom they wait."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from lone_worlds import DATA, PROBLEM, assert_kept, lone_world, tell_the_truth
from mtcd.network.topology import make_network
from mtcd.objective.optimum import optimum
from simulated import Faults, World

UNQUIET = Faults(loss=0.05, double=0.1)


def go_on(world: World, network: str, hops: int, most: int = 20_000) -> None:
    """Until the token has had so many hops more."""
    graph = make_network(network, DATA.clients)
    latest = max(postman.hop for postman in world.postmen.values())
    until = world.time + most
    while max(postman.hop for postman in world.postmen.values()) < latest + hops:
        tell_the_truth(world, graph)
        world.step()
        assert world.time < until, [postman.unreachable() for postman in world.postmen.values()]


def holder(world: World) -> int:
    return max(world.postmen, key=lambda k: world.postmen[k].hop)


def best_without(dead: Sequence[int], held: Sequence[np.ndarray]) -> float:
    """The least f if the blocks of the dead stay as they are."""
    living = [k for k in range(5) if k not in dead]
    fixed = sum(PROBLEM.client(k).represent(held[k]) for k in dead)
    labels = PROBLEM.labels - np.asarray(fixed).reshape(PROBLEM.labels.shape)
    blocks, penalties = [PROBLEM.blocks[k] for k in living], [PROBLEM.penalties[k] for k in living]
    apart = sum(PROBLEM.client(k).penalty(held[k]) for k in dead)
    return optimum(blocks, labels, PROBLEM.loss, penalties).value + apart


@pytest.mark.parametrize(
    ("network", "walk", "dying"),
    [
        ("cycle", "lazy", [2, 3, 1]),
        ("cycle", "tour", [2, 3]),
        ("complete", "lazy", "holders"),
        ("complete", "non-backtracking", "holders"),
        ("complete", "random-tour", [4, 0]),
    ],
)
def test_clients_that_die_one_after_the_other_keep_their_blocks_and_the_others_reach_the_best(
    network: str, walk: str, dying: Any
) -> None:
    world = lone_world(network, 5, UNQUIET, walk)
    go_on(world, network, 30)
    dead: list[int] = []
    for k in [None] * 3 if dying == "holders" else dying:
        dead.append(holder(world) if k is None else k)
        world.crash(dead[-1])
        assert_kept(world)
        go_on(world, network, 60)
        assert_kept(world)
    before = world.parameters()
    world.faults = Faults()
    go_on(world, network, 900)
    token, held = assert_kept(world), world.parameters()
    for k in range(5):
        assert np.array_equal(held[k], before[k]) == (k in dead)
    assert PROBLEM.read_off(token.aggregate, token.penalty) == pytest.approx(best_without(dead, held), rel=1e-5)
