"""What parties do while tokens roam, and who is absent when."""

from dataclasses import replace
from itertools import islice, pairwise, product
from typing import Any

import numpy as np
import pytest

import mtcd
from compared_iterates import assert_same, iterates
from mtcd.core.errors import ConfigError
from mtcd.engines.local import LocalEngine
from mtcd.methods.membership.roaming import nearest, next_on_way
from mtcd.methods.mtcd.client import Share
from mtcd.methods.mtcd.mtcd import MTCD, STCD, _requested_batch
from mtcd.methods.mtcd.roaming import Roaming, Start, StartAt, plan_roaming
from mtcd.methods.svfl.reference import svfl as plain_svfl
from mtcd.methods.svfl.svfl import SVFL, Shared, _next_batch
from mtcd.models.glm.model import Glm
from mtcd.network.changes import Change, absences, with_changes
from mtcd.network.edges import network_from_edges
from mtcd.network.topology import Network, make_network
from mtcd.protocol.batches import Batches
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.protocol.party import Message
from problems import Case, make_data
from trails import trail_of


def test_svfl_follows_its_plain_version_through_several_changes() -> None:
    model = Glm("ridge", l2=0.5)
    data = make_data(model, 12, [2, 1, 3, 2], seed=5)
    changes = [
        Change(2, leave=["c1"]),
        Change(4, join=["c1"], leave=["c2", "c3"]),
        Change(6, join=["c3"]),
    ]
    network = with_changes(make_network("complete", data.clients), changes)
    case, method, rounds = Case(data, model, network, 0), SVFL(2, 2e-3), 9
    away = list(absences(network))
    assert len(away) == 4
    plain = plain_svfl(model.problem(data), method, 0, rounds, away)
    assert_same(iterates(case, method, rounds + 1), plain)


def test_theta_0_is_updated_while_the_tokens_roam() -> None:
    pytest.importorskip("torch")
    from mtcd.models.splitnet.parties import UpdateFusion
    from wired import split

    parties = split("clusters, batches")[0]
    server, updated = parties.server, []
    receive = server.receive

    def noted(message: Message):
        sent = receive(message)
        if isinstance(message.payload, UpdateFusion):
            updated.append((message.payload.t, server.fused))
        return sent

    server.receive = noted  # type: ignore[method-assign]
    list(islice(LocalEngine(parties, Ledger()).run(), 4))
    assert updated[:3] == [(0, 0), (1, 1), (2, 2)]


def test_a_start_is_drawn_by_its_weights() -> None:
    even, weighted = StartAt([4, 7, 9]), StartAt([4, 7, 9], [1.0, 0.0, 3.0])
    assert [even.pick(draw) for draw in (0.0, 0.33, 0.34, 0.66, 0.67, 0.99)] == [4, 4, 7, 7, 9, 9]
    assert [weighted.pick(draw) for draw in (0.0, 0.249, 0.25, 0.251, 0.999)] == [4, 4, 9, 9, 9]
    assert (even.support(), weighted.support()) == ([4, 7, 9], [4, 9])
    # the least number there is: its product with the draw is no less
    assert StartAt([3], [5e-324]).pick(0.9) == 3


def test_a_start_among_those_present_keeps_its_weights() -> None:
    weighted = StartAt([4, 7, 9, 2], [1.0, 0.0, 3.0, 2.0])
    here = weighted.among({2, 7, 4})
    assert (here.clients, here.weights) == ([4, 2], [1.0, 2.0])
    assert weighted.among({7, 5}) is None
    even = StartAt([4, 7, 9]).among({9, 4, 1})
    assert (even.clients, even.weights) == ([4, 9], None)


def on_path(clients: int, start: Start, hops: int | None, **about: Any) -> Roaming:
    tokens, clusters, walk = (
        about.get("tokens", 1),
        about.get("clusters"),
        about.get("walk", "lazy"),
    )
    return plan_roaming(
        make_network("path", [f"c{k}" for k in range(clients)]),
        tokens,
        clusters,
        walk,
        start,
        0,
        hops,
    )


@pytest.mark.parametrize(
    ("hops", "missed"), [(1, "c1"), (3, "c3"), (4, "c4"), (5, None), (None, None)]
)
def test_starts_from_which_somebody_is_never_visited_are_refused(
    hops: int | None, missed: str | None
) -> None:
    if missed is None:
        on_path(5, "c0", hops)
        return
    with pytest.raises(
        ConfigError,
        match=f"client '{missed}' can never be visited .* within {hops} hops: give more",
    ):
        on_path(5, "c0", hops)


def test_a_lone_token_that_never_gets_somewhere_has_no_number_of_hops() -> None:
    apart = Network(("a", "b", "c"), ((1,), (0,), ()))
    with pytest.raises(
        ConfigError, match="client 'c' can never be visited from the given starts.$"
    ):
        plan_roaming(apart, 1, None, "lazy", "a", 0, None)


def test_a_token_may_start_anywhere_in_its_cluster_but_not_outside() -> None:
    about = {"tokens": 2, "clusters": [[0, 1], [2, 3, 4]]}
    everywhere = [{"c0": 1.0, "c1": 2.0}, {"c2": 1.0, "c3": 0.0, "c4": 1.0}]
    assert [one.support() for one in on_path(5, everywhere, 4, **about).starts] == [[0, 1], [2, 4]]
    with pytest.raises(ConfigError, match="'c2' is outside the cluster of its token"):
        on_path(5, ["c2", "c3"], 4, **about)


@pytest.mark.parametrize(
    "weights", [(0.0, 0.0), (1.0, -0.5), (1.0, float("inf")), (float("nan"), 1.0)]
)
def test_weights_of_starts_are_finite_and_not_all_0(weights: tuple[float, float]) -> None:
    with pytest.raises(ConfigError, match="weights must be finite, 0 or more, and not all 0"):
        on_path(2, dict(zip(("c0", "c1"), weights, strict=True)), 4)


@pytest.mark.parametrize("home", [0, 1])
def test_a_tour_of_a_network_that_does_not_change(home: int) -> None:
    """Along the path of four and back."""
    roaming = on_path(4, f"c{home}", None, walk="tour")
    assert [hop for hop in range(20) if roaming.ends_tour(hop)] == [0, 6, 12, 18]
    assert [hop for hop in range(20) if roaming.begins_view(hop)] == [0]
    assert not any(roaming.is_away(k, hop) for k in range(4) for hop in range(9))
    trail = trail_of(roaming, 0, 0, 12)
    assert trail[0] == trail[6] == home
    assert {*trail[:6]} == {0, 1, 2, 3}
    for hop, client in enumerate(trail):
        begins = hop - hop % 6
        assert roaming.has_visited_all(hop) == (
            hop == begins or {*trail[begins:hop]} == {0, 1, 2, 3}
        )
        assert roaming.is_last_visit(0, 0, hop, client) == (
            client not in (home, *trail[hop + 1 : begins + 6])
        )


def test_the_draws_of_an_iteration_follow_those_of_the_one_before() -> None:
    """As if the token had not been at the server in between."""
    network = make_network("complete", [f"c{k}" for k in range(9)])
    synced, lone = (plan_roaming(network, 1, None, "lazy", None, 3, hops) for hops in (5, None))
    for t, hop in product(range(4), range(1, 5)):
        assert synced.next(0, t, hop, 2, 1) == lone.next(0, 0, 5 * t + hop, 2, 1)


def test_the_last_clients_of_an_iteration_are_those_where_the_trails_end() -> None:
    network = make_network("cycle", [f"c{k}" for k in range(7)])
    plan = MTCD(3, 5, 1, 1e-3).plan(10, 1, network, 2)
    ends = [tuple(trail_of(plan.roaming, token, t, 5)[-1] for token in range(3)) for t in range(4)]
    assert len(set(ends)) == 4
    assert [plan.last_clients(t) for t in (1, 0, 0, 2, 3, 1)] == [
        ends[t] for t in (1, 0, 0, 2, 3, 1)
    ]
    once = MTCD(3, 1, 1, 1e-3).plan(10, 1, network, 2)
    assert once.last_clients(0) == tuple(once.roaming.first(token, 0) for token in range(3))


def tour_on_chain(*changes: Change) -> Any:
    """Conjugate tours on the path c5 - c0 - c1 - c2 - c3 - c4."""
    names = [f"c{k}" for k in range(6)]
    chain = network_from_edges([("c5", "c0"), *((f"c{k}", f"c{k + 1}") for k in range(4))], names)
    method = STCD(1, 1e-3, walk="tour", acceleration="conjugate")
    return method.plan(10, 1, with_changes(chain, changes), 0).roaming


def test_a_tour_starts_at_its_home_in_whatever_piece_that_is() -> None:
    home = 4  # an end of the path
    assert tour_on_chain().starts[0].clients == [home]
    for gone, first in (("c2", home), ("c5", home), ("c4", 0)):
        roaming = tour_on_chain(Change(0, leave=[gone]), Change(30, join=[gone]))
        assert roaming.views[0].entry == roaming.first(0, 0) == first


def test_a_tour_whose_home_leaves_while_an_earlier_one_comes_back_has_a_new_home() -> None:
    cycle = make_network("cycle", [f"c{k}" for k in range(6)])
    changes = [Change(6, leave=["c0"]), Change(14, join=["c0"], leave=["c4"])]
    method = STCD(1, 1e-3, walk="tour", start="c0", acceleration="anderson")
    roaming: Any = method.plan(10, 1, with_changes(cycle, changes), 0).roaming
    assert [(view.begins, view.entry) for view in roaming.views[:2]] == [(0, 0), (6, 4)]
    assert roaming.views[2].begins == 14
    assert roaming.views[2].entry not in (4, 0)  # the token is beside its old home
    trail = trail_of(roaming, 0, 0, 30)
    assert trail[14] == roaming.views[2].entry
    assert all(there in (here, *cycle.neighbours[here]) for here, there in pairwise(trail))
    assert {*trail[14:22]} == {0, 1, 2, 3, 5}


@pytest.mark.parametrize("walk", ["lazy", "tour", "random-tour"])
def test_until_the_first_change_a_lone_token_goes_where_it_would_go_without_any(walk: str) -> None:
    star, starts = make_network("star", [f"c{k}" for k in range(6)]), set()
    late = with_changes(star, [Change(30, leave=["c1"])])
    for seed in range(6):
        plain, changing = (
            STCD(1, 1e-3, walk=walk).plan(10, 1, one, seed).roaming for one in (star, late)
        )
        trail = trail_of(plain, 0, 0, 20)
        assert trail_of(changing, 0, 0, 20) == trail
        starts.add(trail[0])
    assert len(starts) > 2


@pytest.mark.parametrize("walk", ["tour", "random-tour"])
def test_a_lone_tour_enters_each_view_from_where_it_was(walk: str) -> None:
    """Two leave one after the other, at any time: the token is never far from where it goes on."""
    path = make_network("path", [f"c{k}" for k in range(6)])
    for first, later in product((1, 4, 6, 7), (1, 2, 5, 6)):
        changes = [Change(first, leave=["c5"]), Change(first + later, leave=["c4"])]
        method = STCD(1, 1e-3, walk=walk, start="c0")
        roaming: Any = method.plan(10, 1, with_changes(path, changes), 0).roaming
        trail = trail_of(roaming, 0, 0, 24)
        assert [view.begins for view in roaming.views] == [0, first, first + later]
        assert [trail[view.begins] for view in roaming.views] == [
            view.entry for view in roaming.views
        ]
        assert all(there in (here, *path.neighbours[here]) for here, there in pairwise(trail))


@pytest.mark.parametrize(("iteration", "begins"), [(0, 0), (1, 1), (7, 2), (8, 2), (9, 3)])
def test_with_a_server_a_view_begins_at_the_next_sync(iteration: int, begins: int) -> None:
    path = make_network("path", [f"c{k}" for k in range(4)])
    network = with_changes(path, [Change(iteration, leave=["c3"])])
    views = MTCD(1, 4, 1, 1e-3).plan(10, 1, network, 0).roaming.views  # type: ignore[attr-defined]
    assert [view.begins for view in views] == sorted({0, begins})
    assert views[-1].absent == {3}


def test_the_nearest_who_is_there_and_the_way_to_somebody() -> None:
    cycle = make_network("cycle", [f"c{k}" for k in range(6)])
    assert nearest(cycle, 2, frozenset({1, 3})) == 2
    assert nearest(cycle, 2, frozenset({2})) == 1  # 1 and 3 are equally near
    assert nearest(cycle, 2, frozenset({1, 2})) == 3
    assert nearest(cycle, 2, frozenset({1, 2, 3})) == 0
    assert [next_on_way(cycle, client, 4) for client in range(6)] == [5, 0, 3, 4, 4, 4]


def test_a_server_of_rounds_sums_the_latest_uploads_and_their_penalties() -> None:
    """Client c0 joins at round 1: until then it counts as nothing."""
    data, model = make_data(Glm("ridge", l2=0.5), 12, [2, 1, 3], seed=5), Glm("ridge", l2=0.5)
    network = with_changes(make_network("complete", data.clients), [Change(1, join=["c0"])])
    parties: Any = SVFL(2, 2e-3).parties(model.problem(data), network, 0)
    server = parties.server
    progress, *sent = parties.opening
    assert (progress.payload.hop, progress.payload.t, progress.payload.penalty) == (0, 0, 0.0)
    assert [message.to for message in sent] == [1, 2]
    assert server.last_sync() == (0, 0)
    for message in sent:
        (upload,) = parties.clients[message.to].receive(message)
        answer = server.receive(upload)
    thetas = parties.parameters()
    assert [message.to for message in answer[1:]] == [0, 1, 2]
    assert server.last_sync() == (1, 1)
    assert answer[0].payload.penalty == pytest.approx(
        sum(0.25 * (theta**2).sum() for theta in thetas[1:])
    )
    expected = sum(block @ theta for block, theta in zip(data.blocks[1:], thetas[1:], strict=True))
    np.testing.assert_allclose(answer[0].payload.aggregate, expected)


@pytest.mark.parametrize("batch", [None, 4])
def test_rounds_from_given_parameters_begin_with_an_upload_of_all(batch: int | None) -> None:
    model = Glm("ridge", l2=0.5)
    data = make_data(model, 12, [2, 1, 3], seed=5)
    start = tuple(np.arange(1.0, 1.0 + block.shape[1]) for block in data.blocks)
    problem = replace(model.problem(data), start=start)
    parties: Any = SVFL(1, 2e-3, batch).parties(problem, make_network("path", data.clients), 0)
    answers = [parties.server.receive(upload) for upload in parties.opening]
    assert answers[:2] == [[], []]
    progress, *sent = answers[2]
    assert (progress.payload.hop, progress.payload.t) == (0, 0)
    rows = Batches(12, batch, 0).rows(0)
    expected = sum(block @ theta for block, theta in zip(data.blocks, start, strict=True))
    for message in sent:
        assert message.payload.t == 0
        np.testing.assert_allclose(
            message.payload.aggregate, expected if rows is None else expected[rows]
        )
        assert message.floats == (batch or 12)
    assert (progress.payload.aggregate is None) == (batch is not None)
    following = Batches(12, batch, 0).rows(1)
    for message, block in zip(sent, data.blocks, strict=True):
        client = parties.clients[message.to]
        (upload,) = client.receive(message)
        np.testing.assert_allclose(
            upload.payload.representation,
            (block @ client.parameters())[slice(None) if following is None else following],
        )


def test_the_batch_that_a_message_asks_for() -> None:
    assert (_next_batch(Shared(3, np.zeros(2))), _next_batch(Share(3))) == (4, None)
    assert (_requested_batch(Share(3)), _requested_batch(Shared(3, np.zeros(2)))) == (3, None)


def test_tokens_of_the_whole_network_share_a_walk_unless_it_is_drawn_for_each() -> None:
    lazy, drawn = (on_path(4, None, 6, tokens=3, walk=walk) for walk in ("lazy", "random-tour"))
    assert len({id(walk) for walk in lazy.walks}) == 1
    assert len({id(walk) for walk in drawn.walks}) == 3
    star = make_network("star", [f"c{k}" for k in range(7)])
    roaming = plan_roaming(star, 2, None, "random-tour", "c0", 0, 12)
    assert trail_of(roaming, 0, 0, 12) != trail_of(roaming, 1, 0, 12)


def test_views_of_changes_within_one_tour_begin_together() -> None:
    """The tour that is under way ends first, also where those after it are shorter."""
    network = make_network("path", [f"c{k}" for k in range(6)])
    changing = with_changes(
        network, [Change(1, leave=["c2", "c3", "c4", "c5"]), Change(2, join=["c2"])]
    )
    method = mtcd.STCD(1, 0.01, walk="tour", acceleration="anderson", start="c0")
    roaming: Any = method.plan(12, 1, changing, 0).roaming
    begins = [view.begins for view in roaming.views]
    assert begins == sorted(begins)
    assert begins[-1] == roaming.views[0].walks[0].length == 10
