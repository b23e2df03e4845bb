"""Visits of the lazy walk: against simulation and enumeration of all walks."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from enumerated_walks import enumerated, network_of, starts
from mtcd.core.errors import ConfigError
from mtcd.network import spectrum
from mtcd.network.clusters import find_clusters
from mtcd.network.walks.facts import inside
from mtcd.network.walks.lazy import lazy_chain
from mtcd.theory.visits import (
    Roam,
    least_visits,
    start_bound,
    uniform_roam,
    visit_probabilities,
    walk_bound,
)
from problems import networks


@settings(deadline=None, max_examples=40)
@given(st.data(), st.integers(1, 4), st.integers(1, 5), st.booleans())
def test_visits_against_all_walks(data: st.DataObject, size: int, S: int, dense: bool) -> None:
    network, start = data.draw(networks(size)), data.draw(starts(size))
    P = lazy_chain(network).P
    found = visit_probabilities(P.toarray() if dense else P, start, S)
    np.testing.assert_allclose(found, enumerated(network, start, S, "lazy"), rtol=1e-12)


@settings(deadline=None, max_examples=40)
@given(st.data(), st.integers(2, 4), st.integers(1, 4))
def test_several_tokens_against_all_walks(data: st.DataObject, size: int, S: int) -> None:
    network, everyone = data.draw(networks(size)), tuple(range(size))
    roams = [
        Roam(everyone, start) for start in data.draw(st.lists(starts(size), min_size=1, max_size=3))
    ]
    each = np.array([enumerated(network, roam.start, S, "lazy") for roam in roams])
    pi = least_visits(network, roams + roams[:1], S)  # one of the tokens twice
    missed = np.prod(1 - each, axis=0) * (1 - each[0])
    assert pi.per_token == pytest.approx(each.min(), abs=1e-12)
    assert pi.any_token == pytest.approx(1 - missed.max(), abs=1e-12)


@settings(deadline=None)
@given(st.data(), st.integers(1, 7), st.integers(1, 12), st.booleans())
def test_lower_bounds_are_below(data: st.DataObject, size: int, S: int, clustered: bool) -> None:
    network = data.draw(networks(size, connected=True))
    clusters = (
        find_clusters(network, data.draw(st.integers(1, size)))
        if clustered
        else [tuple(range(size))]
    )
    roams = [Roam(cluster, data.draw(starts(len(cluster)))) for cluster in clusters]
    pi = least_visits(network, roams, S)
    assert pi.per_token <= pi.any_token * (1 + 1e-12)
    assert start_bound(roams) <= pi.per_token * (1 + 1e-12)
    low = walk_bound(network, roams, S)
    assert low <= pi.per_token * (1 + 1e-12)
    longest = max(nx.diameter(inside(network, cluster).graph) for cluster in clusters)
    assert (low > 0) == (longest < S)


def test_bounds_by_hand_and_small_probabilities() -> None:
    path, S = network_of("path", 30), 30
    end = Roam(tuple(range(30)), (1.0,) + 29 * (0.0,))
    straight = 0.5 * 3.0**-28  # the one walk that gets to the far end in 29 hops
    assert least_visits(path, [end], S).per_token == pytest.approx(straight, rel=1e-12, abs=0)
    assert walk_bound(path, [end], S) == pytest.approx(3.0**-30, rel=1e-12, abs=0)
    assert start_bound([end]) == 0.0
    # S = diameter, where the paper has the bound hold: 28 hops do not reach that far
    assert least_visits(path, [end], 29).per_token == 0.0
    assert walk_bound(path, [end], 29) == 0.0


def test_the_walk_bound_of_one_client() -> None:
    assert walk_bound(network_of("path", 1), [uniform_roam(range(1))], 3) == 1.0


def test_the_walk_bound_where_the_diameter_is_known_roughly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    network = network_of("grid", 30)
    monkeypatch.setattr(spectrum, "EXACT_DIAMETER_LIMIT", 0)
    monkeypatch.setattr(spectrum, "SWEEPS", 0)
    longest = nx.diameter(network.graph)
    assert not spectrum.diameter(network)[1]
    roams = [uniform_roam(range(30))]
    # as far as is known, it may be twice as long
    assert walk_bound(network, roams, longest + 1) == 0.0
    assert walk_bound(network, roams, 2 * longest + 1) == pytest.approx(
        5.0 ** -(2 * longest + 1) / 30, rel=1e-9, abs=0
    )


def test_a_token_for_every_client_and_a_complete_network() -> None:
    roams = [uniform_roam([k]) for k in range(5)]
    assert least_visits(network_of("empty", 5), roams, 3) == (1.0, 1.0)
    assert least_visits(network_of("path", 5), roams, 3) == (1.0, 1.0)
    everywhere = uniform_roam(range(7))  # each visit is a fair draw from all 7
    pi = least_visits(network_of("complete", 7), [everywhere] * 2, 4)
    assert pi.per_token == pytest.approx(1 - (6 / 7) ** 4)
    assert pi.any_token == pytest.approx(1 - (6 / 7) ** 8)


def test_a_start_that_is_none_is_refused() -> None:
    P = lazy_chain(network_of("path", 3)).P
    for start, says in (
        ([0.5, 0.5], "2 probabilities for 3"),
        ([0.5, 0.5, 0.5], "add up"),
        ([1.5, -0.5, 0], "0 or"),
    ):
        with pytest.raises(ConfigError, match=says):
            visit_probabilities(P, start, 2)
    with pytest.raises(ConfigError, match="visits"):
        visit_probabilities(P, [1, 0, 0], 0)
