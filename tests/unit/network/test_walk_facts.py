"""What theory knows of a walk: visits, stationary shares, tours and their times, by hand."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import networkx as nx
import numpy as np
import pytest

from mtcd.core.errors import ConfigError
from mtcd.network.edges import network_from_edges
from mtcd.network.spectrum import algebraic_connectivity, diameter, facts
from mtcd.network.topology import Network, make_network
from mtcd.network.tours import spanning_tree
from mtcd.network.walks import make_walk, random_tour
from mtcd.network.walks.facts import DeclaredFacts, stationary
from mtcd.network.walks.lazy import lazy_chain
from mtcd.network.walks.metropolis import metropolis_chain
from mtcd.network.walks.non_backtracking import (
    NonBacktrackingFacts,
    link_visits,
    longest_link_hitting_time,
)
from mtcd.network.walks.random_tour import (
    RandomTourFacts,
    random_tour_cover,
    random_tour_visits,
    random_tour_wait,
    random_tour_work,
)
from mtcd.network.walks.tour import TourFacts, tour_cover, tour_visits, tour_wait
from mtcd.theory.visits import visit_probabilities


def network_of(kind: str, K: int, **more: Any) -> Network:
    return make_network(kind, [f"c{k}" for k in range(K)], **more)


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


def test_a_certain_visit_has_probability_1_whatever_the_rounding() -> None:
    tenths = [0.1] * 10
    # one after the other: newer Pythons round ``sum`` only once
    assert list(accumulate(tenths))[-1] != 1.0
    assert tour_visits(list(range(10)), tenths, 10).tolist() == [1.0] * 10


def test_no_probability_of_a_visit_is_above_1_by_rounding() -> None:
    """Each of these sums is 1 + 2e-16 or more."""

    def start(K: int) -> np.ndarray:
        return np.arange(1, K + 1) / (K * (K + 1) / 2)

    cycle, path, everyone = (
        make_network(kind, "abcde"[:K]) for kind, K in (("cycle", 5), ("path", 4), ("complete", 5))
    )
    assert link_visits(cycle, start(5), 5).max() == 1.0
    assert random_tour_visits(path.neighbours, start(4), 5).max() == 1.0
    assert visit_probabilities(lazy_chain(everyone).P, start(5), 200).max() == 1.0


VISITS: dict[str, Any] = {
    "tour": lambda start, S: tour_visits([0, 1, 2], start, S),
    "random tour": lambda start, S: random_tour_visits([[1], [0, 2], [1]], start, S),
    "non-backtracking": lambda start, S: link_visits(network_of("path", 3), start, S),
}


@pytest.mark.parametrize("visits", VISITS.values(), ids=VISITS)
def test_visits_are_of_whole_numbers_from_a_start_of_probabilities(visits: Any) -> None:
    for S in (0, -1, 1.5, "2"):
        with pytest.raises(ConfigError, match="S, the number of visits,"):
            visits([0.0, 0.5, 0.5], S)
    with pytest.raises(ConfigError, match="the start has 2 probabilities for 3 clients"):
        visits([0.5, 0.5], 2)
    for start in ([1.5, -0.5, 0.0], [0.5, 0.0, 0.0], [float("nan"), 0.5, 0.5]):
        with pytest.raises(ConfigError, match="the start must be probabilities"):
            visits(start, 2)


@pytest.mark.parametrize("visits", VISITS.values(), ids=VISITS)
def test_the_start_stays_as_it_was(visits: Any) -> None:
    start = np.array([0.0, 0.5, 0.5])
    assert visits(start, 2).sum() > 1.0
    assert start.tolist() == [0.0, 0.5, 0.5]


@pytest.mark.parametrize("to", [2, 5])
def test_declared_hops_lead_to_neighbours_inside(to: int) -> None:
    """Client 2 is no neighbour, client 5 is not there."""
    with pytest.raises(ConfigError, match=f"leads to client {to}, which is no neighbour"):
        declared({0: {to: 1.0}, 1: {0: 1.0}, 2: {1: 1.0}}).chain()


def test_visits_of_a_non_backtracking_walk_do_not_depend_on_how_many_are_computed_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    network = network_of("grid", 6)
    start = np.array([0.5, 0.0, 0.25, 0.25, 0.0, 0.0])
    at_once = link_visits(network, start, 4)
    for numbers in (1, 2 * 14):  # a block of one client, and of two
        monkeypatch.setattr("mtcd.network.walks.non_backtracking.NUMBERS", numbers)
        assert link_visits(network, start, 4) == pytest.approx(at_once, abs=1e-15)
