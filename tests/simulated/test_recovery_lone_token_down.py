"""A lone token when clients die for good, one after the other: the others go on, and say for whom
they wait."""

from typing import Any

import networkx as nx
import numpy as np
import pytest

from fixed_blocks import best_without
from lone_worlds import DATA, NAMES, PROBLEM, assert_kept, lone_world
from mtcd.federation.recovery.detours import next_around
from mtcd.network.topology import make_network
from mtcd.network.walks import make_walk
from mtcd.testing.simulator.world import Faults, World

UNQUIET = Faults(loss=0.05, duplicate=0.1)


def go_on(world: World, network: str, hops: int, most: int = 20_000) -> None:
    """Until the token has had so many hops more."""
    graph = make_network(network, DATA.clients)
    latest = max(reliable.policy.history.hop for reliable in world.parties.values())
    until = world.time + most
    while max(reliable.policy.history.hop for reliable in world.parties.values()) < latest + hops:
        world.report_truth(graph)
        world.step()
        assert world.time < until, [
            reliable.policy.waiting_reason(NAMES) for reliable in world.parties.values()
        ]


def holder(world: World) -> int:
    return max(world.parties, key=lambda k: world.parties[k].policy.history.hop)


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
    assert PROBLEM.read_off(token.aggregate, token.penalty) == pytest.approx(
        best_without(PROBLEM, dead, held), rel=1e-5
    )


@pytest.mark.parametrize("seed", range(3))
def test_a_client_that_comes_back_undoes_a_visit_that_no_longer_counts(seed: int) -> None:
    world = lone_world("cycle", seed, UNQUIET)
    go_on(world, "cycle", 20 + seed)
    gone = holder(world)
    world.crash(gone)
    world.in_flight = []  # what it sent last has reached nobody
    before = assert_kept(world)
    go_on(world, "cycle", 30)
    assert max(reliable.policy.term_of(0) for reliable in world.parties.values()) > 0
    world.start(gone)
    go_on(world, "cycle", 60)
    assert assert_kept(world).hop > before.hop
    assert world.parties[gone].policy.term_of(0) > 0


def test_neighbours_that_die_together_are_waited_for_and_named() -> None:
    world = lone_world("cycle", 1, UNQUIET)
    while holder(world) != 2 or world.parties[2].policy.history.arrival[0] != 1:
        world.step()
    world.crash(2)
    world.crash(3)
    world.in_flight = []
    with pytest.raises(
        AssertionError,
        match="passed on to c2, .* confirm that they lack it: .*c3.* Or start c2 again",
    ):
        go_on(world, "cycle", 20, most=1500)
    assert world.parties[1].policy.waits_for == {3}
    assert_kept(world)
    world.start(3)
    go_on(world, "cycle", 40)
    assert_kept(world)


@pytest.mark.parametrize("seed", range(5))
def test_those_who_were_gone_before_a_restart_of_all_others_are_still_gone_round(seed: int) -> None:
    """Were the token passed on to one of two dead neighbours, it could not be regenerated."""
    world = lone_world("complete", seed, Faults())
    for dead in (1, 3):
        go_on(world, "complete", 20)
        world.crash(dead)
    go_on(world, "complete", 60)
    world.in_flight = []
    for k in (0, 2, 4):
        world.start(k)
        assert world.parties[k].down == {1, 3}
    go_on(world, "complete", 60)
    assert_kept(world)


@pytest.mark.parametrize("walk", ["tour", "random-tour"])
@pytest.mark.parametrize("kind", ["cycle", "grid", "star", "complete", "path"])
def test_a_tour_goes_round_the_dead_and_visits_all_it_can_get_to(kind: str, walk: str) -> None:
    network = make_network(kind, [f"c{k}" for k in range(12)])
    tour = make_walk(walk, network)
    for gone in ({3}, {4, 5}, {1, 6, 11}):
        reach = nx.node_connected_component(network.graph.subgraph(set(range(12)) - gone), 2)
        here, previous, seen = 2, 1, []
        for hop in range(2 * len(reach) + 2):
            planned = tour.next(here, previous, 2, 0, hop + 1, 0.5)
            there = next_around(tour, network, planned, here, previous, gone, 0.5)
            assert there in network.neighbours[here] or reach == {here} == {there}
            previous, here = here, there
            seen.append(here)
        assert set(seen) == reach


def test_a_tour_that_lost_its_place_goes_on_when_all_are_back() -> None:
    network = make_network("cycle", [f"c{k}" for k in range(6)])
    tour = make_walk("tour", network)
    here, previous, seen = 0, 1, set()
    for hop in range(20, 32):  # the tour is elsewhere
        there = next_around(
            tour, network, tour.next(here, previous, 0, 0, hop, 0.5), here, previous, (), 0.5
        )
        assert there in network.neighbours[here]
        previous, here = here, there
        seen.add(here)
    assert seen == set(range(6))
