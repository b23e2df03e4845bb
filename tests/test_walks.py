"""The walk of a token: where it may go, and how often it goes there."""

from __future__ import annotations

import math
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mtcd.errors import ConfigError, NetworkError
from mtcd.network.clusters import find_clusters
from mtcd.network.topology import Network, make_network
from mtcd.network.walks import LazyWalk, Walk, make_walk
from mtcd.seeding import stream


def random_network(K: int, p: float, seed: int) -> Network:
    return make_network("erdos-renyi", [f"c{k}" for k in range(K)], p=p, seed=seed)


def trajectory(walk: Walk, start: int, draws: list[float]) -> list[int]:
    clients = [start]
    for draw in draws:
        clients.append(walk.next(clients[-1], draw))
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
@given(st.integers(1, 15), st.floats(0, 1), st.integers(0, 99), st.lists(st.floats(0, 1, exclude_max=True)))
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
    assert set(trajectory(walk, cluster[0], stream(1, "test").random(5000).tolist())) == set(cluster)


@pytest.mark.parametrize("K", [1, 2, 3, 7, 100])
def test_draws_select_the_choices_in_order(K):
    walk = LazyWalk(make_network("complete", [f"c{k}" for k in range(K)]))
    assert [walk.next(K // 2, (k + 0.5) / K) for k in range(K)] == list(range(K))
    assert walk.next(0, 0.0) == 0
    assert walk.next(0, math.nextafter(1.0, 0.0)) == K - 1


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
        make_walk("lazy", network, within=[0, 1]).next(2, 0.5)
