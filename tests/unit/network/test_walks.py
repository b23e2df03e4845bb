"""The walk of a token: where it may go, and how often it goes there."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mtcd.core.errors import ConfigError, NetworkError
from mtcd.core.seeding import stream
from mtcd.network.clusters import find_clusters
from mtcd.network.edges import network_from_edges
from mtcd.network.topology import Network, make_network
from mtcd.network.walks import NOWHERE, WALKS, Walk, make_walk
from mtcd.network.walks.lazy import LazyWalk


def random_network(K: int, p: float, seed: int) -> Network:
    return make_network("erdos-renyi", [f"c{k}" for k in range(K)], p=p, seed=seed)


def step(walk: Walk, client: int, draw: float) -> int:
    return walk.next(client, NOWHERE, client, 0, 1, draw)


def trajectory(walk: Walk, start: int, draws: list[float]) -> list[int]:
    clients = [start]
    for draw in draws:
        previous = clients[-2] if len(clients) > 1 else NOWHERE
        clients.append(walk.next(clients[-1], previous, start, 0, len(clients), draw))
    return clients


@pytest.mark.parametrize("kind", ["path", "star", "grid", "complete"])
def test_frequencies_are_those_of_the_transition_matrix(kind):
    network = make_network(kind, [f"c{k}" for k in range(6)])
    A = nx.to_numpy_array(network.graph) + np.eye(network.size)
    P, walk, hops = A / A.sum(axis=1, keepdims=True), LazyWalk(network), 60_000
    clients = trajectory(walk, 0, stream(0, "test").random(hops).tolist())
    counts = np.zeros_like(P)
    np.add.at(counts, (clients[:-1], clients[1:]), 1)
    visits = counts.sum(axis=1)
    assert (counts[P == 0] == 0).all()
    for k in range(6):
        deviation = np.sqrt(P[k] * (1 - P[k]) / visits[k])
        assert (np.abs(counts[k] / visits[k] - P[k]) <= 4.5 * deviation).all()
    degrees = np.array([len(near) for near in network.neighbours])
    stationary = (degrees + 1) / (degrees + 1).sum()
    np.testing.assert_allclose(visits / hops, stationary, atol=0.02)


@settings(deadline=None)
@given(
    st.integers(1, 15),
    st.floats(0, 1),
    st.integers(0, 99),
    st.lists(st.floats(0, 1, exclude_max=True)),
)
def test_hops_are_to_neighbours_or_stay(K, p, seed, draws):
    network = random_network(K, p, seed)
    clients = trajectory(LazyWalk(network), 0, draws)
    for here, there in pairwise(clients):
        assert there == here or there in network.neighbours[here]


@settings(deadline=None)
@given(st.integers(2, 15), st.integers(0, 99), st.lists(st.floats(0, 1, exclude_max=True)))
def test_never_leaves_its_cluster(K, seed, draws):
    network = random_network(K, 0.5, seed)
    for cluster in find_clusters(network, min(K, len(network.components) + 1)):
        walk = LazyWalk(network, within=cluster)
        clients = trajectory(walk, cluster[0], draws)
        assert set(clients) <= set(cluster)
        for here, there in pairwise(clients):
            assert there == here or there in network.neighbours[here]


def test_reaches_the_whole_of_its_cluster():
    network = make_network("grid", [f"c{k}" for k in range(40)])
    cluster = find_clusters(network, 2)[1]
    walk = make_walk("lazy", network, within=cluster)
    assert set(trajectory(walk, cluster[0], stream(1, "test").random(5000).tolist())) == set(
        cluster
    )


@pytest.mark.parametrize("K", [1, 2, 3, 7, 100])
def test_draws_select_the_choices_in_order(K):
    walk = LazyWalk(make_network("complete", [f"c{k}" for k in range(K)]))
    assert [step(walk, K // 2, (k + 0.5) / K) for k in range(K)] == list(range(K))
    assert step(walk, 0, 0.0) == 0
    assert step(walk, 0, math.nextafter(1.0, 0.0)) == K - 1


def test_an_isolated_client_keeps_the_token():
    walk = LazyWalk(make_network("empty", ["a", "b"]))
    assert trajectory(walk, 1, [0.0, 0.3, 0.99]) == [1, 1, 1, 1]


def test_the_same_draws_give_the_same_walk():
    network = random_network(30, 0.2, 3)
    draws = stream(2, "test").random(200).tolist()
    first, again = LazyWalk(network), LazyWalk(network)
    assert trajectory(first, 4, draws) == trajectory(first, 4, draws) == trajectory(again, 4, draws)


def test_memory_is_that_of_the_cluster():
    network = make_network("path", [f"c{k}" for k in range(5000)])
    walk = LazyWalk(network, within=range(10))
    trajectory(walk, 0, stream(0, "test").random(2000).tolist())
    assert set(walk._choices) <= set(range(10))


def test_refuses():
    network = make_network("path", ["a", "b", "c"])
    with pytest.raises(ConfigError, match="unknown walk 'lasy': did you mean 'lazy'"):
        make_walk("lasy", network)
    with pytest.raises(NetworkError, match="at client 2, outside its cluster"):
        step(make_walk("lazy", network, within=[0, 1]), 2, 0.5)


TOURS = ("tour", "random-tour")


@settings(deadline=None)
@given(st.sampled_from(sorted(WALKS)), st.integers(1, 12), st.integers(0, 99), st.data())
def test_every_walk_uses_links_only_and_stays_in_its_cluster(kind, K, seed, data) -> None:
    network = random_network(K, 0.6, seed)
    cluster = data.draw(st.sampled_from(network.components)) if kind in TOURS else None
    if kind not in TOURS and data.draw(st.booleans()):
        cluster = tuple(range(0, K, 2))
    walk = make_walk(kind, network, cluster, seed)
    start = data.draw(st.sampled_from(range(K) if cluster is None else cluster))
    clients = trajectory(
        walk, start, data.draw(st.lists(st.floats(0, 1, exclude_max=True), max_size=60))
    )
    for here, there in pairwise(clients):
        assert there == here or there in network.neighbours[here]
        assert cluster is None or there in cluster


@settings(deadline=None)
@given(st.sampled_from(TOURS), st.integers(2, 14), st.integers(0, 99), st.integers(0, 13))
def test_a_tour_visits_everybody_every_time_and_comes_back(kind, K, seed, start) -> None:
    network = random_network(K, 0.7, seed)
    cluster = max(network.components, key=len)
    if len(cluster) < 2:
        return
    walk = make_walk(kind, network, cluster, seed)
    start = cluster[start % len(cluster)]
    length = len(walk.tour) if kind == "tour" else walk.length
    assert len(cluster) <= length <= 2 * (len(cluster) - 1)
    clients = trajectory(walk, start, [0.0] * (3 * length))
    for lap in range(3):
        assert set(clients[lap * length : (lap + 1) * length]) == set(cluster)
        assert clients[lap * length] == start
        assert all(a != b for a, b in pairwise(clients)), "no hop is wasted"


def test_a_tour_goes_in_its_order() -> None:
    walk = make_walk("tour", make_network("cycle", [f"c{k}" for k in range(5)]))
    for place, start in enumerate(walk.tour):
        assert trajectory(walk, start, [0.0] * 4) == [*walk.tour[place:], *walk.tour[:place]]


def test_random_tours_take_the_branches_in_another_order_each_time() -> None:
    network = make_network("star", [f"c{k}" for k in range(9)])
    walk = make_walk("random-tour", network, None, seed=3)
    clients = trajectory(walk, 0, [0.0] * (4 * walk.length))
    laps = [tuple(clients[lap * walk.length : (lap + 1) * walk.length]) for lap in range(4)]
    assert len(set(laps)) == 4
    assert (
        trajectory(make_walk("random-tour", network, None, seed=3), 0, [0.9] * 20) == clients[:21]
    )
    other = make_walk("random-tour", network, None, seed=3, token=1)
    assert trajectory(other, 0, [0.0] * 15) != clients[:16]


def test_the_metropolis_walk_is_equally_often_everywhere() -> None:
    network = make_network("star", [f"c{k}" for k in range(6)])
    hops = 60_000
    clients = trajectory(
        make_walk("metropolis", network), 0, stream(1, "test").random(hops).tolist()
    )
    np.testing.assert_allclose(np.bincount(clients) / hops, 1 / 6, atol=0.02)


@settings(deadline=None)
@given(
    st.integers(2, 12), st.integers(0, 99), st.lists(st.floats(0, 1, exclude_max=True), max_size=60)
)
def test_the_non_backtracking_walk_turns_round_only_in_dead_ends(K, seed, draws) -> None:
    network = random_network(K, 0.5, seed)
    clients = trajectory(make_walk("non-backtracking", network), 0, draws)
    for before, here, after in zip(clients, clients[1:], clients[2:], strict=False):
        if before == after and before != here:
            assert network.neighbours[here] == (before,)


@pytest.mark.parametrize("kind", TOURS)
def test_a_tour_of_a_network_in_pieces_is_refused(kind) -> None:
    network = make_network("empty", ["a", "b"])
    with pytest.raises(NetworkError, match="tour needs clients that can all be reached"):
        make_walk(kind, network)
    with pytest.raises(NetworkError, match="outside its cluster"):
        step(make_walk("tour", make_network("path", ["a", "b", "c"]), within=[0, 1]), 2, 0.5)


@pytest.mark.parametrize("kind", ["path", "cycle", "star", "grid"])
def test_a_tour_covers_all_when_the_last_client_has_had_its_first_visit(kind: str) -> None:
    network = make_network(kind, [f"c{k}" for k in range(8)])
    walk = make_walk("tour", network)
    for start in range(network.size):
        trail = [walk.next(-1, -1, start, 0, hop, 0.0) for hop in range(walk.length)]
        assert walk.cover(start) == 1 + max(trail.index(k) for k in range(network.size))


def network_of(kind: str, K: int, **more: Any) -> Network:
    return make_network(kind, [f"c{k}" for k in range(K)], **more)


def test_a_metropolis_walk_accepts_as_many_draws_as_its_probability_says() -> None:
    """From a leaf to the middle of a star of four: one draw of four, in order; from the middle,
    all."""
    walk = make_walk("metropolis", network_of("star", 5))
    draws = np.arange(16) / 16
    assert [walk.next(2, -1, 0, 0, 1, draw) for draw in draws] == [0] * 4 + [2] * 12
    assert [walk.next(0, -1, 0, 0, 1, draw) for draw in draws] == [1] * 4 + [2] * 4 + [3] * 4 + [
        4
    ] * 4
    # degrees 3, 2, 2, 1: from 1, a half each for 0 and 2; to 0 in two of three
    mixed = network_from_edges([(0, 1), (0, 2), (0, 3), (1, 2)], ["a", "b", "c", "d"])
    goes = [make_walk("metropolis", mixed).next(1, -1, 0, 0, 1, (i + 0.5) / 12) for i in range(12)]
    assert goes == [0] * 4 + [1] * 2 + [2] * 6


def test_a_lazy_walk_on_a_complete_network_stores_no_choices() -> None:
    walk = LazyWalk(network_of("complete", 6))
    assert walk._choices_of(2) == range(6)
    assert LazyWalk(network_of("complete", 6), within=[1, 2, 5])._choices_of(2) == (1, 2, 5)
    assert LazyWalk(network_of("star", 4))._choices_of(0) == range(4)
    assert LazyWalk(network_of("star", 4))._choices_of(1) == (0, 1)


def test_the_hops_of_a_walk_from_outside_are_checked_once_and_those_of_the_package_never() -> None:
    class Own(Walk):
        def next(self, *where: Any) -> int:
            return 0

    class Same(Own):
        pass

    assert hasattr(vars(Own)["next"], "__wrapped__")
    assert "next" not in vars(Same)
    for kind in ("lazy", "metropolis", "tour", "random-tour", "non-backtracking"):
        assert not hasattr(type(make_walk(kind, network_of("path", 2))).next, "__wrapped__")


def test_a_walk_from_outside_may_stay_and_may_not_leave_the_links() -> None:
    class Skips(Walk):
        def next(self, client: int, *where: Any) -> int:
            return {0: 1, 1: 1, 2: 0}[client]

    walk = Skips(network_of("path", 3))
    assert [walk.next(client, -1, 0, 0, 1, 0.0) for client in (0, 1)] == [1, 1]
    with pytest.raises(NetworkError, match="goes from client 2 to 0, which is neither a neighbour"):
        walk.next(2, -1, 0, 0, 1, 0.0)


def test_a_random_tour_may_begin_with_the_branch_that_the_last_one_ended_with() -> None:
    star, seen = network_of("star", 4), set()
    for seed in range(30):
        walk, way = make_walk("random-tour", star, seed=seed), [0]
        for hop in range(1, 8):
            way.append(walk.next(way[-1], way[-2] if hop > 1 else -1, 0, 0, hop, 0.0))
        assert set(way[1:7:2]) == {1, 2, 3}
        seen.add(way[5] == way[7])
    assert seen == {True, False}


def test_the_choices_of_a_lazy_walk_are_in_the_order_of_clients() -> None:
    """A draw means the same client in every process; a set gives 8 before 1."""
    network = network_from_edges([(8, 1), (1, 2)], [f"c{k}" for k in range(9)])
    assert [LazyWalk(network).next(8, -1, 0, 0, 1, draw) for draw in (0.0, 0.9)] == [1, 8]
