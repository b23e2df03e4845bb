"""A server that gathers uploads goes on without clients that stay dead, with what they told
last."""

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from fixed_blocks import best_without
from gathering_worlds import (
    BEST,
    CLIENTS,
    DATA,
    METHODS,
    MODEL,
    NETWORK,
    PROBLEM,
    UPLOADS,
    make,
    world_of,
)
from mtcd.core.errors import MtcdError
from mtcd.federation.delivery.journal import FileJournal, MemoryJournal
from mtcd.federation.delivery.reliable_party import ReliableParty
from mtcd.models.glm.model import Glm
from mtcd.privacy.masked.masked import with_masks
from mtcd.privacy.masked.recovery import MaskedUploads
from mtcd.protocol.codec.envelopes import Cancelled, End
from mtcd.protocol.codec.records import pack, unpack
from mtcd.protocol.gathering import Fresh
from mtcd.protocol.party import SERVER, Parties
from mtcd.testing.simulator.world import Faults, World
from problems import make_data
from simulated_deliveries import EVERYTHING, assert_same, carry, run


def cast_of(name: str) -> Parties:
    return METHODS[name].parties(MODEL.problem(DATA), NETWORK, 7)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", METHODS)
def test_with_any_faults_that_pass_the_training_is_the_same(name: str, seed: int) -> None:
    world = World(lambda: cast_of(name), seed, make, EVERYTHING)
    run(world, 40)
    assert_same("average" if name == "mini-batches" else name, world)
    assert set(world.processed.values()) <= {0, 1}


@pytest.mark.parametrize("seed", [1, pytest.param(0, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("uploads", UPLOADS)
def test_training_goes_on_without_the_dead_and_they_may_come_back(
    uploads: str, name: str, seed: int
) -> None:
    world = world_of(uploads, name, seed, Faults(loss=0.05, duplicate=0.1), reports=8)
    before, at_first = world.parameters(), world.objective()
    world.lose(1, 3)
    assert world.parties[SERVER].policy.waits_for == frozenset()
    world.run(40)
    waiting = world.parties[SERVER].unacknowledged()
    kept = Counter(one.to for one in waiting if not isinstance(one.message.payload, Cancelled))
    # the last request, and one without an ack, however many rounds they have missed
    assert max(kept[1], kept[3]) <= (2 if uploads == "plain uploads" else 4)
    held = world.parameters()
    for k in CLIENTS:
        assert (np.abs(held[k] - before[k]).max() > 1e-4) == (k not in (1, 3))
    assert world.objective() < at_first
    if name == "rounds":
        assert world.objective() == pytest.approx(best_without(PROBLEM, (1, 3), held), rel=1e-6)
    if uploads == "double masks":
        assert world.sums[-1][1] == (0, 2, 4)
    world.regain(1, 3)
    world.run(140)
    assert world.objective() == pytest.approx(BEST, rel=1e-6 if name == "rounds" else 0.02)


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 6))]
)
@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize(("uploads", "crash"), [("plain uploads", 0.02), ("double masks", 0.004)])
def test_false_and_right_suspicions_at_any_moment(
    uploads: str, crash: float, name: str, seed: int
) -> None:
    faults = Faults(loss=0.1, duplicate=0.1, crash=crash, cut=0.02, hang=0.02)
    world = world_of(uploads, name, seed, faults)
    while world.time < 2000:
        world.step()
        if world.random.random() < 0.01:
            world.believe(world.random.choice(CLIENTS), gone=world.random.random() < 0.5)
    assert len(world.reports) > 4
    assert uploads == "plain uploads" or world.revealed() == []
    world.faults = Faults()
    for k in CLIENTS:
        world.believe(k, gone=False)
    world.run(100)
    assert world.objective() == pytest.approx(BEST, rel=1e-6 if name == "rounds" else 0.02)


def test_with_all_clients_gone_the_server_waits() -> None:
    world = world_of("plain uploads", "rounds", 1, reports=3)
    world.lose(*CLIENTS)
    told = len(world.reports)
    for _ in range(50):
        world.step()
    assert len(world.reports) == told
    assert world.parties[SERVER].policy.waits_for == frozenset(CLIENTS)


def all_parties(name: str) -> tuple[ReliableParty, list[ReliableParty]]:
    return make(SERVER, cast_of(name), MemoryJournal()), [
        make(k, cast_of(name), MemoryJournal()) for k in CLIENTS
    ]


def test_the_request_that_waits_for_a_client_is_kept_up_to_date() -> None:
    server, clients = all_parties("rounds")
    server.peer_lost(4)
    for round_number in (1, 2, 3):
        for client in clients[:4]:
            carry(server, client)
            carry(client, server)
        (waiting,) = [one for one in server.unacknowledged() if one.to == 4]
        assert (waiting.sequence, waiting.iteration, waiting.message.payload.round) == (
            0,
            round_number,
            round_number,
        )
        np.testing.assert_array_equal(waiting.message.payload.aggregate, server.party.aggregate)
        penalties = [one.party.model.penalty(one.party.theta) for one in clients[:4]]
        assert server.party.penalty == pytest.approx(sum(penalties)), (
            "the other has uploaded nothing yet"
        )
    server.peer_found(4)
    carry(server, clients[4])
    carry(clients[4], server)
    assert set(server.party.gathering.here) == {4}, (
        "its answer is that of the round that the others are in"
    )


def test_a_client_that_answers_late_is_requested_again_and_its_upload_remembered() -> None:
    server, clients = all_parties("rounds")
    carry(server, clients[4])
    server.peer_lost(4)
    for client in clients[:4]:
        carry(server, client)
        carry(client, server)
    assert server.party.round == 1
    assert not [one for one in server.unacknowledged() if one.to == 4], (
        "it has not answered the first one"
    )
    server.peer_found(4)
    carry(clients[4], server)
    assert not server.party.gathering.here
    assert server.policy.uploads.last_upload(4).representation.any()
    (request,) = [one for one in server.unacknowledged() if one.to == 4]
    assert (request.sequence, request.iteration, request.message.payload.round) == (1, 1, 1)


def test_with_double_masks_the_sum_goes_on_when_a_client_is_down_unless_the_training_has_ended() -> (
    None
):
    delivery: Any = SimpleNamespace(ended=None, down=frozenset({2}), reports=["earlier"], commits=0)
    delivery.send = lambda messages, cause: messages
    delivery.commit = lambda: setattr(delivery, "commits", delivery.commits + 1)
    server: Any = SimpleNamespace(down=frozenset())
    server.advance = lambda: [f"without {sorted(server.down)}"]
    uploads = MaskedUploads(cast(Any, SimpleNamespace(delivery=delivery)), server)
    for ended in (None, End("stopped", 1, 3)):
        delivery.ended = ended
        uploads.complete_without_down()
        assert (delivery.reports, delivery.commits) == (["earlier", "without [2]"], 1)


def test_with_double_masks_too_the_server_waits_for_any_client_while_tokens_roam() -> None:
    method = with_masks(METHODS["mini-batches"], "double-masked")  # type: ignore[attr-defined]
    server = make(SERVER, method.parties(PROBLEM, NETWORK, 7), MemoryJournal())
    server.down = frozenset({0, 1, 3})
    assert server.policy.waits_for == {0, 1, 3}, "their keys are missing"
    server.policy.tokens_out = True
    assert server.policy.waits_for == frozenset()
    server.down = frozenset(CLIENTS)
    assert server.policy.waits_for == frozenset(CLIENTS)


def test_uploads_have_room_for_every_output_of_every_sample_of_every_client() -> None:
    model = Glm("multinomial", l2=0.3)
    data = make_data(model, 9, [2, 1, 2, 1, 1], seed=3)
    parties = METHODS["rounds"].parties(model.problem(data), NETWORK, 7)
    server = make(SERVER, parties, MemoryJournal())
    outputs = server.party.aggregate.shape[-1]
    assert outputs > 1
    assert server.policy.uploads.array.shape == (5, 9, outputs)


def test_uploads_lie_beside_the_journal_and_are_not_written_at_every_commit(tmp_path: Path) -> None:
    def reliable(number: int) -> ReliableParty:
        return make(number, cast_of("rounds"), FileJournal(tmp_path / str(number)))

    for envelope in reliable(SERVER).unacknowledged():
        client = reliable(envelope.to)
        client.deliver(unpack(pack(envelope)))
        if envelope.to < 3:
            (answer,) = client.unacknowledged()
            reliable(SERVER).deliver(unpack(pack(answer)))
    server = reliable(SERVER)
    assert set(server.party.gathering.here) == {0, 1, 2}
    for k in (0, 1, 2):
        kept = reliable(k).party
        expected = Fresh(kept.model.represent(kept.theta), kept.model.penalty(kept.theta))
        assert pack(server.party.gathering.here[k]) == pack(expected)
    assert isinstance(server.snapshot()["party"]["gathering"], list)
    file = tmp_path / f"{SERVER}.uploads"
    assert file.stat().st_mode & 0o077 == 0
    file.write_bytes(b"short")
    with pytest.raises(MtcdError, match="uploads"):
        reliable(SERVER)
