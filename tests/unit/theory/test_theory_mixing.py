"""How walks get about: gap, mixing time, hitting and cover times, against powers, simulation and
closed forms."""

from __future__ import annotations

import math

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from mtcd.core.errors import ConfigError
from mtcd.methods.mtcd.mtcd import STCD
from mtcd.network import spectrum
from mtcd.network.edges import network_from_edges
from mtcd.network.topology import Network, make_network
from mtcd.network.walks.facts import Chain
from mtcd.network.walks.lazy import lazy_chain
from mtcd.network.walks.metropolis import metropolis_chain
from mtcd.network.walks.non_backtracking import (
    DirectedLinks,
    NonBacktrackingWalk,
    longest_link_hitting_time,
)
from mtcd.network.walks.random_tour import RandomTourWalk, random_tour_cover, random_tour_wait
from mtcd.network.walks.tour import TourWalk, tour_cover, tour_wait
from mtcd.theory import mixing
from mtcd.theory.mixing import (
    cover_bound,
    longest_hitting_time,
    mixing_bounds,
    mixing_time,
    spectral_gap,
)
from problems import networks

CHAINS = {"lazy": lazy_chain, "metropolis": metropolis_chain}


def network_of(kind: str, K: int, **more: float) -> Network:
    return make_network(kind, [f"c{k}" for k in range(K)], **more)


def brute_mixing(chain: Chain, distance: float) -> float:
    """Hop by hop; the long run is what the average over two hops tends to."""
    P, K = chain.P.toarray(), chain.share.size
    twice = np.linalg.matrix_power(P, 10_000)
    limit = (twice + twice @ P) / 2
    for t in range(5000):
        Pt = np.linalg.matrix_power(P, t)
        if max(np.abs(Pt[k] - limit[k]).sum() / 2 for k in range(K)) <= distance + 1e-12:
            return t
        if np.allclose(Pt, Pt @ P @ P, atol=1e-13):  # it alternates for ever
            return math.inf
    raise AssertionError


@pytest.mark.parametrize("make", CHAINS.values(), ids=list(CHAINS))
@settings(deadline=None, max_examples=50)
@given(data=st.data(), size=st.integers(1, 8), distance=st.sampled_from([0.25, 0.1, 0.01]))
def test_mixing_time_against_powers(make, data: st.DataObject, size: int, distance: float) -> None:
    chain = make(data.draw(networks(size, connected=True)))
    P, share = chain
    np.testing.assert_allclose(share @ P, share, atol=1e-14)
    hops, gap = mixing_time(P, share, distance), spectral_gap(P, share)
    assert hops == brute_mixing(chain, distance)
    moduli = sorted(np.abs(np.linalg.eigvals(P.toarray())))
    assert gap == pytest.approx(1 - moduli[-2] if size > 1 else 1.0, abs=1e-6)
    low, high = mixing_bounds(gap, share.min(), distance)
    assert hops == high == math.inf or low - 1e-6 <= hops <= math.ceil(high + 1e-6)


@pytest.mark.parametrize("make", CHAINS.values(), ids=list(CHAINS))
@settings(deadline=None, max_examples=50)
@given(data=st.data(), size=st.integers(1, 9))
def test_mixing_to_half_the_least_share_against_powers(
    make, data: st.DataObject, size: int
) -> None:
    chain = make(data.draw(networks(size, connected=True)))
    P, share = chain
    quarter, tau = mixing.mixing_times(P, share, [0.25, share.min() / 2])
    assert (quarter, tau) == (brute_mixing(chain, 0.25), brute_mixing(chain, share.min() / 2))
    # what equation (5) takes from it: after tau hops everybody is visited half as often
    if math.isfinite(tau):
        assert np.linalg.matrix_power(P.toarray(), int(tau)).min() >= share.min() / 2 - 1e-9
        assert mixing._by_squaring(P, share, share.min() / 2) == tau or tau == 0


@pytest.mark.parametrize("K", [3, 10, 400])
def test_mixing_to_half_the_least_share_of_complete_networks(K: int) -> None:
    P, share = lazy_chain(network_of("complete", K))
    assert mixing_time(P, share, share.min() / 2) == 1  # a hop leads anywhere
    # P^t = (1 - c) J/K + c I, c = (-1/(K - 1))^t: at a distance of |c| (K - 1)/K, which 1/(2K) asks
    # to be (1/2)/(K - 1)
    P, share = metropolis_chain(network_of("complete", K))
    assert mixing_time(P, share, share.min() / 2) == 2


@pytest.mark.parametrize(
    ("K", "make", "stays"),
    [
        (9, lazy_chain, 1 / 3),
        (30, lazy_chain, 1 / 3),
        (401, lazy_chain, 1 / 3),
        (31, metropolis_chain, 0.0),
    ],
)
def test_mixing_to_half_the_least_share_of_a_cycle(K: int, make, stays: float) -> None:
    """In closed form: (P^t)_0j = 1/K sum over m of (stays + (1 - stays) cos(2 pi m/K))^t cos(2 pi m
    j/K)."""
    values = stays + (1 - stays) * np.cos(2 * np.pi * np.arange(K) / K)

    def distance(t: int) -> float:
        return float(np.abs(np.fft.fft(values**t).real / K - 1 / K).sum()) / 2

    tau = int(mixing_time(*make(network_of("cycle", K)), 1 / (2 * K)))
    assert distance(tau) <= 1 / (2 * K) + 1e-12
    assert distance(tau - 1) > 1 / (2 * K)


def test_mixing_times_take_one_decomposition(monkeypatch: pytest.MonkeyPatch) -> None:
    """Squaring a matrix of 1,000 clients would take some fifty products; the eigenvectors serve all
    hops."""
    calls, eigh = [], np.linalg.eigh
    monkeypatch.setattr(np.linalg, "eigh", lambda M: calls.append(M.shape) or eigh(M))
    monkeypatch.setattr(mixing, "_by_squaring", None)
    quarter, tau = mixing.mixing_times(*lazy_chain(network_of("path", 300)), [0.25, 1e-3])
    assert calls == [(300, 300)]
    assert quarter < tau


def brute_hitting(P: np.ndarray, into: np.ndarray) -> np.ndarray:
    """Hops to the states ``into``: one linear system, by least squares."""
    away = ~into
    hops = np.zeros(len(P))
    hops[away] = np.linalg.lstsq(
        np.eye(away.sum()) - P[np.ix_(away, away)], np.ones(away.sum()), rcond=None
    )[0]
    return hops


@pytest.mark.parametrize("make", CHAINS.values(), ids=list(CHAINS))
@settings(deadline=None, max_examples=30)
@given(data=st.data(), size=st.integers(1, 8))
def test_hitting_times_against_a_system_per_client(make, data: st.DataObject, size: int) -> None:
    chain = make(data.draw(networks(size, connected=True)))
    expected = max(
        brute_hitting(chain.P.toarray(), np.arange(size) == j).max() for j in range(size)
    )
    assert longest_hitting_time(chain) == pytest.approx(expected, rel=1e-8, abs=1e-12)


def test_hitting_times_in_closed_form() -> None:
    K = 40
    # from end to end of a path: the Metropolis walk stays at an end with 1/2, so K (K - 1) hops
    assert longest_hitting_time(metropolis_chain(network_of("path", K))) == pytest.approx(
        K * (K - 1)
    )
    assert longest_hitting_time(metropolis_chain(network_of("cycle", K))) == pytest.approx(
        K / 2 * K / 2
    )
    assert longest_hitting_time(lazy_chain(network_of("cycle", K))) == pytest.approx(
        K / 2 * K / 2 * 3 / 2
    )
    assert longest_hitting_time(lazy_chain(network_of("complete", K))) == pytest.approx(K)
    assert longest_hitting_time(metropolis_chain(network_of("complete", K))) == pytest.approx(K - 1)
    # from beside an end, away from it: to the other end and back
    assert longest_link_hitting_time(network_of("path", K)) == pytest.approx(2 * K - 3)
    assert longest_link_hitting_time(network_of("cycle", K)) == pytest.approx(K - 1)
    # coming from the client to be hit: a hop that cannot lead back, then a chance of 1/(K - 2) at
    # every hop
    assert longest_link_hitting_time(network_of("complete", 9)) == pytest.approx(1 + 7)
    assert longest_link_hitting_time(network_of("path", 1)) == 0.0
    apart = network_of("empty", 3)
    assert longest_hitting_time(lazy_chain(apart)) == longest_link_hitting_time(apart) == math.inf


@settings(deadline=None, max_examples=30)
@given(st.data(), st.integers(2, 7))
def test_the_chain_on_links_is_the_walk(data: st.DataObject, size: int) -> None:
    network = data.draw(networks(size, connected=True))
    links, walk, draws = (
        DirectedLinks(network),
        NonBacktrackingWalk(network),
        np.arange(60) / 60 + 1e-9,
    )
    Q = links.matrix()
    for i, (before, here) in enumerate(zip(links.tails, links.heads, strict=True)):
        # 60: a fair share for up to 6 choices
        goes = [walk.next(here, before, 0, 0, 2, draw) for draw in draws]
        for j in np.flatnonzero(links.tails == here):
            assert Q[i, j] == pytest.approx(goes.count(links.heads[j]) / 60)
    assert Q.sum() == pytest.approx(links.count)
    assert math.isfinite(longest_link_hitting_time(network))


def covered(next_of, start: int, K: int, rng: np.random.Generator) -> int:
    seen, here, previous, hops = {start}, start, -1, 0
    while len(seen) < K:
        hops += 1
        here, previous = next_of(here, previous, start, hops, rng.random()), here
        seen.add(here)
    return hops


@pytest.mark.parametrize("kind", ["lazy", "metropolis", "non-backtracking"])
def test_walks_cover_within_the_bound(kind: str) -> None:
    network, rng = network_of("grid", 9), np.random.default_rng(0)
    roaming = STCD(walk=kind, stepsize=1.0).plan(5, 1, network, 0).roaming
    walk = roaming.walks[0]
    longest = (
        longest_hitting_time(CHAINS[kind](network))
        if kind in CHAINS
        else longest_link_hitting_time(network)
    )
    for start in (0, 1, 4):
        mean = np.mean(
            [
                covered(lambda c, p, s, hop, u: walk.next(c, p, s, 0, hop, u), start, 9, rng)
                for _ in range(400)
            ]
        )
        assert longest / 2 < mean < cover_bound(longest, 9)


@settings(deadline=None, max_examples=40)
@given(st.data(), st.integers(1, 7), st.integers(0, 50))
def test_tours_wait_and_cover_as_said(data: st.DataObject, size: int, seed: int) -> None:
    network = data.draw(networks(size, connected=True))
    for walk in (TourWalk(network), RandomTourWalk(network, seed=seed)):
        waits, covers = [], []
        for start in range(size):
            way = [start]
            for hop in range(1, 6 * (walk.length or 0) + 1):
                way.append(walk.next(way[-1], way[-2] if hop > 1 else -1, start, 0, hop, 0.0))
            waits += [
                max(np.diff([i for i, k in enumerate(way) if k == client]))
                for client in range(size)
            ]
            covers.append(max(way.index(client) for client in range(size)))
        if isinstance(walk, TourWalk):
            assert (max(waits), max(covers)) == (tour_wait(walk.tour), tour_cover(walk.tour))
        else:
            assert max(waits) <= random_tour_wait(size)
            assert max(covers) <= random_tour_cover(size)


def test_random_tours_reach_their_worst() -> None:
    network, waits, covers = network_of("star", 4), set(), set()
    for seed in range(60):
        walk, way = RandomTourWalk(network, seed=seed), [0]
        for hop in range(1, 13):
            way.append(walk.next(way[-1], way[-2] if hop > 1 else -1, 0, 0, hop, 0.0))
        waits.update(np.diff([i for i, k in enumerate(way) if k == 1]))
        covers.add(max(way.index(client) for client in range(4)))
    assert (max(waits), max(covers)) == (random_tour_wait(4), random_tour_cover(4)) == (10, 5)


def test_gap_of_a_cycle_in_closed_form() -> None:
    for K in (5, 40, 1000, 2001):
        expected = 2 / 3 * (1 - math.cos(2 * math.pi / K))
        assert spectral_gap(*lazy_chain(network_of("cycle", K))) == pytest.approx(
            expected, rel=1e-6
        )
        # without staying: even cycles alternate for ever, odd ones nearly so
        expected = 1 - math.cos(math.pi / K) if K % 2 else 0.0
        assert spectral_gap(*metropolis_chain(network_of("cycle", K))) == pytest.approx(
            expected, rel=1e-5
        )


@pytest.mark.parametrize("make", CHAINS.values(), ids=list(CHAINS))
@pytest.mark.parametrize("kind", ["path", "star", "grid", "erdos-renyi", "complete"])
def test_sparse_and_dense_gaps_agree(monkeypatch: pytest.MonkeyPatch, kind: str, make) -> None:
    P, share = make(network_of(kind, 60, **({"p": 0.2} if kind == "erdos-renyi" else {})))
    dense = spectral_gap(P, share)
    monkeypatch.setattr(mixing, "DENSE_LIMIT", 10)
    assert spectral_gap(P, share) == pytest.approx(dense, rel=1e-6, abs=1e-9)


def test_the_least_eigenvalue_counts_too(monkeypatch: pytest.MonkeyPatch) -> None:
    P, share = lazy_chain(network_from_bipartite(30))
    values = np.sort(np.linalg.eigvals(P.toarray()).real)
    assert -values[0] > values[-2] + 0.1  # it hops from side to side
    for limit in (spectrum.DENSE_LIMIT, 10):
        monkeypatch.setattr(mixing, "DENSE_LIMIT", limit)
        assert spectral_gap(P, share) == pytest.approx(1 + values[0], rel=1e-6)


def network_from_bipartite(half: int) -> Network:
    left, right = tuple(range(half)), tuple(range(half, 2 * half))
    return Network(tuple(f"c{k}" for k in range(2 * half)), (right,) * half + (left,) * half)


def test_pieces_never_mix_and_other_walks_are_refused() -> None:
    for make in CHAINS.values():
        P, share = make(network_of("empty", 4))
        assert spectral_gap(P, share) == 0.0
        assert mixing_time(P, share) == math.inf
    assert mixing_bounds(0.0, 0.25) == (math.inf, math.inf)
    around = sp.csr_array(np.roll(np.eye(4), 1, axis=1) / 2 + np.eye(4) / 2)  # one way round
    with pytest.raises(ConfigError, match="not reversible"):
        spectral_gap(around, np.full(4, 0.25))


def test_a_walk_counts_as_mixed_at_a_distance_of_a_quarter_unless_said_otherwise() -> None:
    chain = lazy_chain(network_of("path", 6))
    assert mixing_time(chain.P, chain.share) == brute_mixing(chain, 0.25)
    assert mixing_bounds(0.1, 0.02) == mixing_bounds(0.1, 0.02, 0.25)


def test_distances_that_are_just_reached_count() -> None:
    """A Metropolis walk on three clients is 2/3, 1/3, 1/6 away; a walk one way round a cycle of
    four has binomial probabilities: 3/4, 1/2, 1/4, 1/4, 1/8 away."""
    P, share = metropolis_chain(network_of("complete", 3))
    assert mixing.mixing_times(P, share, [0.7, 2 / 3, 0.66, 1 / 3, 0.33, 1 / 6]) == [
        0,
        0,
        1,
        1,
        2,
        2,
    ]
    around = sp.csr_array(np.roll(np.eye(4), 1, axis=1) / 2 + np.eye(4) / 2)
    assert mixing.mixing_times(around, np.full(4, 0.25), [0.75, 0.7, 0.5, 0.49, 0.25, 0.2, 0.125]) == [
        0, 1, 1, 2, 2, 4, 4
    ]  # fmt: skip
    for distance, hops in ((0.5, 1), (0.25, 2), (0.2, 4), (0.125, 4)):
        assert mixing._by_squaring(around, np.full(4, 0.25), distance) == hops


def test_mixing_bounds_by_hand() -> None:
    assert mixing_bounds(0.2, 0.05, 0.1) == (
        pytest.approx(4 * math.log(5)),
        pytest.approx(5 * math.log(200)),
    )
    assert mixing_bounds(0.9, 0.5) == (
        pytest.approx(math.log(2) / 9),
        pytest.approx(math.log(8) / 0.9),
    )
    assert mixing_bounds(0.5, 0.5, 0.75)[0] == 0.0  # no walk needs less than no hop
    assert mixing_bounds(1.0, 1.0, 0.25) == (0.0, pytest.approx(math.log(4)))


def test_the_bound_of_matthews_by_hand() -> None:
    assert [cover_bound(6.0, K) for K in (1, 2, 3, 4)] == [0.0, 6.0, 9.0, 11.0]
    assert cover_bound(math.inf, 1) == 0.0


def test_the_least_eigenvalue_counts_where_it_is_just_the_largest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A bipartite network of degree 8: 1 - |lambda_K| = 2/9. Its second eigenvalue is little
    below."""
    half, shifts = 23, [2, 5, 6, 9, 10, 13, 17, 22]
    graph = nx.Graph([(k, half + (k + shift) % half) for shift in shifts for k in range(half)])
    P, share = lazy_chain(network_from_edges(graph, [f"c{k}" for k in range(2 * half)]))
    values = np.sort(np.linalg.eigvalsh(P.toarray()))
    assert values[-2] < 7 / 9 == pytest.approx(-values[0])
    monkeypatch.setattr(mixing, "DENSE_LIMIT", 10)
    assert spectral_gap(P, share) == pytest.approx(2 / 9, rel=1e-6)
