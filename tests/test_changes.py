"""Clients that leave and join while a model is trained: the invariant, who is visited, and where it ends."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mtcd
from mtcd.engines.local import LocalEngine
from mtcd.errors import ConfigError, MtcdError, NetworkError
from mtcd.ledger.ledger import Ledger
from mtcd.methods import reference
from mtcd.methods.mtcd import MTCD, STCD
from mtcd.methods.svfl import SVFL
from mtcd.network.changes import absences, with_changes
from mtcd.network.topology import Change, Network, make_network
from mtcd.network.walks import WALKS
from mtcd.protocol.party import MONITOR, SERVER, Message
from mtcd.protocol.token import Token
from problems import MODELS, Case, cases, make_data, mtcd_settings
from test_methods import assert_same, iterates


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


def watch(case: Case, method: MTCD, deliveries: int, absent_for: Callable[[Token, int], Iterable[int]]) -> None:
    """Deliver messages; at each, tokens equal what clients hold for them, and nobody absent is visited or changes."""
    problem = case.model.problem(case.data)
    cast = method.cast(problem, case.network, case.seed)
    models = [problem.client(k) for k in range(case.network.size)]
    waiting = [message for message in cast.opening if message.to != MONITOR]
    held = [client.parameters().copy() for client in cast.clients]
    for _ in range(deliveries):
        message: Message = waiting.pop(0)
        token: Token = message.payload
        theirs = [client.copy_for(token) for client in cast.clients]
        total = problem.aggregate(theirs)
        np.testing.assert_allclose(token.aggregate, total, atol=1e-6 * (1 + np.abs(total).max()))
        if method.acceleration is None:
            penalty = sum(model.penalty(theta) for model, theta in zip(models, theirs, strict=True))
            assert token.penalty == pytest.approx(penalty, abs=1e-9)
        untouched = [] if message.to == SERVER else absent_for(token, message.to)
        party = cast.server if message.to == SERVER else cast.clients[message.to]
        waiting += [after for after in party.receive(message) if after.to != MONITOR]
        after = [client.parameters() for client in cast.clients]
        assert all(np.array_equal(held[k], after[k]) for k in untouched)
        held = [theta.copy() for theta in after]


@given(st.data())
@settings(max_examples=70, deadline=None)
def test_the_lone_token_is_what_the_clients_hold_whoever_comes_and_goes(data: st.DataObject) -> None:
    case = data.draw(churning(data.draw(cases(connected=True))))
    method = STCD(data.draw(st.integers(1, 3)), 2e-3, walk=data.draw(st.sampled_from(sorted(WALKS))))

    def untouched(token: Token, client: int) -> Iterable[int]:
        absent = absent_at(case.network, token.hop)
        return range(case.network.size) if client in absent else absent  # one that is gone just passes it on

    watch(case, method, 60, untouched)


@given(st.data())
@settings(max_examples=70, deadline=None)
def test_so_are_the_tokens_of_mtcd(data: st.DataObject) -> None:
    case = data.draw(churning(data.draw(cases())))
    method = replace(data.draw(mtcd_settings(case)), batch=None)
    hops = method.hops or 1

    def untouched(token: Token, client: int) -> Iterable[int]:
        absent = absent_at(case.network, token.t * hops)
        assert client not in absent
        return absent

    watch(case, method, 80, untouched)


@given(st.data())
@settings(max_examples=50, deadline=None)
def test_so_is_the_token_of_accelerated_tours(data: st.DataObject) -> None:
    case = data.draw(churning(data.draw(cases(connected=True)), longest=40))
    method = STCD(1, 2e-3, walk="tour", acceleration="anderson", depth=data.draw(st.integers(1, 2)))
    roaming = method.plan(case.data.samples, 1, case.network, case.seed).roaming

    def untouched(token: Token, client: int) -> Iterable[int]:
        absent = roaming.era(token.hop).absent
        return range(case.network.size) if client in absent else absent

    watch(case, method, 200, untouched)


def whole(case: Case, data: st.DataObject) -> MTCD | None:
    """Accelerated at the sync; None where a cluster falls apart."""
    tokens = data.draw(st.integers(len(case.network.components), case.network.size))
    settings = {"combine": "cluster", "walk": "tour", "acceleration": "anderson", "depth": 1}
    method = MTCD(tokens, 2 * case.network.size, 1, 1e-3, **settings)
    clusters = method.token_clusters(case.network, case.seed) or ()
    for _, absent in absences(case.network):
        present = [case.network.graph.subgraph(set(cluster) - absent) for cluster in clusters]
        if any(len(part) and not nx.is_connected(part) for part in present):
            with pytest.raises(ConfigError, match="in pieces"):
                method.plan(case.data.samples, 1, case.network, case.seed)
            return None
    return method


@given(st.data())
@settings(max_examples=50, deadline=None)
def test_so_are_those_of_accelerated_syncs_which_follow_the_plain_version(data: st.DataObject) -> None:
    case = data.draw(churning(data.draw(cases()), longest=60))
    method = whole(case, data)
    if method is None:
        return
    hops = method.hops or 1
    watch(case, method, 150, lambda token, client: absent_at(case.network, token.t * hops))
    problem = case.model.problem(case.data)
    expected = reference.accelerated_mtcd(problem, case.network, method, case.seed, 8)
    agree(iterates(case, method, 9), expected)


def agree(ours: list[list[np.ndarray]], theirs: list[list[np.ndarray]]) -> None:
    for here, there in zip(ours, theirs, strict=True):
        for a, b in zip(here, there, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)


@given(st.data())
@settings(max_examples=50, deadline=None)
def test_all_follow_the_plain_versions(data: st.DataObject) -> None:
    case = data.draw(churning(data.draw(cases(connected=True))))
    problem, network, seed = case.model.problem(case.data), case.network, case.seed
    walk = data.draw(st.sampled_from(sorted(WALKS)))
    lone, hops = STCD(2, 2e-3, walk=walk), data.draw(st.integers(0, 40))
    assert_same(iterates(case, lone, hops + 1)[-1:], [reference.stcd(problem, network, lone, seed, S=hops)])
    many = replace(data.draw(mtcd_settings(case)), batch=None)
    assert_same(iterates(case, many, 7), reference.mtcd(problem, network, many, seed, T=6))
    server = SVFL(2, 2e-3)
    assert_same(iterates(case, server, 20), reference.svfl(problem, server, seed, 19, absences(network)))
    fast = STCD(1, 2e-3, walk="tour", acceleration="anderson", depth=1)
    agree(iterates(case, fast, 12), reference.accelerated_stcd(problem, network, fast, seed, 11))


COMING_AND_GOING = [
    Change(40, leave=["c2"]),
    Change(150, leave=["c4", "c0"]),
    Change(300, join=["c2", "c4"]),
    Change(400, join=["c0", "c5"]),
]
METHODS = [
    *(STCD(5, walk=walk) for walk in sorted(WALKS)),
    STCD(5, walk="tour", acceleration="anderson", start="c2"),
    MTCD(2, 4, 5),
    MTCD(2, 4, 5, combine="visitors", walk="random-tour"),
    MTCD(2, 6, 5, clusters="auto", walk="tour"),
    MTCD(2, 10, 5, clusters=[["c0", "c1", "c2"], ["c3", "c4", "c5"]], walk="tour"),
    MTCD(
        hops=10,
        local_updates=5,
        clusters=[["c0", "c1"], ["c2", "c3"], ["c4", "c5"]],
        walk="tour",
        acceleration="anderson",
    ),
    SVFL(5),
]


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.describe())
def test_when_everyone_is_back_the_optimum_is_reached(method) -> None:
    data = make_data(MODELS[0], 40, [3, 4, 2, 5, 3, 4], seed=7)
    network = with_changes(make_network("path", data.clients), COMING_AND_GOING)
    run = mtcd.train(data, MODELS[0], network, method, mtcd.Stop(gap=1e-8, iterations=200_000))
    assert run.status == "converged"
    assert run.final.iteration > 400
    apart = [note for note in run.notes if "pieces" in note]
    assert bool(apart) == (method.kind == "stcd")


def test_a_token_in_one_piece_goes_to_the_other_when_it_can() -> None:
    data = make_data(MODELS[0], 20, [1] * 5, seed=1)
    changes = [Change(200, leave=["c2"]), Change(600, join=["c2"])]
    network = with_changes(make_network("path", data.clients), changes)
    for walk in WALKS:
        case = Case(data, MODELS[0], network, 3)
        seen = np.array([[theta[0] for theta in one] for one in iterates(case, STCD(1, 1e-3, walk=walk), 1000)])
        moved = np.diff(seen, axis=0) != 0
        assert moved[:200].any(axis=0).all()
        between = moved[200:600].any(axis=0)
        assert list(between) in ([True, True, False, False, False], [False, False, False, True, True])
        assert moved[600:].any(axis=0).all()


def test_a_token_whose_neighbours_all_leave_is_passed_on_to_the_nearest() -> None:
    data = make_data(MODELS[0], 20, [1] * 6, seed=1)
    network = with_changes(make_network("path", data.clients), [Change(1, leave=["c0", "c1", "c2", "c3"])])
    cast = STCD(1, 1e-3, start="c1").cast(MODELS[0].problem(data), network, 0)
    message = cast.opening[-1]
    sent: list[Message] = []
    while not sent or sent[-1].to < 4:
        message = next(m for m in cast.clients[message.to].receive(message) if m.to != MONITOR)
        sent.append(message)
    assert [m.to for m in sent] == [2, 3, 4]
    assert [bool(m.hop_floats) for m in sent] == [True, False, False], "one hop, three messages"
    assert {m.floats for m in sent} == {20}
    assert message.payload.hop == 1


def test_svfl_pays_for_those_present_alone() -> None:
    data = make_data(MODELS[0], 20, [1] * 4, seed=1)
    changes = [Change(2, leave=["c1", "c2"]), Change(3, join=["c0", "c1"])]
    cast = SVFL(1, 1e-3).cast(MODELS[0].problem(data), with_changes(make_network("empty", data.clients), changes), 0)
    ledger = Ledger()
    for told in itertools.islice(LocalEngine(cast, ledger).run(), 6):
        done = told.hop
        assert ledger.messages()["uplink"] == [0, 3, 6, 7, 10, 13][done]
    assert ledger.messages()["downlink"] == 13


def test_a_cluster_that_nobody_is_in_costs_nothing() -> None:
    data = make_data(MODELS[0], 20, [1] * 4, seed=1)
    network = with_changes(make_network("path", data.clients), [Change(3, leave=["c0", "c1"])])
    cast = MTCD(hops=3, stepsize=1e-3, clusters=[["c0", "c1"], ["c2", "c3"]]).cast(MODELS[0].problem(data), network, 0)
    ledger = Ledger()
    list(itertools.islice(LocalEngine(cast, ledger).run(), 4))
    assert ledger.messages()["uplink"] == ledger.messages()["downlink"] == 2 + 1 + 1
    assert ledger.hops == 3 * (2 + 1 + 1)


def test_an_empty_schedule_changes_nothing() -> None:
    data = make_data(MODELS[0], 20, [2] * 5, seed=1)
    plain = make_network("cycle", data.clients)
    for method in (STCD(1, 1e-3, walk="random-tour"), MTCD(2, 3, 1, 1e-3)):
        late = with_changes(plain, [Change(10**6, leave=["c1"])])
        runs = [
            iterates(Case(data, MODELS[0], network, 0), method, 50)
            for network in (plain, with_changes(plain, []), late)
        ]
        assert_same(runs[0], runs[1], tolerance=0)
        assert_same(runs[0], runs[2], tolerance=0)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ([Change(5, leave=["c11"])], "leave at iteration 5: no client is called 'c11'; did you mean 'c1'"),
        ([Change(5, leave=["c1"]), Change(9, leave=["c1"])], "at iteration 9 client 'c1' leaves, but is not there"),
        ([Change(9, join=["c1"]), Change(5, leave=["c1"]), Change(11, join=["c1"])], "joins, but is there already"),
        ([Change(5, leave=["c0", "c1", "c2"])], "from iteration 5 on nobody is there"),
        ([Change(5, join=["c0", "c1", "c2"])], "from iteration 0 on nobody is there"),
        ([Change(5, leave=["c1"], join=["c1"])], "named twice"),
        ([Change(5, leave=["c1"]), Change(5, leave=["c1"])], "named twice"),
        ([Change(-1, leave=["c1"])], "0 or more"),
        ([Change(1.5, leave=["c1"])], "whole number"),
        ([Change(5, leave="c1")], "a list of clients"),
    ],
)
def test_schedules_that_cannot_be_are_refused(changes, says: str) -> None:
    with pytest.raises(MtcdError, match=says):
        with_changes(make_network("path", ["c0", "c1", "c2"]), changes)


@pytest.mark.parametrize(
    ("method", "says"),
    [
        (mtcd.DCPA(1e-3), "dcpa needs all clients"),
        (SVFL(1, 1e-3, batch=3), "with method.batch svfl"),
        (MTCD(1, 2, 1, 1e-3, batch=3), "with method.batch mtcd"),
        (
            MTCD(1, 9, 1, 1e-3, combine="cluster", walk="tour", acceleration="anderson"),
            "from iteration 5 on a cluster is in pieces",
        ),
    ],
)
def test_methods_that_cannot_bear_changes_say_so(method, says: str) -> None:
    data = make_data(MODELS[0], 10, [1, 1, 1], seed=0)
    network = with_changes(make_network("path", data.clients), [Change(5, leave=["c1"])])
    with pytest.raises((ConfigError, NetworkError), match=says):
        method.cast(MODELS[0].problem(data), network, 0)
