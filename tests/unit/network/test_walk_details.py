"""Walks at the edges: draws that just decide, tours of one client, declared probabilities that are
nearly right."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import networkx as nx
import numpy as np
import pytest

from mtcd.core.errors import ConfigError
from mtcd.network import tours
from mtcd.network.edges import network_from_edges
from mtcd.network.spectrum import algebraic_connectivity, diameter, facts
from mtcd.network.topology import Network, make_network
from mtcd.network.tours import around_the_tree, following, hamiltonian_cycle, spanning_tree
from mtcd.network.walks import Walk, make_walk, random_tour
from mtcd.network.walks.facts import DeclaredFacts, stationary
from mtcd.network.walks.lazy import LazyWalk
from mtcd.network.walks.metropolis import metropolis_chain
from mtcd.network.walks.non_backtracking import (
    NonBacktrackingFacts,
    link_visits,
    longest_link_hitting_time,
)
from mtcd.network.walks.random_tour import (
    RandomTourFacts,
    branch_sizes,
    inwards_first,
    random_tour_cover,
    random_tour_visits,
    random_tour_wait,
    random_tour_work,
)
from mtcd.network.walks.tour import TourFacts, TourWalk, tour_cover, tour_visits, tour_wait


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


@pytest.mark.parametrize(
    ("tour", "wait", "cover"),
    [
        ([0], 1, 0),
        ([0, 1], 2, 1),
        ([0, 1, 2, 1], 4, 3),
        ([1, 0, 1, 2, 1, 3], 6, 5),
        ([0, 1, 2, 3, 2, 1], 6, 5),
    ],
)
def test_the_times_of_a_tour_by_hand(tour: list[int], wait: int, cover: int) -> None:
    """The last one from client 1: to the far end first, and then to the near one."""
    assert (tour_wait(tour), tour_cover(tour)) == (wait, cover)
    assert TourFacts(tour).tour() == (len(tour), wait, cover)


@pytest.mark.parametrize(
    ("K", "length", "wait", "cover"), [(1, 1, 1, 0), (2, 2, 2, 1), (3, 4, 6, 3), (5, 8, 14, 7)]
)
def test_the_times_of_random_tours_by_hand(K: int, length: int, wait: int, cover: int) -> None:
    assert (random_tour_wait(K), random_tour_cover(K)) == (wait, cover)
    tree = spanning_tree(network_of("star", K), range(K))
    assert RandomTourFacts([tree[k] for k in range(K)]).tour() == (length, wait, cover)
    assert make_walk("random-tour", network_of("star", K)).length == length


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


def test_a_random_tour_that_just_fits_is_certain_to_visit_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tree, start = [[1, 2, 3], [0], [0], [0]], [0.0, 1.0, 0.0, 0.0]
    with monkeypatch.context() as patch:
        patch.setattr(random_tour, "branch_sizes", None)  # nothing is computed
        assert random_tour_visits(tree, start, 6).tolist() == [1.0] * 4
    # from a leaf: 0, then the others in random order, each of them visited 2nd or 4th after it
    assert random_tour_visits(tree, start, 5) == pytest.approx([1.0, 1.0, 1.0, 1.0])
    for S in (3, 4):
        assert random_tour_visits(tree, start, S) == pytest.approx([1.0, 1.0, 0.5, 0.5])
    assert random_tour_visits(tree, start, 2).tolist() == [1.0, 1.0, 0.0, 0.0]
    assert random_tour_visits(tree, start, 1).tolist() == start


def test_visits_of_a_non_backtracking_walk_by_hand() -> None:
    """On a star: from a leaf to the middle, then to one of the others, then back."""
    star, start = network_of("star", 4), [0.0, 1.0, 0.0, 0.0]
    expected = [[0, 1, 0, 0], [1, 1, 0, 0], [1, 1, 0.5, 0.5], [1, 1, 0.5, 0.5], [1, 1, 0.75, 0.75]]
    for S, visits in enumerate(expected, start=1):
        assert link_visits(star, start, S) == pytest.approx(visits)
    assert link_visits(network_of("empty", 2), [0.5, 0.5], 3).tolist() == [0.5, 0.5]
    assert NonBacktrackingFacts(star, range(4)).takes_links(0.25) is True


@pytest.mark.parametrize(
    "links", [[(0, 1), (1, 2), (2, 3), (3, 1)], [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 2)]]
)
def test_no_start_at_a_client_is_worse_than_the_worst_link_before_it(
    links: list[tuple[int, int]],
) -> None:
    """The first hop is along any link; later ones are not back, and one from a dead end is."""
    graph = nx.Graph(links)
    worst = 0.0
    for target in graph:
        ways = [(a, b) for a, b in graph.to_directed().edges if b != target]
        place = {way: i for i, way in enumerate(ways)}
        Q = np.zeros((len(ways), len(ways)))
        for a, b in ways:
            on = [k for k in graph[b] if k != a] or [a]
            for k in on:
                if k != target:
                    Q[place[a, b], place[b, k]] = 1 / len(on)
        left = np.linalg.solve(np.eye(len(ways)) - Q, np.ones(len(ways)))
        starts = [
            1 + np.mean([left[place[k, j]] if j != target else 0.0 for j in graph[k]])
            for k in graph
            if k != target
        ]
        worst = max(worst, left.max(), *starts)
    assert longest_link_hitting_time(
        network_from_edges(graph, [f"c{k}" for k in graph])
    ) == pytest.approx(worst)


def declared(rows: dict[int, dict[int, float]]) -> DeclaredFacts:
    return DeclaredFacts("Own", rows.get, network_of("path", len(rows)), range(len(rows)))


@pytest.mark.parametrize(
    ("total", "fine"), [(0.5, False), (1.5, False), (1 + 1e-6, False), (1 + 1e-12, True)]
)
def test_declared_probabilities_add_up_to_1_but_for_rounding(total: float, fine: bool) -> None:
    found = declared({0: {0: 0.25, 1: total - 0.25}, 1: {0: 1.0}})
    if fine:
        assert found.chain().share == pytest.approx([4 / 7, 3 / 7])
    else:
        with pytest.raises(ConfigError, match=r"Own.transitions\(0\) must be probabilities"):
            found.chain()


def test_a_declared_probability_of_0_is_no_way() -> None:
    P, share = declared({0: {0: 1.0, 1: 0.0}, 1: {0: 1.0}}).chain()
    assert P.nnz == 2
    assert share.tolist() == [0.0, 0.0]  # nothing leads to client 1
    alone = declared({0: {0: 1.0}}).chain()
    assert (alone.P.toarray().tolist(), alone.share.tolist()) == ([[1.0]], [1.0])
    assert stationary(declared({0: {1: 1.0}, 1: {0: 1.0}}).chain().P).tolist() == [0.5, 0.5]


def test_links_are_taken_if_each_is_at_least_as_likely_as_asked() -> None:
    found = declared({0: {0: 0.8, 1: 0.2}, 1: {0: 0.3, 2: 0.7}, 2: {1: 1.0}})
    assert [found.takes_links(least) for least in (0.1, 0.2, 0.2001, 0.3)] == [
        True,
        True,
        False,
        False,
    ]
    assert not declared({0: {0: 1.0}, 1: {0: 1.0}}).takes_links(0.1)  # 0 does not go to 1 at all


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


def test_a_random_tour_may_begin_with_the_branch_that_the_last_one_ended_with() -> None:
    star, seen = network_of("star", 4), set()
    for seed in range(30):
        walk, way = make_walk("random-tour", star, seed=seed), [0]
        for hop in range(1, 8):
            way.append(walk.next(way[-1], way[-2] if hop > 1 else -1, 0, 0, hop, 0.0))
        assert set(way[1:7:2]) == {1, 2, 3}
        seen.add(way[5] == way[7])
    assert seen == {True, False}


def test_a_metropolis_chain_is_everywhere_equally_often() -> None:
    P, share = metropolis_chain(network_of("star", 4))
    assert share.tolist() == [0.25] * 4
    assert P.toarray() == pytest.approx(
        np.array([[0, 1, 1, 1], [1, 2, 0, 0], [1, 0, 2, 0], [1, 0, 0, 2]]) / 3
    )


def test_the_smallest_networks_by_hand() -> None:
    assert [longest_link_hitting_time(network_of("path", K)) for K in (1, 2)] == [0.0, 1.0]
    assert [diameter(network_of("complete", K)) for K in (1, 2, 3)] == [
        (0, True),
        (1, True),
        (1, True),
    ]
    assert [algebraic_connectivity(network_of("path", K)) for K in (1, 2)] == [0.0, 2.0]
    assert facts(network_of("star", 5)).degree_mean == 8 / 5
    assert metropolis_chain(network_of("empty", 2)).P.toarray().tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert tour_visits([0, 1, 2, 1], [0.25, 0.25, 0.5], S=2).tolist() == [0.25, 1.0, 0.75]
    assert [random_tour_work([[1], [0, 2], [1]], S) > 0 for S in (3, 4, 5)] == [True, False, False]
