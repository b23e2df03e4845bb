"""Clusters: a partition into connected groups, as even as the graph lets them be."""

from __future__ import annotations

import time
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.linalg import ArpackError

from mtcd.core.errors import NetworkError
from mtcd.network import clusters
from mtcd.network import clusters as clusters_module
from mtcd.network.clusters import Cluster, check_clusters, find_clusters
from mtcd.network.edges import network_from_edges
from mtcd.network.spectrum import adjacency, laplacian
from mtcd.network.topology import Network, make_network


def names(K: int) -> list[str]:
    return [f"c{k}" for k in range(K)]


def assert_clusters(network: Network, clusters: tuple[Cluster, ...]) -> None:
    assert sorted(k for cluster in clusters for k in cluster) == list(range(network.size))
    for cluster in clusters:
        assert list(cluster) == sorted(cluster)
        assert nx.is_connected(network.graph.subgraph(cluster))
    assert list(clusters) == sorted(clusters)


def random_tree(K: int, seed: int) -> nx.Graph:
    return nx.random_labeled_tree(K, seed=seed)


class TestFind:
    def test_path_of_40_in_halves(self):
        found = find_clusters(make_network("path", names(40)), 2)
        assert found == (tuple(range(20)), tuple(range(20, 40)))

    def test_grid_of_5_by_8_in_halves(self):
        left, right = find_clusters(make_network("grid", names(40)), 2)
        assert left == tuple(8 * row + column for row in range(5) for column in range(4))
        assert right == tuple(8 * row + column for row in range(5) for column in range(4, 8))

    @pytest.mark.parametrize("kind", ["complete", "grid"])
    def test_alike_eigenvectors_go_by_number(self, kind):
        found = find_clusters(make_network(kind, names(36)), 2)
        assert found == (tuple(range(18)), tuple(range(18, 36)))

    def test_large_complete(self):
        found = find_clusters(make_network("complete", names(100)), 4)
        assert found == tuple(tuple(range(c, c + 25)) for c in range(0, 100, 25))

    @pytest.mark.parametrize("kind", ["complete", "path", "cycle", "grid", "star", "empty"])
    def test_a_cluster_for_each_client(self, kind):
        assert find_clusters(make_network(kind, names(12)), 12) == tuple((k,) for k in range(12))

    @settings(deadline=None)
    @given(st.integers(1, 60), st.data())
    def test_path_is_cut_evenly(self, K, data):
        count = data.draw(st.integers(1, K))
        network = make_network("path", names(K))
        found = find_clusters(network, count)
        assert_clusters(network, found)
        assert len(found) == count
        assert {len(cluster) for cluster in found} <= {K // count, -(-K // count)}

    @settings(max_examples=150, deadline=None)
    @given(st.integers(1, 40), st.floats(0, 0.5), st.integers(0, 9999), st.data())
    def test_random_graphs(self, K, p, seed, data):
        network = make_network("erdos-renyi", names(K), p=p, seed=seed)
        count = data.draw(st.integers(len(network.components), K))
        found = find_clusters(network, count)
        assert_clusters(network, found)
        assert len(found) == count
        assert found == find_clusters(make_network("erdos-renyi", names(K), p=p, seed=seed), count)
        assert_clusters(network, find_clusters(network))

    @settings(max_examples=100, deadline=None)
    @given(st.integers(3, 50), st.integers(0, 9999), st.data())
    def test_trees(self, K, seed, data):
        network = network_from_edges(random_tree(K, seed), names(K))
        assert_clusters(network, find_clusters(network, data.draw(st.integers(1, K))))
        halves = find_clusters(network, 2)
        assert_clusters(network, halves)
        # in halves there is one edge to cut: no cut is more even than ours
        tree = network.graph
        sizes = []
        for edge in list(tree.edges()):
            rest = nx.restricted_view(tree, [], [edge])
            sizes.append(min(len(part) for part in nx.connected_components(rest)))
        assert min(map(len, halves)) == max(sizes)

    @pytest.mark.parametrize("p", [0.06, 0.1, 0.2, 0.4])
    def test_connected_random_graphs_come_out_even(self, p):
        drawn = (make_network("erdos-renyi", names(60), p=p, seed=seed) for seed in range(15))
        for network in (network for network in drawn if network.connected):
            sizes = [len(cluster) for cluster in find_clusters(network, 2)]
            assert max(sizes) - min(sizes) <= 1

    def test_shares_of_components_follow_their_sizes(self):
        network = network_from_edges(
            nx.disjoint_union(nx.path_graph(30), nx.path_graph(10)), names(40)
        )
        found = find_clusters(network, 4)
        assert_clusters(network, found)
        assert [len(cluster) for cluster in found] == [10, 10, 10, 10]
        assert find_clusters(network, 2) == network.components

    def test_star_gives_way_to_connectedness(self):
        network = make_network("star", names(20))
        found = find_clusters(network, 5)
        assert_clusters(network, found)
        assert sorted(len(cluster) for cluster in found) == [1, 1, 1, 1, 16]

    @pytest.mark.parametrize(("kind", "even"), [("path", 1), ("grid", 1)])
    def test_large_takes_seconds(self, kind, even):
        network = make_network(kind, names(10_000))
        start = time.process_time()
        found = find_clusters(network, 20)
        assert time.process_time() - start < 15
        assert_clusters(network, found)
        sizes = [len(cluster) for cluster in found]
        assert max(sizes) - min(sizes) <= even
        assert found == find_clusters(network, 20)

    @pytest.mark.parametrize(("low", "target"), [(3, 10), (15, 10), (10, 10)])
    def test_sides_are_evened_out_across_the_cut(self, low, target):
        grid = make_network("grid", names(20), rows=2)
        order = [10 * (i % 2) + i // 2 for i in range(20)]  # column by column
        sides = clusters_module._even_out(grid, (set(order[:low]), set(order[low:])), order, target)
        assert sides == (set(order[:target]), set(order[target:]))

    def test_sides_stay_as_they_are_where_no_client_can_be_spared(self):
        star = make_network("star", names(6))
        sides = clusters_module._even_out(star, ({1}, {0, 2, 3, 4, 5}), [1, 0, 2, 3, 4, 5], 3)
        assert sides == ({1}, {0, 2, 3, 4, 5})

    def test_a_tree_is_cut_where_a_side_comes_nearest_to_the_target(self):
        path, members = make_network("path", names(10)), tuple(range(10))
        for target in range(1, 10):
            low, high = clusters_module._tree_cut(path, members, target)
            assert (len(low), low | high) == (target, set(members))
        branching = network_from_edges([(0, 1), (0, 2), (2, 3), (2, 4)], names(5))
        order, below = clusters_module._spanning_tree(branching, (0, 1, 2, 3, 4))
        assert (order, below) == ([0, 2, 4, 3, 1], {0: 5, 2: 3, 4: 1, 3: 1, 1: 1})
        assert clusters_module._tree_cut(branching, (0, 1, 2, 3, 4), 2) == ({0, 1}, {2, 3, 4})
        assert clusters_module._tree_cut(branching, (0, 1, 2, 3, 4), 3) == ({2, 3, 4}, {0, 1})
        assert clusters_module._tree_cut(branching, (0, 1, 2, 3, 4), 1) == ({4}, {0, 1, 2, 3})
        assert clusters_module._tree_cut(branching, (0, 2, 4), 1) in (({4}, {0, 2}), ({0}, {2, 4}))

    def test_order_by_distance_when_the_eigensolver_fails(self, monkeypatch):
        def fails(_):
            raise ArpackError(-1)

        monkeypatch.setattr(clusters_module, "_fiedler", fails)
        network = make_network("path", names(40))
        assert find_clusters(network, 2) == (tuple(range(20)), tuple(range(20, 40)))
        grid = make_network("grid", names(400))
        assert_clusters(grid, find_clusters(grid, 7))

    def test_communities_of_cliques(self):
        network = network_from_edges(nx.connected_caveman_graph(6, 8), names(48))
        found = find_clusters(network, seed=3)
        assert found == tuple(tuple(range(c, c + 8)) for c in range(0, 48, 8))
        assert found == find_clusters(network, seed=3)

    def test_communities_are_split_into_connected_pieces(self, monkeypatch):
        monkeypatch.setattr(
            nx.community, "louvain_communities", lambda graph, seed: [{0, 1, 3}, {2, 4, 5}]
        )
        assert find_clusters(make_network("path", names(6))) == ((0, 1), (2,), (3,), (4, 5))

    def test_communities_of_nothing(self):
        assert find_clusters(make_network("empty", names(3))) == ((0,), (1,), (2,))

    @pytest.mark.parametrize(
        ("kind", "count", "message"),
        [
            ("empty", 3, "the network has 10 connected component.*ask for at least 10"),
            ("path", 0, "ask for at least 1"),
            ("path", 11, "there are 10 clients: a token per cluster needs a client for each"),
        ],
    )
    def test_refuses(self, kind, count, message):
        with pytest.raises(NetworkError, match=message):
            find_clusters(make_network(kind, names(10)), count)


class TestCheck:
    def test_accepts_names_and_numbers(self):
        network = make_network("path", ["ann", "bob", "cat", "dan"])
        assert check_clusters(network, [["dan", 2], ["bob", "0"]]) == ((2, 3), (0, 1))

    @settings(deadline=None)
    @given(st.integers(1, 20), st.floats(0, 1), st.integers(0, 99))
    def test_accepts_what_is_found(self, K, p, seed):
        network = make_network("erdos-renyi", names(K), p=p, seed=seed)
        found = find_clusters(network)
        assert check_clusters(network, found) == found

    @pytest.mark.parametrize(
        ("groups", "message"),
        [
            ([["ann", "bob"], ["cat"]], "in none: dan"),
            ([], "in none: ann, bob, cat, dan"),
            (
                [["ann", "bob"], ["bob", "cat", "dan"]],
                "client 'bob' is in cluster 0 and again in cluster 1",
            ),
            (
                [["ann", "ann", "bob"], ["cat", "dan"]],
                "client 'ann' is in cluster 0 and again in cluster 0",
            ),
            (
                [["ann", "cat", "dan"], ["bob"]],
                "cluster 0 is not connected: no path inside it joins ann",
            ),
            (
                [["ann", "bob"], ["cta", "dan"]],
                "cluster 1: no client is called 'cta'; did you mean 'cat'",
            ),
            ([["ann", "bob"], ["cat", 4]], "cluster 1: there is no client 4"),
            ([["ann", "bob"], [], ["cat", "dan"]], "cluster 1 is empty"),
        ],
    )
    def test_refuses(self, groups, message):
        with pytest.raises(NetworkError, match=message):
            check_clusters(make_network("path", ["ann", "bob", "cat", "dan"]), groups)


@pytest.mark.parametrize("clients", [31, 101])
def test_clusters_are_cut_off_from_the_first_client_on(clients: int) -> None:
    """By all eigenvectors, and by one of a sparse matrix: whatever sign it has, the same
    clusters."""
    found = find_clusters(make_network("path", [f"c{k}" for k in range(clients)]), 3)
    assert found[0] == tuple(range(round(clients / 3)))
    assert [k for cluster in found for k in cluster] == list(range(clients))


@pytest.mark.parametrize(
    ("sizes", "count", "shares"),
    [
        ([30, 10], 4, [3, 1]),
        ([5, 5, 5], 7, [3, 2, 2]),
        ([1, 9, 4], 6, [1, 3, 2]),
        ([2, 7], 2, [1, 1]),
    ],
)
def test_clusters_are_dealt_to_the_fullest_part(
    sizes: list[int], count: int, shares: list[int]
) -> None:
    assert clusters._shares(sizes, count) == shares


def test_the_order_of_a_complete_part_is_not_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    network = network_from_edges([*nx.complete_graph(4).edges, (3, 4)], [f"c{k}" for k in range(5)])
    A = adjacency(network)
    monkeypatch.setattr(clusters, "_fiedler", None)
    assert clusters._order(network, A, (0, 1, 3)) == [0, 1, 3]
    assert clusters._order(network, A, (0, 2, 1, 3)) == [0, 2, 1, 3]
    with pytest.raises(TypeError):
        clusters._order(network, A, (2, 3, 4))


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_an_eigenvector_of_a_large_network_grows_with_the_numbers(
    sign: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    L, found = (
        laplacian(adjacency(make_network("path", [f"c{k}" for k in range(70)]))),
        np.linspace(-3, 2, 70),
    )
    monkeypatch.setattr(clusters, "fiedler_sparse", lambda _: (0.1, sign * found))
    assert clusters._fiedler(L).tolist() == found.tolist()


def test_communities_are_searched_for_with_the_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    network = make_network("path", ["a", "b", "c"])
    asked: list[tuple[Any, int]] = []
    monkeypatch.setattr(clusters, "communities", lambda *given: asked.append(given) or ((0, 1, 2),))
    assert clusters.find_clusters(network, seed=7) == ((0, 1, 2),)
    assert asked == [(network, 7)]
    assert clusters.find_clusters(network, count=3, seed=7) == ((0,), (1,), (2,))
    assert len(asked) == 1
