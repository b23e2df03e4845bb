"""Clients of split networks, and the lone token, by hand: networks of one number each."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import pytest

from mtcd.methods.method import Method
from mtcd.methods.mtcd.client import Done, Share
from mtcd.methods.mtcd.mtcd import MTCD, STCD
from mtcd.methods.svfl.svfl import SVFL
from mtcd.models.splitnet.slots import journey_of, theta_0_of, visited_by
from mtcd.protocol.batches import Batches
from mtcd.protocol.model import EpochLoss, Visit
from mtcd.protocol.party import MONITOR, SERVER, Message
from one_number import SAMPLES, SmallStage, parties_of, run, token_for
from trails import trail_of


def test_each_token_trains_its_own_copy_and_the_sync_averages_them() -> None:
    """Token 0 comes twice, with token 1 in between; token 2 does not come."""
    parties, others = parties_of(MTCD(3, 4, 2, 0.1)), parties_of(MTCD(3, 4, 2, 0.1))
    client, alone = parties.clients[1], others.clients[1]
    assert [one.t for one in parties.clients] == [0, 0, 0]
    net, start, tokens = (
        client.network,
        client.network.theta.copy(),
        [token_for(parties, index) for index in range(2)],
    )
    copies = []
    for index in (0, 1, 0):
        client.visit(tokens[index])
        copies.append(net.theta.copy())
    token = token_for(others, 0)
    for _ in range(2):  # as if token 1 had not been here
        alone.visit(token)
    np.testing.assert_allclose(copies[2], alone.network.theta)
    np.testing.assert_allclose(tokens[0].aggregate, token.aggregate)
    # both started from theta_k, with the same aggregate
    np.testing.assert_allclose(copies[0], copies[1])
    assert parties.stage.lanes == [0, 1, 0]
    assert not np.allclose(copies[0], start)
    assert client.t == 0
    client.apply_sync(1)
    np.testing.assert_allclose(net.theta, start + (copies[2] - start + copies[1] - start) / 3)
    assert (client.t, client.start, client.copies, client.in_hand) == (1, {}, {}, None)
    client.apply_sync(2)  # nothing to combine
    assert client.t == 2


def test_a_copy_is_loaded_for_the_token_that_comes() -> None:
    client = parties_of(MTCD(3, 4, 1, 0.1)).clients[0]
    net = client.network
    seen = []
    for index, theta in ((2, 5.0), (0, 7.0), (2, 6.0), (0, 8.0), (1, 9.0)):
        client.load_copy(index)
        seen.append(float(net.theta[0]))
        net.theta = np.array([theta])
    assert seen == [1.0, 1.0, 5.0, 7.0, 1.0]
    assert client.in_hand == 1
    client.load_copy(1)
    assert net.theta == 9.0


def test_with_one_token_per_client_its_copy_is_theta_k_itself() -> None:
    client = parties_of(MTCD(1, 4, 1, 0.1, combine="cluster")).clients[0]
    client.load_copy(0)
    assert (client.in_hand, client.start) == (None, {})
    assert client.parameters().size == 0  # the network holds them


def test_copies_of_the_last_iteration_are_combined_before_the_next_visit() -> None:
    client = parties_of(MTCD(2, 4, 1, 0.1)).clients[0]
    client.load_copy(0)
    client.network.theta = np.array([3.0])
    parties = parties_of(MTCD(2, 4, 1, 0.1))
    client.visit(token_for(parties, 0, t=0))
    assert client.t == 0
    assert client.in_hand == 0
    client.network.theta = np.array([3.0])
    client.train(token_for(parties, 1, t=1))
    assert client.t == 1
    # of two tokens one was here
    np.testing.assert_allclose(client.start["theta"], 1.0 + (3.0 - 1.0) / 2)


@pytest.mark.parametrize(
    ("method", "hop", "statistics", "visited"),
    [
        (STCD(2, 0.1), 3, True, set()),
        (MTCD(1, 4, 2, 0.1, combine="cluster"), 3, True, {1}),
        (MTCD(2, 4, 2, 0.1), 3, False, {1}),
        (MTCD(1, 4, 2, 0.1, batch=2, combine="cluster"), None, False, set()),
    ],
    ids=lambda value: value.describe() if isinstance(value, Method) else None,
)
def test_what_a_visit_asks_of_the_network(
    method: Any, hop: int | None, statistics: bool, visited: set[int]
) -> None:
    parties = parties_of(method)
    client, token = parties.clients[1], token_for(parties, 0, hop=3)
    client.visit(token)
    assert client.network.visits == [
        Visit(0, hop, 2, 0.1, fuses=False, updates_statistics=statistics)
    ]
    assert visited_by(token) == visited


def test_an_upload_is_the_representation_of_the_combined_copies_without_a_penalty() -> None:
    parties = parties_of(MTCD(2, 3, 1, 0.1, batch=2))
    client = parties.clients[2]
    client.load_copy(1)
    client.network.theta = np.array([5.0])
    (message,) = client.receive(Message(SERVER, 2, Share(1)))
    np.testing.assert_allclose(
        message.payload.representation, 4.0 * client.network.rows(client.network.x, 1)
    )
    assert (message.to, message.floats, message.payload.penalty) == (SERVER, 2, 0.0)
    assert client.t == 1
    assert parties.stage.lanes == [2]


@pytest.mark.parametrize(("method", "hops"), [(MTCD(2, 1, 1, 0.1, batch=2), 1), (SVFL(1, 0.1), 0)])
def test_the_last_visit_is_charged_a_hop_unless_every_round_goes_through_the_server(
    method: Any, hops: int
) -> None:
    parties = parties_of(method)
    (message,) = parties.clients[1].receive(Message(SERVER, 1, token_for(parties, 1)))
    assert (message.to, message.floats) == (SERVER, 0)
    assert message.payload == Done(1, frozenset() if method.batch else frozenset({1}))
    assert message.hop_floats == hops * (message_floats(method) + 1), "theta_0 has one number"


def test_a_hop_of_a_split_network_counts_as_a_change() -> None:
    parties = parties_of(MTCD(2, 4, 1, 0.1))
    (message,) = parties.clients[1].receive(Message(SERVER, 1, token_for(parties, 0)))
    assert message.payload.hop == 1
    assert not message.unchanged


def message_floats(method: Any) -> int:
    return method.batch or SAMPLES


# The lone token


@pytest.mark.parametrize("clients", [1, 2, 4])
def test_the_first_pass_collects_all_representations_and_ends_where_training_starts(
    clients: int,
) -> None:
    for seed in range(8):
        parties = parties_of(STCD(1, 0.1), clients=clients, seed=seed)
        plan = parties.clients[0].plan
        token = parties.token
        way = plan.first_pass
        assert way[-1] == plan.roaming.first(0, 0)
        assert (token.index, token.t, token.hop, journey_of(token).heading, token.penalty) == (
            0,
            0,
            1 - len(way),
            way[0],
            0.0,
        )
        waiting = deque(parties.parties().opening)
        went = []
        while token.hop < 0:
            message = waiting.popleft()
            assert message.to != MONITOR, "no progress during the first pass"
            went.append(message.to)
            waiting += parties.clients[message.to].receive(message)
            assert waiting[0].hop_floats == 0
            assert waiting[0].floats == SAMPLES + 1
            assert journey_of(token).heading == waiting[0].to
        assert went == [*way[:-1]]
        assert not any(net.visits for net in parties.stage.clients)
        (arriving, report) = waiting if clients > 1 else reversed(waiting)
        assert (arriving.to, report.to) == (way[-1], MONITOR)
        assert (report.payload.hop, report.payload.t, report.payload.penalty) == (0, 0, 0.0)
        trail = [arriving.to]
        for _ in range(9):
            arriving = parties.clients[arriving.to].receive(arriving)[0]
            trail.append(arriving.to)
            assert arriving.hop_floats == arriving.floats == SAMPLES + 1
        assert trail == trail_of(plan.roaming, 0, 0, 10)


def test_without_a_first_pass_the_token_starts_empty_where_training_starts() -> None:
    starts = set()
    for seed in range(8):
        parties = parties_of(STCD(1, 0.1, first_pass=False), clients=4, seed=seed)
        token, first = parties.token, parties.clients[0].plan.roaming.first(0, 0)
        starts.add(first)
        assert (token.hop, journey_of(token).heading) == (0, first)
        progress, arriving = parties.parties().opening
        assert (progress.sender, progress.to, arriving.sender, arriving.to) == (
            first,
            MONITOR,
            first,
            first,
        )
        assert (progress.floats, arriving.floats, arriving.hop_floats) == (0, 0, 0)
        parties.clients[first].receive(arriving)
        assert not parties.stage.clients[first].joined
    assert len(starts) > 1


def test_a_lone_token_reports_its_loss_and_the_one_at_the_start() -> None:
    """At the start its first client has not yet added its own representation."""
    parties = parties_of(STCD(1, 0.1, fusion_client="c1"))
    first, fresh = (
        parties.clients[0].plan.first_pass[-1],
        SmallStage(3, Batches(SAMPLES, None, 0), sums=True),
    )
    H = fresh.aggregate([net.represent(0) for k, net in enumerate(fresh.clients) if k != first])
    start = fresh.fusion.loss(H, fresh.fusion.values(), 0)
    told = run(parties, 4)
    assert [progress for progress, _ in told] == [(hop, 0, None, 0.0) for hop in range(4)]
    assert [loss.start for _, loss in told if loss] == pytest.approx([start] * 4)
    nets = parties.stage.clients
    latest = fresh.fusion.loss(
        fresh.aggregate([net.represent(0) for net in nets]), theta_0_of(parties.token), 0
    )
    assert [told[0][1], told[3][1]] == [
        EpochLoss(start, pytest.approx(loss)) for loss in (start, latest)
    ]
    assert all(visit.fuses == (k == 1) for k, net in enumerate(nets) for visit in net.visits)
