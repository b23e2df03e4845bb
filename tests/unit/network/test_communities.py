"""Communities of large networks: as good as those of Louvain's method in full, without its hundreds
of passes."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from mtcd.network import communities as communities_module
from mtcd.network.communities import communities
from mtcd.network.edges import network_from_edges
from mtcd.network.topology import Network, make_network

LOUVAIN = nx.community.louvain_communities


def names(K: int) -> list[str]:
    return [f"c{k}" for k in range(K)]


def assert_connected_partition(network: Network, found: tuple[tuple[int, ...], ...]) -> None:
    assert sorted(k for group in found for k in group) == list(range(network.size))
    assert list(found) == sorted(tuple(sorted(group)) for group in found)
    assert all(nx.is_connected(network.graph.subgraph(group)) for group in found)


@pytest.fixture
def graphs(monkeypatch: pytest.MonkeyPatch) -> list[nx.Graph]:
    """Every graph that networkx is asked about."""
    asked = []

    def kept(graph: nx.Graph, **settings: int) -> list[set[int]]:
        asked.append(graph)
        return LOUVAIN(graph, **settings)

    monkeypatch.setattr(nx.community, "louvain_communities", kept)
    return asked


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Nodes and edges of every graph that networkx is asked about."""
    sizes = []

    def counted(graph: nx.Graph, **settings: int) -> list[set[int]]:
        sizes.append((graph.number_of_nodes(), graph.number_of_edges()))
        return LOUVAIN(graph, **settings)

    monkeypatch.setattr(nx.community, "louvain_communities", counted)
    return sizes


@pytest.mark.long
@pytest.mark.parametrize("kind", ["cycle", "grid"])
def test_a_large_network_is_contracted_before_networkx_sees_it(
    kind: str, seen: list[tuple[int, int]]
) -> None:
    network = make_network(kind, names(10_000))
    found = communities(network, seed=1)
    assert len(seen) == 1
    assert seen[0][0] <= communities_module.LARGEST_SIZE
    assert_connected_partition(network, found)
    assert found == communities(network, seed=1)
    # cut into n equal arcs, a cycle of K has modularity 1 - n/K - 1/n: 0.98 at best, for n = 100
    assert nx.community.modularity(network.graph, found) > {"cycle": 0.975, "grid": 0.9}[kind]


def test_a_dense_network_is_contracted_for_its_edges(
    seen: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(communities_module, "LARGEST_EDGES", 1000)
    blocks = nx.random_partition_graph([60, 60, 60], 0.8, 0.05, seed=1)
    assert blocks.number_of_edges() > 1000
    found = communities(network_from_edges(blocks, names(180)), seed=0)
    assert found == (tuple(range(60)), tuple(range(60, 120)), tuple(range(120, 180)))
    assert all(edges <= 1000 for _, edges in seen)


def test_small_networks_are_left_to_networkx(seen: list[tuple[int, int]]) -> None:
    network = make_network("cycle", names(40))
    draw = int(communities_module.stream(7, "clusters").integers(2**32))
    assert communities(network, 7) == tuple(
        sorted(tuple(sorted(g)) for g in LOUVAIN(network.graph, seed=draw))
    )
    assert seen == [(40, 40)]


@pytest.mark.parametrize("K", [1, 2, 3, 10, 30])
def test_a_complete_network_is_one_community_without_a_search(
    K: int, seen: list[tuple[int, int]]
) -> None:
    network = make_network("complete", names(K))
    assert communities(network, 0) == (tuple(range(K)),)
    assert seen == []
    assert [set(range(K))] == LOUVAIN(network.graph, seed=0)  # what a search would have found


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 60), st.floats(0.0, 0.3), st.integers(0, 999))
def test_contraction_loses_next_to_nothing(K: int, p: float, seed: int) -> None:
    network = make_network("erdos-renyi", names(K), p=p, seed=seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(communities_module, "LARGEST_SIZE", 8)
        found = communities(network, seed)
    assert_connected_partition(network, found)
    if network.edges:
        best = nx.community.modularity(network.graph, LOUVAIN(network.graph, seed=seed))
        assert nx.community.modularity(network.graph, found) > best - 0.1


def test_weights_inside_groups_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups that are well knit must stay apart after a contraction: their loops carry their inner
    links."""
    monkeypatch.setattr(communities_module, "LARGEST_SIZE", 20)
    ring = network_from_edges(nx.connected_caveman_graph(6, 8), names(48))
    assert communities(ring, 3) == tuple(tuple(range(c, c + 8)) for c in range(0, 48, 8))
    A = communities_module.adjacency(ring)
    smaller = communities_module._contracted(A, np.arange(48) // 8)
    assert smaller.sum() == A.sum()
    # a caveman gives up one link inside
    assert smaller.diagonal().tolist() == [2 * (8 * 7 / 2 - 1)] * 6


@pytest.mark.parametrize("kind", ["cycle", "grid"])
def test_a_contracted_network_has_the_weight_of_all_links(
    kind: str, graphs: list[nx.Graph], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a loop each link inside a group counts once, as it does for networkx: modularities are
    those of the whole."""
    monkeypatch.setattr(communities_module, "LARGEST_SIZE", 20)
    network = make_network(kind, names(100))
    communities(network, 0)
    (graph,) = graphs
    assert graph.size(weight="weight") == network.edges
    assert sum(degree for _, degree in graph.degree(weight="weight")) == 2 * network.edges


def test_a_contraction_waits_until_few_clients_move(
    graphs: list[nx.Graph], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first pass is the last if any number of moves is few; more passes leave fewer groups."""
    network = make_network("erdos-renyi", names(400), p=0.04, seed=1)
    monkeypatch.setattr(communities_module, "LARGEST_SIZE", 399)
    for settled in (1.0, 0.0):
        monkeypatch.setattr(communities_module, "CONVERGED", settled)
        communities(network, 0)
    one_pass, many = (graph.number_of_nodes() for graph in graphs)
    assert one_pass > 2 * many


def test_pieces_without_links_stay_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(communities_module, "LARGEST_SIZE", 3)
    assert communities(make_network("empty", names(5)), 0) == tuple((k,) for k in range(5))
    pairs = network_from_edges(nx.Graph([(0, 1), (2, 3), (4, 5), (6, 7)]), names(8))
    assert communities(pairs, 0) == ((0, 1), (2, 3), (4, 5), (6, 7))


@pytest.mark.parametrize(("limit", "value"), [("LARGEST_SIZE", 40), ("LARGEST_EDGES", 60)])
def test_a_network_as_large_as_networkx_takes_is_not_contracted(
    limit: str, value: int, seen: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    network = network_from_edges(nx.circular_ladder_graph(20), names(40))
    expected = communities(network, 1)
    monkeypatch.setattr(communities_module, limit, value)
    assert communities(network, 1) == expected
    assert seen == [(40, 60)] * 2
    monkeypatch.setattr(communities_module, limit, value - 1)
    communities(network, 1)
    assert seen[2] < (40, 60)


class Counting:
    """In order, and how often."""

    def __init__(self) -> None:
        self.passes = 0

    def permutation(self, size: int) -> range:
        self.passes += 1
        return range(size)


def modularity(A: np.ndarray, labels: np.ndarray) -> float:
    """sum over c of A_cc/total - (volume_c/total)^2."""
    belongs = np.eye(labels.max() + 1)[labels]
    inside, total = belongs.T @ A @ belongs, A.sum()
    return float((np.diag(inside) / total - (inside.sum(axis=1) / total) ** 2).sum())


@pytest.mark.parametrize("seed", range(5))
def test_after_the_local_moves_no_client_would_rather_be_elsewhere(seed: int) -> None:
    """With weights, and with loops, as contracted networks have them."""
    rng = np.random.default_rng(seed)
    A = np.triu(rng.integers(1, 9, (12, 12)) * (rng.random((12, 12)) < 0.3)).astype(float)
    A = A + A.T
    order = Counting()
    labels = communities_module._local_moves(sp.csr_array(A), order)
    assert sorted(set(labels.tolist())) == list(range(labels.max() + 1))
    best = modularity(A, labels)
    assert best > modularity(A, np.arange(12))
    for k in range(12):
        for j in np.flatnonzero(A[k]):
            other = labels.copy()
            other[k] = labels[j]
            assert modularity(A, other) <= best + 1e-12
    assert 2 <= order.passes < communities_module.PASSES
