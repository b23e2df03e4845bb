"""Tours and trees after clients have left and joined: still tours and trees, and not far from the
old ones."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mtcd.core.errors import NetworkError
from mtcd.network.edges import network_from_edges
from mtcd.network.repair import TOO_LONG, _shortened, mended, repaired, repaired_tree
from mtcd.network.topology import Network, make_network
from mtcd.network.tours import closed_walk, spanning_tree
from mtcd.network.walks import make_walk


def connected(K: int, extra: int, seed: int) -> Network:
    """A random tree and some links more."""
    rng = np.random.default_rng(seed)
    edges = [(k, int(rng.integers(k))) for k in range(1, K)]
    edges += [(int(a), int(b)) for a, b in rng.integers(K, size=(extra, 2))]
    return network_from_edges(edges, [f"c{k}" for k in range(K)])


def part(network: Network, seed: int) -> list[int]:
    """Some clients in one piece: from a random one on outwards, in random order."""
    rng = np.random.default_rng(seed)
    members, edge = set(), [int(rng.integers(network.size))]
    for _ in range(int(rng.integers(1, network.size + 1))):
        members.add(edge.pop(int(rng.integers(len(edge)))))
        edge = sorted({j for k in members for j in network.neighbours[k]} - members)
        if not edge:
            break
    return sorted(members)


def check_tour(tour: list[int], network: Network, members: list[int]) -> None:
    assert set(tour) == set(members)
    steps = list(zip(tour, [*tour[1:], tour[0]], strict=True)) if len(tour) > 1 else []
    assert all(b in network.neighbours[a] for a, b in steps)


many = settings(max_examples=200, deadline=None)


@many
@given(st.integers(1, 14), st.integers(0, 14), st.integers(0, 999))
def test_a_repaired_tour_visits_exactly_those_present_over_links_and_is_not_long(
    K, extra, seed
) -> None:
    network = connected(K, extra, seed)
    before, after = part(network, seed), part(network, seed + 1)
    for tour in (closed_walk(network, before), [before[0]]):
        check_tour(mended(tour, network, after), network, after)
        new = repaired(tour, network, after)
        check_tour(new, network, after)
        assert len(new) <= TOO_LONG * len(closed_walk(network, after))


@many
@given(st.integers(1, 14), st.integers(0, 14), st.integers(0, 999))
def test_nothing_changes_where_nobody_comes_or_goes(K, extra, seed) -> None:
    network = connected(K, extra, seed)
    members = part(network, seed)
    around = closed_walk(network, members) * 2  # needlessly long, and still left alone
    assert repaired(around, network, members) == around
    tree = spanning_tree(network, members)
    assert repaired_tree(tree, network, members) == tree


@many
@given(st.integers(1, 14), st.integers(0, 14), st.integers(0, 999))
def test_a_repaired_tree_spans_those_present_and_keeps_the_branches_between_them(
    K, extra, seed
) -> None:
    network = connected(K, extra, seed)
    before, after = part(network, seed), part(network, seed + 1)
    old, new = (
        nx.Graph(spanning_tree(network, before)),
        repaired_tree(spanning_tree(network, before), network, after),
    )
    graph = nx.Graph(new)
    assert nx.is_tree(graph)
    assert set(graph) == set(after)
    assert all(b in network.neighbours[a] for a, b in graph.edges)
    assert set(map(frozenset, old.subgraph(after).edges)) <= set(map(frozenset, graph.edges))
    assert all(near == sorted(graph[k]) for k, near in new.items())


@many
@given(st.integers(3, 14), st.integers(0, 14), st.integers(0, 999))
def test_what_is_mended_leaves_those_far_from_it_as_they_were(K, extra, seed) -> None:
    """One leaves: stretches of the old walk stay whole between bridges, in their order, but for
    spare passages."""
    network = connected(K, extra, seed)
    tour = closed_walk(network, range(K))
    gone = next(k for k in range(K) if nx.is_connected(network.graph.subgraph(set(range(K)) - {k})))
    new = mended(tour, network, [k for k in range(K) if k != gone])
    steps = Counter(zip(tour, [*tour[1:], tour[0]], strict=True))
    fresh = (
        sum((Counter(zip(new, [*new[1:], new[0]], strict=True)) - steps).values())
        if len(new) > 1
        else 0
    )
    bridges = 0
    inside = network.graph.subgraph(set(range(K)) - {gone})
    for before, at, after in zip([tour[-1], *tour[:-1]], tour, [*tour[1:], tour[0]], strict=True):
        bridges += nx.shortest_path_length(inside, before, after) if at == gone else 0
    spared = len(tour) - 2 * tour.count(gone) + bridges - len(new)
    assert fresh <= bridges + spared


def test_on_the_whole_few_tables_change() -> None:
    """Where one of 40 clients leaves, most send the token on as before; after a search anew, few
    do."""
    kept: dict[str, list[float]] = {"repaired": [], "anew": []}
    for seed in range(12):
        network = connected(40, 60, seed)
        tour = closed_walk(network, range(40))
        gone = next(
            k
            for k in range(39, 0, -1)
            if nx.is_connected(network.graph.subgraph(set(range(40)) - {k}))
        )
        present = [k for k in range(40) if k != gone]
        tables = [
            tables_of(tour),
            tables_of(repaired(tour, network, present)),
            tables_of(closed_walk(network, present)),
        ]
        for name, after in zip(kept, tables[1:], strict=True):
            kept[name].append(np.mean([after[k] == tables[0][k] for k in present]))
    assert np.mean(kept["repaired"]) > 0.8
    assert np.mean(kept["repaired"]) > np.mean(kept["anew"]) + 0.1


def tables_of(tour: list[int]) -> dict[int, list[int]]:
    return {k: sorted(b for a, b in pairwise([*tour, tour[0]]) if a == k) for k in set(tour)}


def test_what_is_mended_is_given_up_where_it_is_a_quarter_too_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    everyone = make_network("complete", [f"c{k}" for k in range(9)])
    for hops, kept in ((10, True), (11, False)):
        walk = [k % 8 for k in range(hops)]
        monkeypatch.setattr("mtcd.network.repair.mended", lambda *_, walk=walk: walk)
        found = repaired(range(9), everyone, range(8))
        assert (found == walk) == kept
        assert kept or len(found) == 8


def test_by_hand() -> None:
    ring = make_network("cycle", [f"c{k}" for k in range(6)])
    assert repaired([0, 1, 2, 3, 4, 5], ring, [0, 1, 2, 4, 5]) == [0, 1, 2, 1, 0, 5, 4, 5], (
        "back the other way"
    )
    everyone = make_network("complete", [f"c{k}" for k in range(6)])
    assert repaired([0, 2, 4, 1, 3], everyone, [0, 2, 1, 3]) == [0, 2, 1, 3]
    path = make_network("path", [f"c{k}" for k in range(5)])
    assert repaired([1, 2, 3, 2], path, range(5)) == [1, 0, 1, 2, 3, 4, 3, 2]
    assert repaired([1, 2, 3, 2], path, [1]) == [1]
    star = make_network("star", [f"c{k}" for k in range(5)])
    assert repaired_tree({0: [1, 2], 1: [0], 2: [0]}, star, [0, 1, 4]) == {
        0: [1, 4],
        1: [0],
        4: [0],
    }
    for mend in (
        lambda: repaired([0, 1, 2, 1], path, [0, 2]),
        lambda: repaired_tree({0: []}, path, [0, 2]),
    ):
        with pytest.raises(NetworkError, match="reached from each other"):
            mend()


@pytest.mark.parametrize("kind", ["lazy", "metropolis", "non-backtracking", "tour", "random-tour"])
def test_a_repaired_walk_goes_everywhere_and_only_there(kind: str) -> None:
    network = make_network("grid", [f"c{k}" for k in range(9)])
    present = [k for k in range(9) if k != 4]
    walk = make_walk(kind, network, None, 3, 1).repaired(network, present)
    seen, previous, rng = [0], -1, np.random.default_rng(0)
    for hop in range(1, 400):
        seen.append(walk.next(seen[-1], previous, 0, 0, hop, float(rng.random())))
        previous = seen[-2]
    assert set(seen) == set(present)
    assert all(a == b or b in network.neighbours[a] for a, b in pairwise(seen))


@pytest.mark.parametrize(
    ("walk", "short"),
    [
        ([0, 1, 2, 1, 2, 3, 2, 1], [0, 1, 2, 3, 2, 1]),  # once up and down is enough
        ([0, 1, 0, 1], [0, 1]),
        ([0, 1, 0, 1, 0, 1, 0, 1], [0, 1]),
        ([2, 1, 0, 1, 2, 3], [1, 0, 1, 2, 3, 2]),
        ([1, 0, 1, 0, 1, 2, 3, 2], [0, 1, 2, 3, 2, 1]),
        ([3, 3, 2, 1, 0, 1, 2], [3, 2, 1, 0, 1, 2]),
        ([0], [0]),
    ],
)
def test_spare_passages_are_dropped_and_the_last_one_of_a_client_never_is(
    walk: list[int], short: list[int]
) -> None:
    found = _shortened(list(walk), make_network("path", [f"c{k}" for k in range(4)]))
    assert found in [short[i:] + short[:i] for i in range(len(short))]


def test_a_passage_that_another_one_made_spare_is_dropped_too() -> None:
    links = [(0, 1), (1, 2), (2, 3), (3, 0), (1, 3), (0, 4), (4, 2)]
    network = network_from_edges(links, [f"c{k}" for k in range(5)])
    walk = _shortened([4, 2, 1, 3, 1, 0, 3, 0], network)
    assert len(walk) == 5
    check_tour(walk, network, range(5))


def test_clients_join_in_the_order_of_their_numbers() -> None:
    """Each is put where it costs fewest hops, after those before it; a set gives 8 before 1."""
    everyone = make_network("complete", [f"c{k}" for k in range(9)])
    assert mended([0, 2], everyone, [0, 1, 2, 8]) == [0, 8, 1, 2]


def test_a_tree_is_repaired_alike_in_whatever_order_its_members_are_named() -> None:
    """Client 2 leaves a path of five: of two pieces of one size the one with client 0 is kept, and
    the other hangs on its smallest client."""
    path = {0: [1], 1: [0, 2], 2: [1, 3], 3: [2, 4], 4: [3]}
    links = [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4), (1, 3)]
    network = network_from_edges(links, [f"c{k}" for k in range(5)])
    for members in ([0, 1, 3, 4], [4, 3, 1, 0]):
        tree = repaired_tree(path, network, members)
        assert tree == {0: [1, 4], 1: [0], 3: [4], 4: [0, 3]}


def test_pieces_hang_on_the_smallest_client_that_they_can_reach() -> None:
    """A set gives 8 before 1."""
    links = [(1, 8), (3, 4), (1, 3), (8, 4)]
    network = network_from_edges(links, [f"c{k}" for k in range(9)])
    tree = repaired_tree({1: [8], 8: [1], 3: [4], 4: [3]}, network, [1, 3, 4, 8])
    assert tree == {1: [3, 8], 8: [1], 3: [1, 4], 4: [3]}
