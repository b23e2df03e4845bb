"""Clients that leave and join while a model is trained: the invariant, who is visited, and where it
ends."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compared_iterates import assert_same, iterates
from compared_tours import ends_of_tours
from mtcd.core.errors import ConfigError
from mtcd.methods.mtcd.mtcd import MTCD, STCD
from mtcd.methods.optimal_sync.reference import weights_of_optimal_sync
from mtcd.methods.svfl.reference import svfl as plain_svfl
from mtcd.methods.svfl.svfl import SVFL
from mtcd.methods.tours import reference as reference_tours
from mtcd.methods.tours.acceleration import ACCELERATIONS, Acceleration
from mtcd.network.changes import absences, with_changes
from mtcd.network.topology import Change, Network
from mtcd.network.walks import WALKS
from mtcd.protocol.party import MONITOR, SERVER, Message
from mtcd.protocol.token import Token
from mtcd.testing.references import mtcd as reference
from problems import ALL, Case, cases, mtcd_settings


@st.composite
def churning(draw: st.DrawFn, case: Case, longest: int = 12) -> Case:
    """The case, with random changes: somebody is always there."""
    K = case.network.size
    absent: set[int] = set(draw(st.sets(st.integers(0, K - 1), max_size=K - 1)))
    late, changes = set(absent), []
    at = 0
    for _ in range(draw(st.integers(1, 4))):
        at += draw(st.integers(1, longest))
        after = set(draw(st.sets(st.integers(0, K - 1), max_size=K - 1)))
        changes.append(Change(at, leave=sorted(after - absent), join=sorted(absent - after)))
        absent = after
    joining = {k for change in changes for k in change.join}
    changes.append(Change(at + 1, join=sorted(late - joining)))  # else they were never absent
    return replace(case, network=with_changes(case.network, changes))


def absent_at(network: Network, iteration: int) -> frozenset[int]:
    return [who for begins, who in absences(network) if begins <= iteration][-1]


def watch(
    case: Case, method: MTCD, deliveries: int, absent_for: Callable[[Token, int], Iterable[int]]
) -> None:
    """Deliver messages; at each, tokens equal what clients hold for them, and nobody absent is
    visited or changes."""
    problem = case.model.problem(case.data)
    parties = method.parties(problem, case.network, case.seed)
    models = [problem.client(k) for k in range(case.network.size)]
    waiting = [message for message in parties.opening if message.to != MONITOR]
    held = [client.parameters().copy() for client in parties.clients]
    for _ in range(deliveries):
        message: Message = waiting.pop(0)
        token: Token = message.payload
        theirs = [client.copy_for(token) for client in parties.clients]
        total = problem.aggregate(theirs)
        np.testing.assert_allclose(token.aggregate, total, atol=1e-6 * (1 + np.abs(total).max()))
        if method.acceleration is None and not (
            method.combine_rule == "optimal" and problem.nonsmooth
        ):
            penalty = sum(model.penalty(theta) for model, theta in zip(models, theirs, strict=True))
            assert token.penalty == pytest.approx(penalty, abs=1e-9)
        untouched = [] if message.to == SERVER else absent_for(token, message.to)
        party = parties.server if message.to == SERVER else parties.clients[message.to]
        sent = [after for after in party.receive(message) if after.to != MONITOR]
        for hop in sent:
            assert SERVER in (hop.sender, hop.to) or hop.to in (
                hop.sender,
                *case.network.neighbours[hop.sender],
            )
        waiting += sent
        after = [client.parameters() for client in parties.clients]
        assert all(np.array_equal(held[k], after[k]) for k in untouched)
        held = [theta.copy() for theta in after]


@given(st.data())
@settings(max_examples=70, deadline=None)
def test_the_lone_token_is_what_the_clients_hold_whoever_comes_and_goes(
    data: st.DataObject,
) -> None:
    case = data.draw(churning(data.draw(cases(connected=True))))
    method = STCD(
        data.draw(st.integers(1, 3)), 2e-3, walk=data.draw(st.sampled_from(sorted(WALKS)))
    )

    def untouched(token: Token, client: int) -> Iterable[int]:
        absent = absent_at(case.network, token.hop)
        # one that is gone just passes it on
        return range(case.network.size) if client in absent else absent

    watch(case, method, 60, untouched)


@given(st.data())
@settings(max_examples=70, deadline=None)
def test_so_are_the_tokens_of_mtcd(data: st.DataObject) -> None:
    case = data.draw(churning(data.draw(cases())))
    method = replace(data.draw(mtcd_settings(case, ALL)), batch=None)
    hops = method.hops or 1

    def untouched(token: Token, client: int) -> Iterable[int]:
        absent = absent_at(case.network, token.t * hops)
        assert client not in absent
        return absent

    watch(case, method, 80, untouched)


@pytest.mark.long
@given(st.data())
@settings(max_examples=50, deadline=None)
def test_so_is_the_token_of_accelerated_tours(data: st.DataObject) -> None:
    case = data.draw(churning(data.draw(cases(connected=True)), longest=40))
    method = STCD(
        1, 2e-3, walk="tour", acceleration=some_kind(case, data), depth=data.draw(st.integers(1, 2))
    )
    roaming = method.plan(case.data.samples, 1, case.network, case.seed).roaming

    def untouched(token: Token, client: int) -> Iterable[int]:
        absent = roaming.view(token.hop).absent
        return range(case.network.size) if client in absent else absent

    watch(case, method, 200, untouched)


def some_kind(case: Case, data: st.DataObject) -> str:
    """An acceleration that suits the model."""
    return data.draw(
        st.sampled_from(
            [
                kind
                for kind, made in ACCELERATIONS.usable().items()
                if issubclass(made, Acceleration) and not (made.smooth_only and case.model.l1)
            ]
        )
    )


def whole(case: Case, data: st.DataObject) -> MTCD | None:
    """Accelerated at the sync; None where a cluster falls apart."""
    tokens = data.draw(st.integers(len(case.network.components), case.network.size))
    settings = {
        "combine": "cluster",
        "walk": "tour",
        "acceleration": some_kind(case, data),
        "depth": 1,
    }
    method = MTCD(tokens, 2 * case.network.size, 1, 1e-3, **settings)
    clusters = method.token_clusters(case.network, case.seed) or ()
    for _, absent in absences(case.network):
        present = [case.network.graph.subgraph(set(cluster) - absent) for cluster in clusters]
        if any(len(part) and not nx.is_connected(part) for part in present):
            with pytest.raises(ConfigError, match="is disconnected"):
                method.plan(case.data.samples, 1, case.network, case.seed)
            return None
    return method


@pytest.mark.long
@given(st.data())
@settings(max_examples=50, deadline=None)
def test_so_are_those_of_accelerated_syncs_which_follow_the_plain_version(
    data: st.DataObject,
) -> None:
    case = data.draw(churning(data.draw(cases()), longest=60))
    method = whole(case, data)
    if method is None:
        return
    hops = method.hops or 1
    watch(case, method, 150, lambda token, client: absent_at(case.network, token.t * hops))
    problem = case.model.problem(case.data)
    expected = reference_tours.accelerated_mtcd(problem, case.network, method, case.seed, 8)
    agree(iterates(case, method, 9), expected)


def agree(ours: list[list[np.ndarray]], theirs: list[list[np.ndarray]]) -> None:
    before = np.inf
    for here, there in zip(ours, theirs, strict=True):
        for a, b in zip(here, there, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)
        if np.allclose(np.concatenate(there), before, rtol=1e-9, atol=0):
            return  # nothing moves: from here on rounding decides which trials are undone
        before = np.concatenate(there)


def tour_ends(case: Case, method: MTCD, count: int) -> list[list[np.ndarray]]:
    """The models at the ends of tours."""
    parties = method.parties(case.model.problem(case.data), case.network, case.seed)
    ends = itertools.islice(ends_of_tours(case, method, parties), count)
    return [[client.parameters().copy() for client in parties.clients] for _ in ends]


@pytest.mark.long
@given(st.data())
@settings(max_examples=50, deadline=None)
def test_all_follow_the_plain_versions(data: st.DataObject) -> None:
    case = data.draw(churning(data.draw(cases(connected=True))))
    problem, network, seed = case.model.problem(case.data), case.network, case.seed
    walk = data.draw(st.sampled_from(sorted(WALKS)))
    lone, hops = STCD(2, 2e-3, walk=walk), data.draw(st.integers(0, 40))
    assert_same(
        iterates(case, lone, hops + 1)[-1:], [reference.stcd(problem, network, lone, seed, S=hops)]
    )
    many = replace(data.draw(mtcd_settings(case, ALL)), batch=None)
    choose = weights_of_optimal_sync if many.combine_rule == "optimal" else None
    ours = iterates(case, many, 7)
    plain = reference.mtcd(problem, network, many, seed, T=6, choose=choose)
    if many.combine_rule == "optimal":  # where f is flat, rounding decides on the weights
        np.testing.assert_allclose(
            [*map(problem.evaluate, ours)], [*map(problem.evaluate, plain)], rtol=1e-4
        )
    else:
        assert_same(ours, plain)
    server = SVFL(2, 2e-3)
    assert_same(
        iterates(case, server, 20), plain_svfl(problem, server, seed, 19, absences(network))
    )
    fast = STCD(1, 2e-3, walk="tour", acceleration=some_kind(case, data), depth=2)
    agree(
        tour_ends(case, fast, 12),
        reference_tours.accelerated_stcd(problem, network, fast, seed, 11),
    )
