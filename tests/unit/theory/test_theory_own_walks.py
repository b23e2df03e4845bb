"""The theory of walks that users bring: computed from what they declare, and not known where they
declare nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import own_walks
from inspected import said
from mtcd.core.errors import ConfigError
from mtcd.core.terminal.findings import NOT_KNOWN
from mtcd.network.topology import Network, make_network
from mtcd.network.walks import NOWHERE, WALKS, Walk, make_walk
from mtcd.network.walks.facts import Chain, is_irreducible, stationary
from mtcd.network.walks.walk import declares_transitions, facts_of
from mtcd.theory.mixing import longest_hitting_time, mixing_time, spectral_gap
from mtcd.theory.visits import least_visits, uniform_roam, walk_bound
from problems import networks


def network_of(kind: str, K: int) -> Network:
    return make_network(kind, [f"client_{k}" for k in range(K)])


def declared_chain(network: Network, walk: Walk) -> Chain:
    facts = facts_of(walk, network, range(network.size))
    chain = facts and facts.chain()
    assert chain is not None
    return chain


@pytest.mark.parametrize("kind", own_walks.UNDECLARED)
def test_a_walk_that_declares_nothing_is_not_known(kind: type[Walk]) -> None:
    path = network_of("path", 5)
    walk = kind(path)
    assert facts_of(walk, path, range(5)) is None
    with pytest.raises(
        ConfigError, match=f"not known for {kind.__name__}: override Walk.transitions"
    ):
        least_visits(path, [uniform_roam(range(5))], 9, [walk])
    assert walk_bound(path, [uniform_roam(range(5))], 9, [walk]) == 0.0


def test_every_built_in_walk_and_those_that_hop_alike_are_known() -> None:
    path = network_of("path", 5)
    assert all(facts_of(make_walk(kind, path), path, range(5)) for kind in WALKS)
    roams = [uniform_roam(range(5))]
    assert least_visits(path, roams, 4, [own_walks.RenamedLazy(path)]) == least_visits(
        path, roams, 4
    )


@settings(deadline=None, max_examples=25)
@given(st.data(), st.integers(2, 5), st.integers(1, 5))
def test_visits_of_a_declared_walk_against_all_its_trajectories(
    data: st.DataObject, size: int, S: int
) -> None:
    network = data.draw(networks(size, connected=True))
    walk = own_walks.Sticky(network)
    # draws in the middle of cells: every choice of up to 4 neighbours gets its share
    cells = 4 * 12
    draws = (np.arange(cells) + 0.5) / cells
    seen = np.zeros(size)
    for start in range(size):
        ways = {(start,): 1.0 / size}
        for _ in range(S - 1):
            longer: dict[tuple[int, ...], float] = {}
            for way, p in ways.items():
                previous = way[-2] if len(way) > 1 else NOWHERE
                for draw in draws:
                    there = walk.next(way[-1], previous, start, 0, len(way), float(draw))
                    longer[(*way, there)] = longer.get((*way, there), 0.0) + p / cells
            ways = longer
        for way, p in ways.items():
            seen[list(set(way))] += p
    found = least_visits(network, [uniform_roam(range(size))], S, [walk])
    assert found.per_token == pytest.approx(seen.min(), abs=1e-9)


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 8), st.integers(0, 999))
def test_the_long_run_of_any_chain(size: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    P = rng.random((size, size)) * (rng.random((size, size)) < 0.5) + 1e-9 * np.eye(size)
    P /= P.sum(axis=1, keepdims=True)
    sparse = sp.csr_array(P)
    share = stationary(sparse)
    if is_irreducible(sparse):
        np.testing.assert_allclose(share @ P, share, atol=1e-9)
        assert share.sum() == pytest.approx(1.0)
        assert (share > 0).all()
    else:
        assert not share.any()


def test_a_declared_walk_gets_its_own_facts() -> None:
    path, cycle = network_of("path", 6), network_of("cycle", 6)
    sticky = declared_chain(path, own_walks.Sticky(path))
    # in proportion to the degree
    np.testing.assert_allclose(sticky.share, np.array([1, 2, 2, 2, 2, 1]) / 10)
    # from end to end of a path, 25 hops without staying, each of which takes 4 on average
    assert longest_hitting_time(sticky) == pytest.approx(4 * 25)
    around = declared_chain(cycle, own_walks.Around(cycle))
    np.testing.assert_allclose(around.share, np.full(6, 1 / 6))
    assert longest_hitting_time(around) == pytest.approx(2 * 5)
    with pytest.raises(ConfigError, match="not reversible"):
        spectral_gap(*around)
    t, Pt = 0, np.eye(6)
    while np.abs(Pt - 1 / 6).sum(axis=1).max() / 2 > 0.25:
        t, Pt = t + 1, Pt @ around.P.toarray()
    assert mixing_time(*around) == t


def test_a_walk_that_never_returns_never_mixes() -> None:
    class OneWay(own_walks.Sticky):
        def next(
            self, client: int, previous: int, start: int, t: int, hop: int, draw: float
        ) -> int:
            return min(client + 1, 3)

        def transitions(self, client: int) -> dict[int, float]:
            return {min(client + 1, 3): 1.0}

    path = network_of("path", 4)
    chain = declared_chain(path, OneWay(path))
    assert declares_transitions(OneWay(path))
    assert not chain.share.any()
    assert mixing_time(*chain) == longest_hitting_time(chain) == float("inf")


def test_a_chain_of_period_three_never_mixes() -> None:
    P = sp.csr_array(np.roll(np.eye(3), 1, axis=1))
    assert mixing_time(P, np.full(3, 1 / 3)) == float("inf")


def test_tokens_with_walks_of_their_own_are_told_apart() -> None:
    path = network_of("path", 3)
    quick, slow = own_walks.Sticky(path), own_walks.Sticky(path)
    quick.stays = 0.0
    roam = uniform_roam(range(3))
    one, other = (least_visits(path, [roam], 2, [walk]).per_token for walk in (quick, slow))
    both = least_visits(path, [roam, roam], 2, [quick, slow])
    assert both.per_token == pytest.approx(min(one, other))
    assert both == least_visits(path, [roam, roam], 2, [slow, quick])
    assert both.any_token > max(one, other)


@pytest.mark.parametrize(
    ("kind", "message"),
    [(own_walks.NotNearby, "is no neighbour"), (own_walks.TooLikely, "add up to 1")],
)
def test_wrong_declarations_are_refused(kind: type[Walk], message: str) -> None:
    path = network_of("path", 5)
    with pytest.raises(ConfigError, match=message):
        least_visits(path, [uniform_roam(range(5))], 3, [kind(path)])


def test_negative_probabilities_are_refused_though_they_add_up_to_1() -> None:
    class Negative(own_walks.Sticky):
        def transitions(self, client: int) -> dict[int, float]:
            return {client: -0.5, client + 1 if client < 2 else client - 1: 1.5}

    path = network_of("path", 3)
    with pytest.raises(ConfigError, match="must be probabilities, 0 or more"):
        least_visits(path, [uniform_roam(range(3))], 3, [Negative(path)])


def test_the_walk_bound_asks_for_every_link_to_be_taken_often_enough() -> None:
    path, roams = network_of("path", 3), [uniform_roam(range(3))]
    often, seldom = own_walks.Sticky(path), own_walks.Sticky(path)
    often.stays = 1 / 3
    assert (
        walk_bound(path, roams, 4, [often])
        == walk_bound(path, roams, 4)
        == pytest.approx(3.0**-4 / 3)
    )
    assert walk_bound(path, roams, 4, [seldom]) == 0.0
    assert least_visits(path, roams, 4, [often]).per_token >= 3.0**-4 / 3


@pytest.fixture
def inspected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Any:
    def ask(walk: type[Walk], **config: Any) -> dict[str, dict[str, Any]]:
        monkeypatch.setitem(WALKS._classes, "own", walk)
        assert said(tmp_path, "--json", **config) == 0
        found: dict[str, dict[str, Any]] = json.loads(capsys.readouterr().out)["theory"]
        return found

    return ask


@pytest.mark.parametrize("kind", own_walks.UNDECLARED)
def test_inspect_says_that_it_does_not_know_the_walk(inspected: Any, kind: type[Walk]) -> None:
    found = inspected(kind, method="kind: mtcd, tokens: 2, hops: 6, walk: own")
    for key in ("pi", "pi_any_token", "mixing_time", "hitting_time", "cover", "guarantee"):
        assert (found[key]["value"], found[key]["shown"]) == (None, NOT_KNOWN)
        assert "Walk.transitions" in found[key]["meaning"]
    # of the start alone, whatever the walk
    assert found["pi_start_bound"]["value"] == pytest.approx(1 / 4)
    assert not {"pi_walk_bound", "spectral_gap", "tour_length"} & set(found)
    found = inspected(kind, method="kind: stcd, walk: own")
    assert found["guarantee_stcd"]["shown"] == NOT_KNOWN


def test_inspect_computes_with_what_a_walk_declares(inspected: Any) -> None:
    found = inspected(own_walks.Sticky, K=2, method="kind: mtcd, hops: 3, walk: own")
    assert found["pi"]["value"] == pytest.approx(1 - 0.75**2 / 2)
    assert found["hitting_time"]["value"] == pytest.approx(4.0)
    around = inspected(own_walks.Around, K=5, kind="cycle", method="kind: stcd, walk: own")
    assert around["spectral_gap"]["shown"] == "none"
    assert around["mixing_time"]["value"] > 0
    assert around["guarantee_stcd"]["value"] > 0


def test_inspect_of_clusters_with_a_declared_walk(inspected: Any) -> None:
    found = inspected(
        own_walks.Sticky, method="kind: mtcd, hops: 2, walk: own, clusters: [[0], [1, 2, 3]]"
    )
    assert found["pi"]["value"] == pytest.approx(1 / 3 + 1 / 3 / 8)  # an end, from the middle
