"""Visits of every walk: against the walks themselves, and against all that can happen on small
networks."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from enumerated_walks import enumerated, network_of, starts
from mtcd.methods.mtcd.mtcd import MTCD
from mtcd.network.tours import spanning_tree
from mtcd.network.walks import WALKS, make_walk, non_backtracking
from mtcd.network.walks.metropolis import metropolis_chain
from mtcd.network.walks.non_backtracking import link_visits
from mtcd.network.walks.random_tour import detours, random_tour_visits, random_tour_work
from mtcd.network.walks.tour import tour_visits
from mtcd.theory import visits
from mtcd.theory.visits import (
    Roam,
    least_visits,
    start_bound,
    token_visits,
    uniform_roam,
    visit_probabilities,
    walk_bound,
)
from problems import networks
from waiting import computing_at_most


@pytest.mark.parametrize("targets", range(1, 8))
def test_however_many_clients_are_looked_at_at_once(
    targets: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    P = metropolis_chain(network_of("path", 7)).P
    start = [0.4, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1]
    expected = visit_probabilities(P, start, 4)
    monkeypatch.setattr(visits, "TARGETS", targets)
    np.testing.assert_allclose(visit_probabilities(P, start, 4), expected, rtol=1e-12)


@pytest.mark.parametrize("kind", ["metropolis", "non-backtracking"])
@settings(deadline=None, max_examples=30)
@given(data=st.data(), size=st.integers(1, 5), S=st.integers(1, 5))
def test_visits_against_all_walks(kind: str, data: st.DataObject, size: int, S: int) -> None:
    network, start = data.draw(networks(size)), data.draw(starts(size))
    expected = enumerated(network, start, S, kind)
    found = token_visits(network, Roam(tuple(range(size)), start), make_walk(kind, network), S)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def all_random_tours(tree: dict[int, list[int]], root: int, S: int) -> Iterator[list[int]]:
    """One tour for each way to order the branches of every client: all equally likely."""
    for orders in itertools.product(*(itertools.permutations(tree[k]) for k in sorted(tree))):
        walk, previous = [root], -1
        for _ in range(min(S, 2 * (len(tree) - 1)) - 1):
            here = walk[-1]
            branches = orders[here]
            after = branches.index(previous) + 1 if previous in branches else 0
            walk.append(branches[after % len(branches)])
            previous = here
        yield walk


@settings(deadline=None, max_examples=40)
@given(st.data(), st.integers(2, 6), st.integers(1, 12))
def test_random_tours_against_all_orders(data: st.DataObject, size: int, S: int) -> None:
    network, start = data.draw(networks(size, connected=True)), data.draw(starts(size))
    tree, expected = spanning_tree(network, range(size)), np.zeros(size)
    for root in np.flatnonzero(start):
        tours = list(all_random_tours(tree, int(root), S))
        for tour in tours:
            expected[list(set(tour))] += start[root] / len(tours)
    found = random_tour_visits([tree[k] for k in range(size)], start, S)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_hops_before_a_branch_by_hand() -> None:
    # of three branches, each is first, second or third with probability 1/3; the other two have 1
    # and 3 clients
    expected = np.zeros(9)
    expected[[0, 2, 6, 8]] = 1 / 3, 1 / 6, 1 / 6, 1 / 3
    np.testing.assert_allclose(detours((1, 3), 99), expected, atol=1e-15)
    np.testing.assert_allclose(detours((1, 3), 8), expected[:7], atol=1e-15)  # 8 visits are 7 hops
    # what is later than S is of no interest
    np.testing.assert_allclose(detours((1, 3), 7), expected[:7], atol=1e-15)
    many = detours((1,) * 300, 10_000)  # any number of branches before: all equally likely
    np.testing.assert_allclose(many[::2], 1 / 301, rtol=1e-9)


@pytest.mark.parametrize("walk", sorted(WALKS))
@pytest.mark.parametrize(
    ("settings_", "network", "S"),
    [
        ({"tokens": 2}, "grid", 7),
        ({"tokens": 2, "combine": "cluster"}, "path", 4),
        ({"tokens": 2, "start": ["c0", {"c1": 1.0, "c4": 3.0}]}, "odd", 9),
        ({"clusters": [["c7", "c2", "c4", "c3"], ["c0", "c1"], ["c6", "c5"]]}, "odd", 3),
    ],
)
def test_visits_against_the_tokens_of_the_library(
    settings_: dict, network: str, S: int, walk: str
) -> None:
    graph, iterations = network_of(network, 8), 4000
    method = MTCD(hops=S, walk=walk, stepsize=1.0, **settings_)
    plan = method.plan(5, 1, graph, seed=3)
    roaming, clusters = plan.roaming, method.token_clusters(graph, 3)
    each, either = np.zeros((plan.tokens, 8)), np.zeros(8)
    for t in range(iterations):
        seen: set[int] = set()
        for token in range(plan.tokens):
            way = [roaming.first(token, t)]
            for hop in range(1, S):
                way.append(roaming.next(token, t, hop, way[-1], way[-2] if hop > 1 else -1))
            each[token, list(set(way))] += 1
            seen.update(way)
        either[list(seen)] += 1
    roams = [uniform_roam(cluster) for cluster in clusters or [tuple(range(8))] * plan.tokens]
    if method.start is not None:
        roams = [
            Roam(tuple(range(8)), (1.0, *7 * (0.0,))),
            Roam(tuple(range(8)), (0.0, 0.25, 0.0, 0.0, 0.75, 0.0, 0.0, 0.0)),
        ]
    expected = np.zeros((plan.tokens, 8))
    for token, roam in enumerate(roams):
        support = {k for k, p in zip(*roam, strict=True) if p}
        assert set(roaming.starts[token].support()) == support
        visits_of_token = token_visits(graph, roam, roaming.walks[token], S)
        expected[token, list(roam.clients)] = visits_of_token
    any_token = 1 - np.prod(1 - expected, axis=0)
    for counts, p in ((each, expected), (either, any_token)):
        error = np.abs(counts / iterations - p)
        assert (error <= 4.5 * np.sqrt(p * (1 - p) / iterations) + 1e-12).all()
    pi = least_visits(graph, roams, S, roaming.walks)
    assert pi.any_token == pytest.approx(any_token.min())
    least = min(expected[token, list(roam.clients)].min() for token, roam in enumerate(roams))
    assert pi.per_token == pytest.approx(least)


@settings(deadline=None)
@given(st.data(), st.integers(1, 7), st.integers(1, 14), st.sampled_from(sorted(WALKS)))
def test_bounds_are_below_and_a_whole_tour_is_certain(
    data: st.DataObject, size: int, S: int, kind: str
) -> None:
    network = data.draw(networks(size, connected=True))
    walk, roam = make_walk(kind, network), Roam(tuple(range(size)), data.draw(starts(size)))
    pi = least_visits(network, [roam, roam], S, [walk, walk])
    each = token_visits(network, roam, walk, S)
    assert pi.per_token == each.min()
    assert pi.any_token == pytest.approx(1 - (1 - each.min()) ** 2)
    assert start_bound([roam]) <= pi.per_token * (1 + 1e-12)
    if walk.length is None:
        low = walk_bound(network, [roam], S)
        assert low <= pi.per_token * (1 + 1e-12)
        assert (low > 0) == (nx.diameter(network.graph) < S)
    elif walk.length <= S:
        assert pi.per_token == 1.0


def test_by_hand_on_a_cycle_a_path_and_a_complete_network() -> None:
    cycle, path, all_linked = (network_of(kind, 10) for kind in ("cycle", "path", "complete"))
    everywhere = uniform_roam(range(10))
    for kind in ("non-backtracking", "tour"):  # S different clients, and all of them equally likely
        assert least_visits(
            cycle, [everywhere], 4, [make_walk(kind, cycle)]
        ).per_token == pytest.approx(0.4)
        assert least_visits(
            cycle, [everywhere], 10, [make_walk(kind, cycle)]
        ).per_token == pytest.approx(1.0)
    # the tour 0 1 2 ... 8 9 8 ... 1: the end 0 is visited within 10 only from itself and from 9
    assert least_visits(
        path, [everywhere], 10, [make_walk("tour", path)]
    ).per_token == pytest.approx(0.2)
    assert token_visits(path, everywhere, make_walk("tour", path), 10)[9] == pytest.approx(1.0)
    # the spanning tree is the path: from k, the end 0 is reached in time if the token turns that
    # way first (1/2)
    expected = 1 / 10 + 1 / 10 + 8 / 10 / 2  # from 0; from 9; from 1 to 8
    ends = token_visits(path, everywhere, make_walk("random-tour", path), 10)
    assert ends[0] == pytest.approx(expected)
    # no visit in four: 9/10, then 8/9 away from the start, then 7/8 twice as the one before is not
    # taken again
    pi = least_visits(
        all_linked, [everywhere], 4, [make_walk("non-backtracking", all_linked)]
    ).per_token
    assert pi == pytest.approx(1 - 9 / 10 * 8 / 9 * (7 / 8) ** 2)


def test_blocks_of_targets_and_orders_of_clients_change_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    network, start = network_of("odd", 8), np.arange(1, 9) / 36
    whole = link_visits(network, start, 6)
    monkeypatch.setattr(non_backtracking, "NUMBERS", 40)
    np.testing.assert_allclose(link_visits(network, start, 6), whole, rtol=1e-13)
    order = (3, 7, 0, 2, 5, 1, 6, 4)
    roam = Roam(order, tuple(start[list(order)]))
    for kind in WALKS:
        here = token_visits(
            network, Roam(tuple(range(8)), tuple(start)), make_walk(kind, network), 6
        )
        there = token_visits(network, roam, make_walk(kind, network), 6)
        np.testing.assert_allclose(there, here[list(order)], rtol=1e-12)


def test_what_cannot_be_reached_has_probability_0() -> None:
    path = network_of("path", 12)
    end = Roam(tuple(range(12)), (1.0,) + 11 * (0.0,))
    for kind in WALKS:
        p = token_visits(path, end, make_walk(kind, path), 6)
        assert (p[:6] > 0).all()
        assert (p[6:] == 0).all()


def test_metropolis_probabilities_are_those_of_a_walk() -> None:
    network = network_of("erdos-renyi", 30, p=0.2)
    P = metropolis_chain(network).P
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    np.testing.assert_allclose((P - P.T).toarray(), 0.0)
    assert metropolis_chain(network_of("cycle", 7)).P.diagonal().tolist() == [0.0] * 7
    assert metropolis_chain(network_of("empty", 2)).P.toarray().tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert (
        visit_probabilities(metropolis_chain(network_of("cycle", 5)).P, np.eye(5)[0], 2)[1] == 0.5
    )
    assert tour_visits([0], [1.0], 3).tolist() == [1.0]


@pytest.mark.parametrize("kind", sorted(WALKS))
def test_a_thousand_clients_take_seconds(kind: str) -> None:
    path = network_of("path", 1000)
    walk = make_walk(kind, path)
    with computing_at_most(20):  # 3 s at most
        pi = least_visits(path, [uniform_roam(range(1000))], 300, [walk])
    assert 0.0009 < pi.per_token < 0.3


def test_the_work_of_random_tours_is_nothing_where_a_whole_tour_fits_and_grows_with_the_hops() -> (
    None
):
    tree = [[1, 2], [0], [0, 3], [2]]
    assert [random_tour_work(tree, S) for S in (6, 7, 100)] == [0.0] * 3
    assert 0 < random_tour_work(tree, 3) < random_tour_work(tree, 5)
