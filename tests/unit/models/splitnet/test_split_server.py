"""The server of split networks, and how all parties are made and resumed, by hand: networks of one
number each."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mtcd.core.errors import ConfigError, MtcdError, NetworkError
from mtcd.engines.local import LocalEngine
from mtcd.methods.method import Method
from mtcd.methods.mtcd.client import Share
from mtcd.methods.mtcd.mtcd import MTCD, STCD
from mtcd.methods.svfl.svfl import SVFL
from mtcd.models.splitnet.parties import UpdateFusion
from mtcd.models.splitnet.setup import fusing, opening_cost, split_parties, split_plan, split_sizes
from mtcd.network.changes import with_changes
from mtcd.network.topology import Change, make_network
from mtcd.privacy.masked.masked import with_masks
from mtcd.protocol.ledger.costs import Costs, Sizes
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.protocol.model import EpochLoss
from mtcd.protocol.party import MONITOR, SERVER, Message
from mtcd.protocol.state import Snapshot
from one_number import SAMPLES, SmallProblem, parties_of, run, run_to_first_sync


def test_theta_0_is_updated_once_an_iteration_with_its_own_steps() -> None:
    for method, steps in (
        (MTCD(2, 3, 2, 0.1), 6),
        (MTCD(2, 3, 2, 0.1, fusion_updates=5), 5),
        (SVFL(2, 0.1), 2),
        (SVFL(2, 0.1, fusion_updates=5), 5),
    ):
        parties = parties_of(method)
        run(parties, 4)
        assert parties.stage.fusion.updates == [(t, steps, 0.1) for t in range(3)]


def test_progress_counts_the_hops_of_all_syncs() -> None:
    for method, hops in ((MTCD(2, 3, 2, 0.01), 3), (SVFL(2, 0.01), 1)):
        told = [progress for progress, _ in run(parties_of(method), 3)]
        assert told == [(t * hops, t, None, 0.0) for t in range(3)]


def test_an_update_of_theta_0_that_comes_after_the_sync_is_left_out() -> None:
    parties = parties_of(MTCD(2, 3, 1, 0.1))
    server = parties.server
    run_to_first_sync(parties)
    server.t = 1
    assert server.receive(Message(SERVER, SERVER, UpdateFusion(0))) == []
    assert parties.stage.fusion.updates == []
    server.receive(Message(SERVER, SERVER, UpdateFusion(1)))
    server.receive(Message(SERVER, SERVER, UpdateFusion(1)))
    assert [t for t, *_ in parties.stage.fusion.updates] == [1]


def test_the_first_tokens_carry_the_sum_of_all_representations() -> None:
    parties = parties_of(MTCD(2, 3, 1, 0.1))
    H = parties.stage.aggregate([net.represent(0) for net in parties.stage.clients])
    progress, *tokens, update = run_to_first_sync(parties)
    assert progress.to == MONITOR
    assert update.payload == UpdateFusion(0)
    assert [(m.payload.index, m.payload.t, m.payload.hop, m.payload.penalty) for m in tokens] == [
        (0, 0, 0, 0.0),
        (1, 0, 0, 0.0),
    ]
    for message in tokens:
        np.testing.assert_allclose(message.payload.aggregate, H)
        assert message.payload.slots["theta_0"] == parties.stage.fusion.values()
        assert message.payload.floats == message.floats == SAMPLES + 1
        assert message.payload.wide_floats == 0


@pytest.mark.parametrize(("batch", "per_epoch"), [(None, 1), (2, 3)])
def test_the_loss_of_an_epoch_is_the_mean_over_its_batches(
    batch: int | None, per_epoch: int
) -> None:
    """That of the last is of the aggregate before its update, as are the others; the first is that
    at the start."""
    parties = parties_of(SVFL(1, 0.05, batch))
    server, losses, means = parties.server, [], []
    start_iteration = server.start_iteration

    def noted() -> Sequence[Message]:
        losses.append(
            parties.stage.fusion.loss(server.aggregate, parties.stage.fusion.values(), server.t)
        )
        return start_iteration()

    server.start_iteration = noted
    told = run(parties, 2 * per_epoch + 1)
    for t, (_, loss) in enumerate(told):
        assert (loss is None) == bool(t % per_epoch)
        if loss is not None:
            means.append(loss.loss)
            assert loss.start == pytest.approx(losses[0] if batch is None else 1000.0)
    expected = [
        np.mean(losses[max(0, e - per_epoch + 1) : e + 1]) for e in (0, per_epoch, 2 * per_epoch)
    ]
    assert means == pytest.approx(expected)


@pytest.mark.parametrize(
    ("method", "asked"),
    [
        (MTCD(2, 2, 1, 0.1), "visited"),
        (MTCD(2, 2, 1, 0.1, batch=2), "all"),
        (SVFL(1, 0.1), "all"),
        (MTCD(clusters=[[0, 1], [2, 3, 4]], hops=2, stepsize=0.1), "none"),
    ],
    ids=["overlapping", "batches", "svfl", "clusters"],
)
def test_at_a_sync_those_upload_whose_representation_the_server_does_not_have(
    method: Any, asked: str
) -> None:
    parties = parties_of(method, clients=5)
    server, visited = parties.server, set()
    waiting = deque(run_to_first_sync(parties))
    assert (
        bool(server.uploads)
        == server.keeps_uploads
        == (asked in ("visited", "all") and method.batch is None)
    )
    while server.t == 0:
        message = waiting.popleft()
        if message.to >= 0:
            visited.add(message.to)
        if message.to != MONITOR:
            party = server if message.to == SERVER else parties.clients[message.to]
            sent = party.receive(message)
            waiting += sent
    questions = [message.to for message in sent if isinstance(message.payload, Share)]
    assert all(message.payload.t == 1 for message in sent if isinstance(message.payload, Share))
    assert questions == {"visited": sorted(visited), "all": [0, 1, 2, 3, 4], "none": []}[asked]
    assert server.awaited == {*questions}
    assert server.back == ({} if asked != "none" else server.back)
    assert len(visited) < 5 or asked == "all"
    if asked == "none":  # the changes of the tokens add up
        np.testing.assert_allclose(
            server.aggregate, sum(net.represent(1) for net in parties.stage.clients)
        )


def test_an_upload_counts_until_the_next_one_of_the_same_client() -> None:
    parties = parties_of(MTCD(2, 2, 1, 0.1), clients=4)
    run(parties, 5)
    H = sum(net.represent(0) for net in parties.stage.clients)
    np.testing.assert_allclose(parties.server.aggregate, H)
    assert sorted(parties.server.uploads) == [0, 1, 2, 3]


@pytest.mark.parametrize(("combine", "lanes"), [("average", 1), ("cluster", 2)])
def test_tokens_that_may_meet_share_one_lane(combine: str, lanes: int) -> None:
    problem, path = SmallProblem(), make_network("path", ["c0", "c1", "c2"])
    split_parties(MTCD(2, 3, 1, 0.1, combine=combine), problem, path, 0)
    assert problem.lanes == lanes
    split_parties(SVFL(1, 0.1), problem, path, 0)
    assert problem.lanes == 3


# Setup


def test_the_model_is_gathered_with_copies_combined_and_theta_0_of_the_token() -> None:
    parties = parties_of(MTCD(2, 3, 1, 0.1))
    client = parties.clients[1]
    client.load_copy(0)
    client.network.theta = np.array([4.0])
    *thetas, fusion = parties.parties().parameters()
    assert [float(theta["theta"][0]) for theta in thetas] == [1.0, 3.0, 3.0]  # 2 + (4 - 2)/2
    assert fusion["parameter.0"] == 0.5
    lone = parties_of(STCD(1, 0.1))
    lone.token.put("theta_0", [np.array([7.0])])
    assert lone.parties().parameters()[-1]["parameter.0"] == 7.0


@pytest.mark.parametrize(
    "method",
    [
        SVFL(1, 0.1),
        SVFL(1, 0.1, batch=2),
        MTCD(2, 2, 1, 0.1),
        STCD(1, 0.1),
        STCD(1, 0.1, first_pass=False),
    ],
    ids=["svfl", "batches", "overlapping", "stcd", "stcd, empty"],
)
def test_a_training_goes_on_from_its_snapshot(method: Any) -> None:
    whole, half, rest = (parties_of(method, clients=4) for _ in range(3))
    expected = run(whole, 8)
    run(half, 5)
    snapshot = half.snapshot()
    opening = rest.resume(snapshot)
    assert [client.t for client in rest.clients] == [
        half.clients[0].t if half.server is None else half.server.t
    ] * 4
    engine = LocalEngine(replace(rest.parties(), opening=opening), Ledger())
    found = []
    for progress in engine.run():
        found.append(
            (
                (progress.hop, progress.t, progress.aggregate, progress.penalty),
                rest.stage.epoch_loss(),
            )
        )
        if len(found) == 4:
            break
    assert [progress for progress, _ in found] == [progress for progress, _ in expected[4:]]
    for (_, ours), (_, theirs) in zip(found, expected[4:], strict=True):
        assert ours == (None if theirs is None else EpochLoss(*map(pytest.approx, theirs)))


def test_snapshots_of_before_losses_were_kept_are_resumed() -> None:
    for method in (SVFL(1, 0.1, batch=2), STCD(1, 0.1)):
        parties = parties_of(method)
        run(parties, 5)
        facts, tensors = parties.snapshot()
        known = {name: value for name, value in facts.items() if "loss" not in name}
        assert len(known) < len(facts)
        again = parties_of(method)
        again.resume(Snapshot(known, tensors))
        told = again.stage.epoch_loss()
        if again.server is None:
            assert told.start == told.loss  # it counts from here
        else:
            assert (again.server.losses, again.server.start_loss) == (0.0, 1000.0)


@pytest.mark.parametrize("method", [SVFL(1, 0.1, batch=2), MTCD(2, 2, 1, 0.1), STCD(1, 0.1)])
def test_states_of_parties_are_restored_with_their_networks(method: Any) -> None:
    parties, others = parties_of(method), parties_of(method)
    run(parties, 5)
    server = [] if parties.server is None else [parties.server]
    for party, other in zip(
        [*parties.clients, *server], [*others.clients, others.server], strict=False
    ):
        other.restore(party.state())
        assert other.state() == party.state()
    assert [net.theta for net in others.stage.clients] == [
        net.theta for net in parties.stage.clients
    ]
    if server:
        assert others.stage.fusion.w == parties.stage.fusion.w > 0.5
        assert (others.server.t, others.server.fused) == (4, 3)


def test_a_snapshot_of_other_networks_is_refused() -> None:
    parties = parties_of(SVFL(1, 0.1))
    run(parties, 2)
    facts, tensors = parties.snapshot()
    del tensors["client/1/theta"]
    with pytest.raises(MtcdError, match="of other networks than those given"):
        parties.resume(Snapshot(facts, tensors))


def test_a_token_under_way_elsewhere_is_adopted() -> None:
    here, there = parties_of(STCD(1, 0.1)), parties_of(STCD(1, 0.1))
    run(there, 6)
    here.adopt([Message(0, 1, Share(0)), Message(0, 1, there.token)])
    for name in ("t", "hop", "previous", "slots"):
        assert getattr(here.token, name) == getattr(there.token, name)
    np.testing.assert_array_equal(here.token.aggregate, there.token.aggregate)
    parties_of(SVFL(1, 0.1)).adopt([Message(0, 1, there.token)])  # a server has no token


def test_masked_uploads_are_sums() -> None:
    path = make_network("path", ["c0", "c1", "c2"])
    method = with_masks(SVFL(1, 0.1, batch=2))
    with pytest.raises(ConfigError, match="set model.aggregation to sum or mean"):
        split_parties(method, SmallProblem(sums=False), path, 0)
    assert split_parties(method, SmallProblem(), path, 0).aggregation.hides_parts
    assert not split_parties(
        SVFL(1, 0.1), SmallProblem(sums=False), path, 0
    ).aggregation.hides_parts
    with pytest.raises(ConfigError, match="masked needs batch for split networks, or svfl"):
        split_parties(with_masks(MTCD(2, 3, stepsize=0.1)), SmallProblem(), path, 0)


@pytest.mark.parametrize(
    ("method", "says"),
    [
        (MTCD(2, 3, stepsize=0.1, combine="optimal"), "rest on linear representations"),
        (
            MTCD(2, 4, stepsize=0.1, walk="tour", combine="cluster", acceleration="anderson"),
            "rest on linear",
        ),
        (MTCD(2, 3, stepsize=0.1, local_solver="majorise"), "rest on linear representations"),
        (STCD(stepsize=0.1), "stcd has no server to hold the running statistics"),
    ],
    ids=lambda value: value.describe() if isinstance(value, Method) else None,
)
def test_what_split_networks_cannot_be_trained_with(method: Method, says: str) -> None:
    problem, path = SmallProblem(), make_network("path", ["c0", "c1", "c2"])
    problem.fusion_keeps_statistics = method.kind == "stcd"
    with pytest.raises(ConfigError, match=says):
        split_parties(method, problem, path, 0)


def test_changes_are_for_linear_models() -> None:
    changing = with_changes(make_network("path", ["c0", "c1", "c2"]), [Change(3, leave=["c0"])])
    for method in (SVFL(1, 0.1), MTCD(2, 3, stepsize=0.1)):
        with pytest.raises(ConfigError, match="network.changes rest"):
            split_parties(method, SmallProblem(), changing, 0)


def test_a_server_holds_the_statistics_of_theta_0() -> None:
    problem = SmallProblem()
    problem.fusion_keeps_statistics = True
    split_parties(MTCD(2, 3, stepsize=0.1), problem, make_network("path", ["c0", "c1", "c2"]), 0)


def test_sizes_of_messages_and_the_cost_before_the_first_iteration() -> None:
    costs, path, widths = Costs(10, per="float"), make_network("path", ["a", "b", "c"]), [1, 2, 6]
    token = 2 * 9 + 4  # of two samples, and theta_0

    def plan(method: MTCD) -> Any:
        return split_plan(method, 2, 9, path, 0)

    clusters = plan(MTCD(2, 3, stepsize=0.1, combine="cluster"))
    assert split_sizes(clusters, widths, 4) == Sizes(token, token, token)
    crossing = plan(MTCD(2, 3, stepsize=0.1))
    assert split_sizes(crossing, widths, 4) == Sizes(2 * 3, token, token)
    assert opening_cost(crossing, widths, 4, costs) == 3 * (2 * 3)
    lone = plan(STCD(stepsize=0.1, start="a"))
    assert opening_cost(lone, widths, 4, costs) == pytest.approx(2 * token / 10)
    assert opening_cost(plan(STCD(stepsize=0.1, first_pass=False)), widths, 4, costs) == 0


def test_theta_0_is_updated_at_one_client_or_at_each() -> None:
    cycle = make_network("cycle", [f"c{k}" for k in range(5)])
    assert fusing(STCD(), cycle) == {0}
    assert fusing(STCD(fusion_client="c3"), cycle) == {3}
    assert fusing(STCD(fusion_client=3), cycle) == {3}
    assert fusing(STCD(fusion_client="each"), cycle) == {0, 1, 2, 3, 4}
    assert fusing(STCD(fusion_client="each"), make_network("path", ["a", "each", "b"])) == {1}
    with pytest.raises(NetworkError, match="fusion_client: no client is called 'c9'"):
        fusing(STCD(fusion_client="c9"), cycle)
