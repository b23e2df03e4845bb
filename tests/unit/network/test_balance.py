"""Clusters by the length of their tours: still a partition into connected groups, and never a
longer longest tour."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mtcd
from mtcd.core.errors import ConfigError
from mtcd.network import balance
from mtcd.network.balance import balanced
from mtcd.network.clusters import Cluster, find_clusters
from mtcd.network.edges import network_from_edges
from mtcd.network.topology import Network, make_network
from mtcd.network.tours import closed_walk


def names(K: int) -> list[str]:
    return [f"c{k}" for k in range(K)]


def longest(network: Network, clusters: tuple[Cluster, ...]) -> int:
    return max(len(closed_walk(network, cluster)) for cluster in clusters)


def network_of(kind: str, K: int, seed: int) -> Network:
    """A connected network."""
    if kind == "tree":
        return network_from_edges(nx.random_labeled_tree(K, seed=seed), names(K))
    if kind == "cliques":
        each = 4
        return network_from_edges(nx.ring_of_cliques(K // each, each), names(K // each * each))
    if kind == "random-geometric":
        return make_network(kind, names(K), radius=1.0 if K < 20 else 0.5, seed=seed)
    return make_network(kind, names(K))


KINDS = ["path", "cycle", "grid", "star", "tree", "cliques", "random-geometric", "complete"]


@settings(deadline=None)
@given(st.sampled_from(KINDS), st.integers(8, 40), st.integers(0, 5), st.data())
def test_it_stays_a_partition_and_no_tour_is_longer_than_the_longest(kind, K, seed, data):
    network = network_of(kind, K, seed)
    count = data.draw(st.integers(1, network.size))
    before = find_clusters(network, count)
    after = balanced(network, before)

    assert len(after) == count
    assert list(after) == sorted(after)
    assert sorted(k for cluster in after for k in cluster) == list(range(network.size))
    for cluster in after:
        assert list(cluster) == sorted(cluster)
        assert nx.is_connected(network.graph.subgraph(cluster))
    assert longest(network, after) <= longest(network, before)


@settings(deadline=None)
@given(st.integers(2, 30), st.data())
def test_on_a_path_any_cut_is_evened_out(K, data):
    """Two pieces of a path: their tours are as even as they can be."""
    cut = data.draw(st.integers(1, K - 1))
    path = make_network("path", names(K))
    after = balanced(path, [tuple(range(cut)), tuple(range(cut, K))])
    assert abs(len(after[0]) - len(after[1])) <= 1


def test_clients_change_places_where_neither_cluster_can_take_one_more():
    """Two cycles of four, mixed up such that each cluster is a path."""
    links = [(0, 1), (1, 2), (2, 3), (3, 0), (4, 5), (5, 6), (6, 7), (7, 4)]
    links += [(2, 4), (3, 5), (2, 5), (3, 4)]
    network = network_from_edges(links, names(8))
    mixed = ((0, 1, 2, 4), (3, 5, 6, 7))
    assert longest(network, mixed) == 6
    assert longest(network, balanced(network, mixed)) == 4


def test_a_grid_of_15_by_15_in_20():
    grid = make_network("grid", names(225))
    before = find_clusters(grid, 20)
    assert longest(grid, before) == 16
    assert longest(grid, balanced(grid, before)) == 12


def test_a_complete_network_is_left_as_it_is():
    network = make_network("complete", names(9))
    before = find_clusters(network, 2)
    assert balanced(network, before) == before


def test_the_search_ends_when_it_has_taken_long(monkeypatch):
    monkeypatch.setattr(balance, "MOST_WORK", 0)
    path = make_network("path", names(6))
    assert balanced(path, [(0,), (1, 2, 3, 4, 5)]) == ((0,), (1, 2, 3, 4, 5))


def test_no_walk_is_kept_that_was_only_tried():
    grid = make_network("grid", names(35))
    before = find_clusters(grid, 5)
    for cluster in before:
        closed_walk(grid, cluster)
    kept = set(grid.tours)
    balanced(grid, before)
    assert set(grid.tours) == kept


def test_methods_take_it_by_name():
    grid = make_network("grid", names(225))
    method = mtcd.MTCD(tokens=20, clusters="balanced", walk="tour")
    found = method.token_clusters(grid, 0)
    assert found is not None
    assert found == balanced(grid, find_clusters(grid, 20))
    assert found != find_clusters(grid, 20)
    with pytest.raises(ConfigError, match="'auto', 'balanced' or a list"):
        mtcd.MTCD(clusters="even")


def test_a_training_in_balanced_clusters_converges():
    data = mtcd.synthetic("ridge", samples=60, features=27, clients=9, seed=1)
    method = mtcd.MTCD(2, 12, clusters="balanced", walk="tour", combine="memory", local_updates=20)
    run = mtcd.train(data, mtcd.Glm("ridge", alpha=1.0), "grid", method, mtcd.Stop(gap=1e-6))
    assert run.status == "converged"
    assert np.isfinite(run.coefficients).all()
