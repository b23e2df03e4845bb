"""Spanning trees: made of links, as shallow as can be, the same for everybody."""

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtcd.network import topology
from mtcd.network.edges import network_from_edges
from mtcd.network.spanning import SEARCHES, _with_room, spanning_tree
from mtcd.network.topology import Network, make_network
from problems import networks


def names(count: int) -> list[str]:
    return [f"c{k}" for k in range(count)]


@given(st.integers(1, 12).flatmap(lambda size: networks(size, connected=True)))
def test_it_spans_the_network_with_the_least_depth_there_is(network: Network) -> None:
    tree = spanning_tree(network)
    links = [(k, parent) for k, parent in enumerate(tree.parents) if parent is not None]
    assert all(parent in network.neighbours[k] for k, parent in links)
    graph = nx.Graph(links)
    graph.add_nodes_from(range(network.size))
    assert nx.is_tree(graph)
    assert tree.parents[tree.root] is None
    assert tree.depth == nx.radius(network.graph) == nx.eccentricity(graph, tree.root)
    depths = nx.single_source_shortest_path_length(graph, tree.root)
    assert all(depths[k] == d for d, level in enumerate(tree.levels) for k in level)
    assert sorted((child, k) for k, below in enumerate(tree.children) for child in below) == sorted(
        links
    )


@pytest.mark.parametrize(
    ("kind", "clients", "depth"),
    [
        ("path", 81, 40),
        ("path", 80, 40),
        ("star", 500, 1),
        ("complete", 200, 1),
        ("grid", 900, 30),
        ("cycle", 101, 50),
    ],
)
def test_the_depth_on_networks_of_known_kinds(kind: str, clients: int, depth: int) -> None:
    assert spanning_tree(make_network(kind, names(clients))).depth == depth


@given(st.integers(1, 14).flatmap(lambda size: networks(size, connected=True)), st.integers(2, 4))
def test_with_a_bound_it_is_a_tree_of_links_that_keeps_it_or_doubles_it(
    network: Network, degree: int
) -> None:
    tree, free = spanning_tree(network, degree), spanning_tree(network)
    graph = nx.Graph([(k, parent) for k, parent in enumerate(tree.parents) if parent is not None])
    graph.add_nodes_from(range(network.size))
    assert nx.is_tree(graph)
    assert all(network.graph.has_edge(*link) for link in graph.edges)
    assert tree.degree == max(dict(graph.degree).values())
    depths = nx.single_source_shortest_path_length(graph, tree.root)
    assert all(depths[k] == d for d, level in enumerate(tree.levels) for k in level)
    assert sum(map(len, tree.levels)) == network.size
    assert tree.root == free.root
    if free.degree <= degree:
        assert tree == free
    else:
        allowed = [degree * 2**times for times in range(6)]
        assert tree.degree <= next(most for most in allowed if tree.degree <= most)
        assert tree.degree <= free.degree


@pytest.mark.parametrize(
    ("kind", "degree", "depth", "most"),
    [
        ("complete", 4, 5, 4),  # 1 + 4 + 12 + 36 + 108 < 200
        ("complete", 2, 100, 2),
        ("complete", 300, 1, 199),
        ("star", 4, 1, 199),  # has no other tree
        ("path", 2, 100, 2),
    ],
)
def test_the_depth_with_a_bound_on_networks_of_known_kinds(
    kind: str, degree: int, depth: int, most: int
) -> None:
    tree = spanning_tree(make_network(kind, names(200)), degree)
    assert (tree.depth, tree.degree) == (depth, most)


def test_a_dense_random_network_keeps_a_bound_at_little_more_depth() -> None:
    network = make_network("erdos-renyi", names(120), p=0.2, seed=3)
    free, bounded = spanning_tree(network), spanning_tree(network, 4)
    assert free.degree > 20
    assert bounded.degree <= 4
    assert bounded.depth <= 5  # a full tree of this degree has at least 4 levels below the root


def test_the_search_for_a_centre_is_short_on_large_networks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    searches, search = [], topology.breadth_first
    monkeypatch.setattr(
        topology, "breadth_first", lambda *given: searches.append(0) or search(*given)
    )
    spanning_tree(make_network("cycle", names(2000)))
    assert 4 < len(searches) <= SEARCHES + 4


def test_two_networks_with_the_same_links_have_the_same_tree() -> None:
    first, second = (make_network("erdos-renyi", names(60), p=0.1, seed=5) for _ in range(2))
    assert spanning_tree(first) == spanning_tree(second)


@pytest.mark.parametrize(
    ("kind", "clients", "root"),
    [("path", 8, 4), ("cycle", 6, 4), ("cycle", 9, 2), ("grid", 12, 6), ("complete", 5, 1)],
)
def test_of_several_centres_every_version_chooses_the_same(
    kind: str, clients: int, root: int
) -> None:
    assert spanning_tree(make_network(kind, names(clients))).root == root
    drawn = make_network("random-geometric", names(25), radius=0.4, seed=1)
    assert spanning_tree(drawn).root == 15


@pytest.mark.parametrize("kind", ["path", "star", "complete"])
def test_the_centre_of_a_tree_or_a_complete_network_takes_few_searches(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three to find the middle of a long path, four at most to see that none is better, and one for
    the tree."""
    searches, search = [], topology.breadth_first
    monkeypatch.setattr(
        topology, "breadth_first", lambda *given: searches.append(0) or search(*given)
    )
    spanning_tree(make_network(kind, names(30)))
    assert 5 <= len(searches) <= 8


def test_those_with_few_ways_to_be_reached_are_hung_first() -> None:
    """Client 3 could hang on 1 or 2, client 4 on 1 alone, and each has room for one."""
    edges = [(0, 1), (0, 2), (1, 3), (2, 3), (1, 4)]
    network = network_from_edges(edges, [f"c{k}" for k in range(5)])
    tree = _with_room(network, 0, 2)
    assert tree is not None
    assert tree.parents == (None, 0, 0, 2, 1)
    assert tree.levels == ((0,), (1, 2), (3, 4))
