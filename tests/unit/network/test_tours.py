"""Tours, round trips and walks through all clients: they use links only, and are as short as can be."""

from __future__ import annotations

from itertools import pairwise, permutations
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtcd.core.errors import NetworkError
from mtcd.network import tours
from mtcd.network.edges import network_from_edges
from mtcd.network.repair import mended, repaired_tree
from mtcd.network.topology import Network, make_network
from mtcd.network.tours import (
    around_the_tree,
    closed_walk,
    following,
    hamiltonian_cycle,
    round_trip,
    spanning_tree,
    walk_through_all,
)
from mtcd.network.walks.random_tour import RandomTourWalk, branch_sizes, inwards_first
from mtcd.network.walks.tour import TourWalk
from problems import networks


def network_of(kind: str, K: int, **more: Any) -> Network:
    return make_network(kind, [f"c{k}" for k in range(K)], **more)


@pytest.mark.parametrize("kind", ["path", "cycle", "star", "grid"])
def test_last_visits_of_a_tour_are_those_of_its_hops(kind: str) -> None:
    walk = TourWalk(network_of(kind, 6))
    for start in range(6):
        way = [walk.next(-1, -1, start, 0, hop, 0.0) for hop in range(3 * walk.length)]
        for hops in range(1, len(way)):
            assert dict(walk.last_visits(start, hops)) == {
                k: hop for hop, k in enumerate(way[:hops])
            }
    covers = [walk.cover(k) for k in range(6)]
    firsts = [k for k in dict.fromkeys(walk.tour) if walk.cover(k) == min(covers)]
    assert walk.best_start() == firsts[0]


def test_trees_are_measured_from_their_leaves_inwards() -> None:
    tree = [[1, 2], [0], [0, 3, 4], [2], [2]]
    order = inwards_first(tree)
    assert sorted(order) == [(0, 0), (1, 0), (2, 0), (3, 2), (4, 2)]
    assert all(
        order.index((child, parent)) < [k for k, _ in order].index(parent)
        for child, parent in order
        if child
    )
    sizes = {(0, 1): 1, (1, 0): 4, (0, 2): 3, (2, 0): 2, (2, 3): 1, (3, 2): 4, (2, 4): 1, (4, 2): 4}
    assert branch_sizes(tree) == sizes
    assert around_the_tree(dict(enumerate(tree)), 0) == [0, 1, 0, 2, 3, 2, 4, 2]
    assert [following([1, 4, 7], previous) for previous in (0, 1, 4, 7, 9)] == [1, 4, 7, 1, 1]


def test_a_cycle_is_the_same_in_every_version() -> None:
    """Every client computes its own routing table."""
    found = hamiltonian_cycle(nx.dodecahedral_graph())
    assert found == [0, 1, 2, 3, 4, 17, 16, 12, 13, 14, 15, 5, 6, 7, 8, 9, 10, 11, 18, 19]
    grid = network_of("grid", 20)
    assert hamiltonian_cycle(grid.graph) == [
        0,
        1,
        2,
        3,
        4,
        9,
        8,
        7,
        6,
        11,
        12,
        13,
        14,
        19,
        18,
        17,
        16,
        15,
        10,
        5,
    ]
    assert hamiltonian_cycle(nx.petersen_graph()) is None


@pytest.mark.parametrize("seed", [0, 1, 3])
def test_a_cycle_is_found_where_paths_must_be_turned(seed: int) -> None:
    """A hidden cycle and a few links more: the first path is hardly ever a cycle."""
    rng = np.random.default_rng(seed)
    hidden = rng.permutation(24).tolist()
    graph = nx.Graph(
        [
            *pairwise([*hidden, hidden[0]]),
            *(tuple(pair) for pair in rng.integers(24, size=(20, 2)).tolist()),
        ]
    )
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    found = hamiltonian_cycle(graph)
    assert sorted(found) == list(range(24))
    assert all(graph.has_edge(a, b) for a, b in pairwise([*found, found[0]]))


def test_no_cycle_is_searched_for_where_there_is_none_or_the_search_would_take_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tours, "_rotated_path", None)
    monkeypatch.setattr(tours, "LARGEST_CYCLE", 6)
    bow_tie = nx.Graph([(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 2)])
    for none in (nx.path_graph(2), bow_tie, nx.complete_bipartite_graph(2, 4), nx.cycle_graph(7)):
        assert hamiltonian_cycle(none) is None
    for some in (nx.cycle_graph(3), nx.cycle_graph(6), nx.complete_graph(5)):
        with pytest.raises(TypeError):
            hamiltonian_cycle(some)


def test_a_search_is_given_up_sooner_on_a_large_network(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(
        tours, "_rotated_path", lambda near, most, rng: asked.append((len(near), most))
    )
    monkeypatch.setattr(tours, "LARGE", 6)
    for size in (6, 7):
        assert hamiltonian_cycle(nx.cycle_graph(size)) is None
    assert (
        asked
        == [(6, 6 * tours.ROTATIONS)] * tours.ATTEMPTS
        + [(7, 7 * tours.ROTATIONS)] * tours.ATTEMPTS_OF_LARGE
    )


@pytest.mark.parametrize(("largest", "hops"), [(9, 10), (8, 16)])
def test_a_walk_through_many_goes_around_a_tree(
    largest: int, hops: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A grid of nine has no cycle; a round trip of ten hops is the best there is."""
    monkeypatch.setattr(tours, "LARGEST_ROUND_TRIP", largest)
    assert len(tours.closed_walk(network_of("grid", 9), range(9))) == hops


@pytest.mark.parametrize(
    ("kind", "K", "rows", "length"),
    [
        ("path", 40, None, 78),
        ("star", 9, None, 16),
        ("cycle", 40, None, 40),
        ("complete", 40, None, 40),
        ("grid", 40, 5, 40),
        ("path", 2, None, 2),
        ("path", 1, None, 1),
        ("grid", 9, None, 10),  # odd: one hop too many is as good as it gets
    ],
)
def test_tours_are_as_short_as_can_be(kind, K, rows, length) -> None:
    network = make_network(kind, [f"c{k}" for k in range(K)], rows=rows)
    tour = closed_walk(network, range(K))
    assert len(tour) == length
    assert set(tour) == set(range(K))


@pytest.mark.parametrize("kind", ["path", "grid", "complete"])
def test_large_networks_have_tours_too(kind: str) -> None:
    network = make_network(kind, [f"c{k}" for k in range(600)])
    tour = closed_walk(network, range(600))
    assert set(tour) == set(range(600))
    assert len(tour) == (1198 if kind == "path" else 600)
    assert all(b in network.neighbours[a] for a, b in pairwise([*tour, tour[0]]))


def test_cycles_through_all_are_found_where_there_are_some() -> None:
    grid = nx.convert_node_labels_to_integers(nx.grid_2d_graph(4, 6))
    for graph in (
        nx.cycle_graph(9),
        nx.complete_graph(7),
        grid,
        nx.gnp_random_graph(20, 0.5, seed=1),
    ):
        cycle = hamiltonian_cycle(graph)
        assert sorted(cycle) == sorted(graph)
        assert all(graph.has_edge(a, b) for a, b in pairwise([*cycle, cycle[0]]))
    assert hamiltonian_cycle(nx.cycle_graph(3)) is not None
    for none in (
        *map(nx.path_graph, (1, 2, 4)),
        nx.star_graph(4),
        nx.complete_bipartite_graph(2, 4),
    ):
        assert hamiltonian_cycle(none) is None


def test_a_round_trip_is_turned_round_until_nothing_makes_it_shorter() -> None:
    """Also where each turn saves one hop only: here to the shortest there is."""
    graph = nx.gnp_random_graph(8, 0.3, seed=7)
    order = np.random.default_rng(7).permutation(8).tolist()
    far = dict(nx.all_pairs_shortest_path_length(graph))
    shortest = min(
        sum(far[a][b] for a, b in pairwise((0, *way, 0))) for way in permutations(range(1, 8))
    )
    assert sum(far[a][b] for a, b in pairwise([*order, order[0]])) > shortest
    trip = round_trip(graph, order)
    assert len(trip) == shortest
    assert set(trip) == set(graph)
    assert all(graph.has_edge(a, b) for a, b in pairwise([*trip, trip[0]]))


@given(st.integers(1, 12), st.data())
def test_a_walk_through_all_uses_links_only_and_ends_where_it_is_asked_to(K, data) -> None:
    network = data.draw(networks(K, connected=True))
    end = data.draw(st.integers(0, K - 1))
    walk = walk_through_all(network, end)
    assert walk[-1] == end
    assert set(walk) == set(range(K))
    assert all(b in network.neighbours[a] for a, b in pairwise(walk))
    assert K - 1 <= len(walk) - 1 <= max(0, 2 * (K - 1) - 1)


@pytest.mark.parametrize(
    ("kind", "end", "hops"), [("path", 0, 4), ("path", 2, 6), ("cycle", 3, 4), ("star", 0, 7)]
)
def test_a_walk_through_all_is_as_short_as_can_be(kind, end, hops) -> None:
    assert len(walk_through_all(make_network(kind, [f"c{k}" for k in range(5)]), end)) - 1 == hops


def test_around_a_tree_the_first_branch_is_first_wherever_it_begins() -> None:
    tree = [[1], [0, 2, 3], [1], [1]]
    assert around_the_tree(tree, 1) == [1, 0, 1, 2, 1, 3]
    assert around_the_tree(tree, 2) == [2, 1, 3, 1, 0, 1]


def in_two_rings() -> Network:
    edges = [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3)]
    return network_from_edges(edges, [f"c{k}" for k in range(6)])


@pytest.mark.parametrize(
    "find",
    [
        closed_walk,
        spanning_tree,
        lambda network, members: mended([0, 1, 2], network, members),
        lambda network, members: repaired_tree({}, network, members),
    ],
    ids=["tour", "tree", "mended tour", "repaired tree"],
)
def test_no_way_through_clients_that_are_apart(find: Any) -> None:
    """Two rings are a cycle for each client, and none for all."""
    assert set(find(in_two_rings(), [0, 1, 2])) == {0, 1, 2}
    with pytest.raises(NetworkError, match="can all be reached from each other"):
        find(in_two_rings(), range(6))


def test_every_party_finds_the_same_tour_in_whatever_order_it_names_the_members() -> None:
    assert closed_walk(network_of("complete", 9), [8, 1, 3]) == [1, 3, 8]


def test_a_cycle_is_the_same_in_whatever_order_a_graph_gives_its_clients() -> None:
    graph = network_of("grid", 16).graph
    backwards = nx.Graph()
    backwards.add_nodes_from(reversed(range(16)))
    backwards.add_edges_from(reversed(list(graph.edges)))
    assert hamiltonian_cycle(backwards) == hamiltonian_cycle(graph)


def test_a_walk_goes_round_the_tour_or_the_tree_that_it_is_given() -> None:
    everyone = network_of("complete", 4)
    assert TourWalk(everyone, tour=[0, 2, 1, 3]).tour == [0, 2, 1, 3]
    assert TourWalk(everyone).tour == [0, 1, 2, 3]
    path = {0: [2], 2: [0, 1], 1: [2, 3], 3: [1]}
    assert RandomTourWalk(everyone, tree=path).tree == path
    assert RandomTourWalk(everyone).tree != path


def test_random_tours_are_drawn_for_each_seed_and_token() -> None:
    star = network_of("star", 9)
    orders = {
        tuple(RandomTourWalk(star, seed=seed, token=token)._order(0, 0, 0))
        for seed in range(3)
        for token in range(3)
    }
    assert len(orders) == 9
