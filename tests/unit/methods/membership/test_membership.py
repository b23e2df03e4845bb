"""Schedules of who leaves and joins: what comes of a training, what it costs, and what is
refused."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mtcd
from compared_iterates import assert_same, iterates
from mtcd.core.errors import ConfigError, MtcdError
from mtcd.engines.local import LocalEngine
from mtcd.methods.membership.roaming import Pieces
from mtcd.methods.mtcd.mtcd import MTCD, STCD
from mtcd.methods.svfl.svfl import SVFL
from mtcd.network.changes import with_changes
from mtcd.network.topology import Change, make_network
from mtcd.network.walks import WALKS, make_walk
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.protocol.party import MONITOR, Message
from problems import MODELS, Case, make_data
from trails import trail_of

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
    apart = [note for note in run.notes if "components" in note]
    assert bool(apart) == (method.kind == "stcd")


def test_a_token_in_one_piece_goes_to_the_other_when_it_can() -> None:
    data = make_data(MODELS[0], 20, [1] * 5, seed=1)
    changes = [Change(200, leave=["c2"]), Change(600, join=["c2"])]
    network = with_changes(make_network("path", data.clients), changes)
    for walk in WALKS:
        case = Case(data, MODELS[0], network, 3)
        seen = np.array(
            [[theta[0] for theta in one] for one in iterates(case, STCD(1, 1e-3, walk=walk), 1000)]
        )
        moved = np.diff(seen, axis=0) != 0
        assert moved[:200].any(axis=0).all()
        between = moved[200:600].any(axis=0)
        assert list(between) in (
            [True, True, False, False, False],
            [False, False, False, True, True],
        )
        assert moved[600:].any(axis=0).all()


def test_a_token_whose_neighbours_all_leave_is_passed_on_to_the_nearest() -> None:
    data = make_data(MODELS[0], 20, [1] * 6, seed=1)
    network = with_changes(
        make_network("path", data.clients), [Change(1, leave=["c0", "c1", "c2", "c3"])]
    )
    parties = STCD(1, 1e-3, start="c1").parties(MODELS[0].problem(data), network, 0)
    message = parties.opening[-1]
    sent: list[Message] = []
    while not sent or sent[-1].to < 4:
        message = next(m for m in parties.clients[message.to].receive(message) if m.to != MONITOR)
        sent.append(message)
    assert [m.to for m in sent] == [2, 3, 4]
    assert [bool(m.hop_floats) for m in sent] == [True, False, False], "one hop, three messages"
    assert {m.floats for m in sent} == {20}
    assert message.payload.hop == 1


def test_svfl_pays_for_those_present_alone() -> None:
    data = make_data(MODELS[0], 20, [1] * 4, seed=1)
    changes = [Change(2, leave=["c1", "c2"]), Change(3, join=["c0", "c1"])]
    parties = SVFL(1, 1e-3).parties(
        MODELS[0].problem(data), with_changes(make_network("empty", data.clients), changes), 0
    )
    ledger = Ledger()
    for told in itertools.islice(LocalEngine(parties, ledger).run(), 6):
        done = told.hop
        assert ledger.messages()["uplink"] == [0, 3, 6, 7, 10, 13][done]
    assert ledger.messages()["downlink"] == 13


def test_a_cluster_that_nobody_is_in_costs_nothing() -> None:
    data = make_data(MODELS[0], 20, [1] * 4, seed=1)
    network = with_changes(make_network("path", data.clients), [Change(3, leave=["c0", "c1"])])
    parties = MTCD(hops=3, stepsize=1e-3, clusters=[["c0", "c1"], ["c2", "c3"]]).parties(
        MODELS[0].problem(data), network, 0
    )
    ledger = Ledger()
    list(itertools.islice(LocalEngine(parties, ledger).run(), 4))
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
        (
            [Change(5, leave=["c11"])],
            "leave at iteration 5: no client is called 'c11'; did you mean 'c1'",
        ),
        (
            [Change(5, leave=["c1"]), Change(9, leave=["c1"])],
            "at iteration 9 client 'c1' leaves, but is absent",
        ),
        (
            [Change(9, join=["c1"]), Change(5, leave=["c1"]), Change(11, join=["c1"])],
            "joins, but is present already",
        ),
        ([Change(5, leave=["c0", "c1", "c2"])], "from iteration 5 on all clients are absent"),
        ([Change(5, join=["c0", "c1", "c2"])], "from iteration 0 on all clients are absent"),
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
            "from iteration 5 on a cluster is disconnected",
        ),
    ],
)
def test_methods_that_cannot_bear_changes_say_so(method, says: str) -> None:
    data = make_data(MODELS[0], 10, [1, 1, 1], seed=0)
    network = with_changes(make_network("path", data.clients), [Change(5, leave=["c1"])])
    with pytest.raises(ConfigError, match=says):
        method.parties(MODELS[0].problem(data), network, 0)


def test_accelerated_tours_are_whole_and_begin_at_home_as_long_as_it_is_there() -> None:
    names = [f"c{k}" for k in range(5)]
    changes = [
        Change(10, leave=["c4"]),
        Change(20, leave=["c0"]),
        Change(22, join=["c4"]),
        Change(23, join=["c0"]),
    ]
    path = with_changes(make_network("path", names), changes)
    roaming = STCD(1, 1e-3, "tour", "c0", "anderson").plan(10, 1, path, 0).roaming
    # tours of 8, 6 and 6 hops; from 22 on, c4 is back before any tour without it has begun
    assert [(view.begins, view.entry, view.walks[0].length) for view in roaming.views] == [
        (0, 0, 8),
        (16, 0, 6),
        (22, 2, 6),  # the token was at c1, on its way home to c0
        (28, 2, 8),
    ]
    assert [hop for hop in range(40) if roaming.ends_tour(hop)] == [0, 8, 16, 22, 28, 36]
    assert [hop for hop in range(40) if roaming.begins_view(hop)] == [0, 16, 22, 28]
    trail = trail_of(roaming, 0, 0, 40)
    for begins, ends in itertools.pairwise([0, 8, 16, 22, 28, 36]):
        for hop in range(begins, ends):
            # that at trail[hop] is still to come
            rest, visited = trail[hop + 1 : ends], {*trail[begins:hop]}
            assert roaming.has_visited_all(hop) == (
                hop == begins or visited == {*trail[begins:ends]}
            )
            # the last of the home client is the end of the tour
            last = trail[hop] not in (trail[begins], *rest)
            assert roaming.is_last_visit(0, 0, hop, trail[hop]) == last


def test_the_last_visits_before_a_sync_are_those_of_the_view_at_that_time() -> None:
    path = with_changes(
        make_network("path", [f"c{k}" for k in range(5)]), [Change(14, leave=["c4"])]
    )
    method = MTCD(
        None, 7, 1, 1e-3, clusters=[[0, 1], [2, 3, 4]], walk="tour", acceleration="momentum"
    )
    roaming = method.plan(10, 1, path, 0).roaming
    for token, t in itertools.product((0, 1), (1, 2)):
        trail = trail_of(roaming, token, t, 7)
        assert {*trail} == [{0, 1}, {2, 3, 4} if t == 1 else {2, 3}][token]
        for hop, client in enumerate(trail):
            assert roaming.is_last_visit(token, t, hop, client) == (client not in trail[hop + 1 :])


@settings(max_examples=100, deadline=None)
@given(
    st.integers(4, 8),
    st.integers(0, 7),
    st.integers(1, 12),
    st.integers(1, 12),
    st.sampled_from([None, "anderson"]),
)
def test_a_lone_tour_goes_along_links_from_where_it_was_through_all_who_are_there(
    K: int, gone: int, leaves: int, later: int, acceleration: str | None
) -> None:
    """Whenever somebody leaves and joins again: a cycle without one client is a path, so there is
    always a way on."""
    cycle = make_network("cycle", [f"c{k}" for k in range(K)])
    name, hops = f"c{gone % K}", 60
    changes = [Change(leaves, leave=[name]), Change(leaves + later, join=[name])]
    roaming = (
        STCD(1, 1e-3, "tour", None, acceleration)
        .plan(10, 1, with_changes(cycle, changes), later)
        .roaming
    )
    trail, previous = [roaming.first(0, 0)], -1
    for hop in range(1, hops):
        trail.append(roaming.next(0, 0, hop, trail[-1], previous))
        previous = trail[-2]
        assert trail[-1] in (previous, *cycle.neighbours[previous])
    ends = [*(view.begins for view in roaming.views[1:]), hops]
    for view, end in zip(roaming.views, ends, strict=True):
        assert trail[view.begins] == view.entry
        tour = trail[view.begins : min(end, view.begins + view.walks[0].length)]
        assert len(tour) < view.walks[0].length or {*tour} == {*range(K)} - {*view.absent}


@pytest.mark.parametrize("acceleration", [None, "anderson"])
def test_tokens_of_a_cluster_start_anywhere_but_always_at_the_same_client_where_accelerated(
    acceleration,
) -> None:
    network = with_changes(
        make_network("path", [f"c{k}" for k in range(5)]), [Change(10, leave=["c0"])]
    )
    method = MTCD(
        None, 9, 1, 1e-3, clusters=[[0, 1, 2], [3, 4]], walk="tour", acceleration=acceleration
    )
    roaming = method.plan(10, 1, network, 0).roaming
    starts = [{roaming.first(token, t) for t in range(2, 40)} for token in (0, 1)]
    assert starts == ([{1, 2}, {3, 4}] if acceleration is None else [{1}, {3}])


def test_starts_that_were_asked_for_give_way_where_they_leave_somebody_out() -> None:
    path = make_network("path", [f"c{k}" for k in range(5)])
    for gone, starts in (("c4", {0, 1}), ("c1", {0, 2, 3, 4}), ("c3", {0, 1, 2, 4})):
        network = with_changes(path, [Change(10, leave=[gone])])
        method = MTCD(1, 5, 1, 1e-3, start={"c0": 1.0, "c1": 1.0})
        roaming = method.plan(10, 1, network, 0).roaming
        assert {roaming.first(0, t) for t in range(2, 80)} == starts
        assert {roaming.first(0, t) for t in range(2)} <= {0, 1}


def test_a_token_that_is_with_somebody_who_stays_walks_on_when_others_leave() -> None:
    names = [f"c{k}" for k in range(6)]
    network = with_changes(make_network("complete", names), [Change(5, leave=["c5"])])
    went = []
    for seed in range(300):
        roaming = STCD(1, 1e-3).plan(10, 1, network, seed).roaming
        went.append(roaming.next(0, 0, 5, 2, 1))
        assert roaming.next(0, 0, 5, 5, 1) != 5  # from the one who leaves it goes to somebody else
    shares = np.bincount(went, minlength=6) / 300
    assert shares[5] == 0
    assert abs(shares[:5] - 1 / 5).max() < 0.1


def test_pieces_are_as_long_as_the_longest_of_their_tours() -> None:
    network = make_network("path", [f"c{k}" for k in range(6)])
    tours = {piece: make_walk("tour", network, piece) for piece in ((0, 1), (3, 4, 5))}
    pieces = Pieces(tours)
    assert [tours[piece].length for piece in tours] == [2, 4]
    assert pieces.length == 4
    assert Pieces({(0, 1): make_walk("lazy", network, (0, 1))}).length == 0
    assert [pieces.covers(k) for k in range(6)] == [True, True, False, True, True, True]
