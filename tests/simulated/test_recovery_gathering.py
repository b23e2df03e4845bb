"""A server that gathers uploads goes on without clients that stay dead, with what they told
last."""

from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from mtcd.core.errors import MtcdError
from mtcd.federation.delivery.journal import FileJournal, Journal, MemoryJournal
from mtcd.federation.delivery.reliable_party import Delivery, ReliableParty
from mtcd.federation.recovery.choose import make_reliable_party
from mtcd.methods.method import Method
from mtcd.methods.mtcd.mtcd import MTCD
from mtcd.methods.svfl.svfl import SVFL
from mtcd.models.glm.model import Glm
from mtcd.models.glm.optimum.optimum import optimum
from mtcd.network.topology import make_network
from mtcd.privacy.masked.masked import with_masks
from mtcd.privacy.masked.recovery import MaskedUploads
from mtcd.protocol.codec.envelopes import Cancelled, End, Envelope
from mtcd.protocol.codec.records import pack, unpack
from mtcd.protocol.gathering import Fresh
from mtcd.protocol.party import SERVER, Parties
from mtcd.testing.simulator.world import Crash, Faults, World
from problems import make_data
from simulated_deliveries import assert_same, run

METHODS: dict[str, Method] = {
    "svfl": SVFL(stepsize=0.02, local_updates=2),
    "svfl, mini-batch": SVFL(stepsize=0.005, batch=6),
    "mini-batch": MTCD(tokens=2, hops=3, stepsize=0.005, batch=6),
}
MODEL = Glm("ridge", alpha=3.0)
DATA = make_data(MODEL, 12, [2, 1, 2, 1], seed=3)
PROBLEM = MODEL.problem(DATA)
NETWORK = make_network("complete", DATA.clients)
CLIENTS = range(len(DATA.clients))
EVERYTHING = Faults(loss=0.1, duplicate=0.1, crash=0.02, cut=0.02, hang=0.02)
BEST = optimum(PROBLEM.blocks, PROBLEM.labels, PROBLEM.loss, PROBLEM.penalties).value


def cast_of(name: str) -> Parties:
    return METHODS[name].parties(MODEL.problem(DATA), NETWORK, 7)


def make(number: int, parties: Parties, journal: Journal) -> ReliableParty:
    return make_reliable_party(number, parties, journal, NETWORK)


class Listening(World):
    """Writes down by itself what each client told last of each sample."""

    def __post_init__(self) -> None:
        self.heard = np.zeros((len(CLIENTS), PROBLEM.samples))
        super().__post_init__()

    def start(self, number: int) -> None:
        super().start(number)
        if number == SERVER:
            self.parties[SERVER].deliver = partial(self.deliver, self.parties[SERVER])

    def deliver(self, server: ReliableParty, envelope: Envelope) -> Delivery:
        told = envelope.message.payload
        if isinstance(told, Fresh) and not server.is_duplicate(envelope):
            rows = server.policy.uploads.batches.rows(server.policy.batch_of(envelope.iteration))
            self.heard[envelope.sender, slice(None) if rows is None else rows] = told.representation
        delivery = type(server).deliver(server, envelope)
        if delivery.reports:
            self.check(server)
        return delivery

    def check(self, server: ReliableParty) -> None:
        """A sum was made just now: it is that of what was told last."""
        rows = server.policy.uploads.batches.rows(server.policy.now)
        expected = self.heard.sum(axis=0)
        np.testing.assert_allclose(
            server.party.aggregate, expected if rows is None else expected[rows], atol=1e-12
        )

    def believe(self, k: int, gone: bool) -> None:
        """All links that are there notice."""
        for number, reliable in list(self.parties.items()):
            reliable.reports.clear()
            try:
                (reliable.peer_lost if gone else reliable.peer_found)(k)
            except Crash:
                self.crash(number, self.time + 5)
            if reliable.reports:
                self.reports += reliable.reports
                self.check(reliable)

    def objective(self) -> float:
        """Of what all clients hold."""
        theta = self.parameters()
        return PROBLEM.read_off(
            PROBLEM.aggregate(theta), sum(PROBLEM.client(k).penalty(theta[k]) for k in CLIENTS)
        )


def best_without(dead: Sequence[int], held: Sequence[np.ndarray]) -> float:
    """The optimum of the others' blocks, those of the dead as they are. Squared loss: they shift
    the labels."""
    told = sum(PROBLEM.client(k).represent(held[k]) for k in dead)
    living = [k for k in CLIENTS if k not in dead]
    blocks, penalties = [PROBLEM.blocks[k] for k in living], [PROBLEM.penalties[k] for k in living]
    theirs = sum(PROBLEM.client(k).penalty(held[k]) for k in dead)
    return optimum(blocks, PROBLEM.labels - told, PROBLEM.loss, penalties).value + theirs


def listening(name: str, seed: int, faults: Faults) -> Listening:
    return Listening(lambda: cast_of(name), seed, make, faults)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", METHODS)
def test_with_any_faults_that_pass_the_training_is_the_same(name: str, seed: int) -> None:
    world = World(lambda: cast_of(name), seed, make, EVERYTHING)
    run(world, 40)
    assert_same("average" if name == "mini-batch" else name, world)
    assert set(world.processed.values()) <= {0, 1}


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", METHODS)
def test_training_goes_on_without_the_dead_and_they_may_come_back(name: str, seed: int) -> None:
    world = listening(name, seed, Faults(loss=0.05, duplicate=0.1))
    run(world, 8)
    before, at_first = world.parameters(), world.objective()
    for k in (1, 3):
        world.crash(k)
        world.believe(k, gone=True)
    assert world.parties[SERVER].policy.waits_for == frozenset()
    run(world, 40)
    waiting = world.parties[SERVER].unacknowledged()
    kept = Counter(one.to for one in waiting if not isinstance(one.message.payload, Cancelled))
    # the last request, and one without an ack, however many rounds they have missed
    assert max(kept[1], kept[3]) <= 2
    held = world.parameters()
    for k in CLIENTS:
        assert (np.abs(held[k] - before[k]).max() > 1e-4) == (k not in (1, 3))
    assert world.objective() < at_first
    if name == "svfl":
        assert world.objective() == pytest.approx(best_without((1, 3), held), rel=1e-6)
    for k in (1, 3):
        world.start(k)
        world.believe(k, gone=False)
    run(world, 130)
    assert world.objective() == pytest.approx(BEST, rel=1e-6 if name == "svfl" else 0.02)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", METHODS)
def test_false_and_right_suspicions_at_any_moment(name: str, seed: int) -> None:
    world = listening(name, seed, EVERYTHING)
    while world.time < 1500:
        world.step()
        if world.random.random() < 0.01:
            world.believe(world.random.choice(CLIENTS), gone=world.random.random() < 0.5)
    assert len(world.reports) > 4
    world.faults = Faults()
    for k in CLIENTS:
        world.believe(k, gone=False)
    told = len(world.reports)
    run(world, len({message.payload.hop for message in world.reports}) + 100)
    assert len(world.reports) > told + 80
    assert world.objective() == pytest.approx(BEST, rel=1e-6 if name == "svfl" else 0.02)


def test_with_all_clients_gone_the_server_waits() -> None:
    world = listening("svfl", 1, Faults())
    run(world, 3)
    for k in CLIENTS:
        world.crash(k)
        world.believe(k, gone=True)
    told = len(world.reports)
    for _ in range(50):
        world.step()
    assert len(world.reports) == told
    assert world.parties[SERVER].policy.waits_for == frozenset(CLIENTS)


def carry(sender: ReliableParty, to: ReliableParty) -> None:
    """What waits for somebody arrives, and there is an ack."""
    for envelope in sender.unacknowledged():
        if envelope.to == to.number:
            ack = to.deliver(unpack(pack(envelope))).ack
            assert ack is not None
            sender.acknowledge(ack)


def all_parties(name: str) -> tuple[ReliableParty, list[ReliableParty]]:
    return make(SERVER, cast_of(name), MemoryJournal()), [
        make(k, cast_of(name), MemoryJournal()) for k in CLIENTS
    ]


def test_the_request_that_waits_for_a_client_is_kept_up_to_date() -> None:
    server, clients = all_parties("svfl")
    server.peer_lost(3)
    for round_number in (1, 2, 3):
        for client in clients[:3]:
            carry(server, client)
            carry(client, server)
        (waiting,) = [one for one in server.unacknowledged() if one.to == 3]
        assert (waiting.sequence, waiting.iteration, waiting.message.payload.round) == (
            0,
            round_number,
            round_number,
        )
        np.testing.assert_array_equal(waiting.message.payload.aggregate, server.party.aggregate)
        penalties = [one.party.model.penalty(one.party.theta) for one in clients[:3]]
        assert server.party.penalty == pytest.approx(sum(penalties)), (
            "the other has uploaded nothing yet"
        )
    server.peer_found(3)
    carry(server, clients[3])
    carry(clients[3], server)
    assert set(server.party.gathering.here) == {3}, (
        "its answer is that of the round that the others are in"
    )


def test_a_client_that_answers_late_is_requested_again_and_its_upload_remembered() -> None:
    server, clients = all_parties("svfl")
    carry(server, clients[3])
    server.peer_lost(3)
    for client in clients[:3]:
        carry(server, client)
        carry(client, server)
    assert server.party.round == 1
    assert not [one for one in server.unacknowledged() if one.to == 3], (
        "it has not answered the first one"
    )
    server.peer_found(3)
    carry(clients[3], server)
    assert not server.party.gathering.here
    assert server.policy.uploads.last_upload(3).representation.any()
    (request,) = [one for one in server.unacknowledged() if one.to == 3]
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
    method = with_masks(METHODS["mini-batch"], "double-masked")  # type: ignore[attr-defined]
    server = make(SERVER, method.parties(PROBLEM, NETWORK, 7), MemoryJournal())
    server.down = frozenset({0, 1, 3})
    assert server.policy.waits_for == {0, 1, 3}, "their keys are missing"
    server.policy.tokens_out = True
    assert server.policy.waits_for == frozenset()
    server.down = frozenset(CLIENTS)
    assert server.policy.waits_for == frozenset(CLIENTS)


def test_uploads_have_room_for_every_output_of_every_sample_of_every_client() -> None:
    model = Glm("multinomial", l2=0.3)
    data = make_data(model, 9, [2, 1, 2, 1], seed=3)
    parties = METHODS["svfl"].parties(model.problem(data), NETWORK, 7)
    server = make(SERVER, parties, MemoryJournal())
    outputs = server.party.aggregate.shape[-1]
    assert outputs > 1
    assert server.policy.uploads.array.shape == (4, 9, outputs)


def test_uploads_lie_beside_the_journal_and_are_not_written_at_every_commit(tmp_path: Path) -> None:
    def reliable(number: int) -> ReliableParty:
        return make(number, cast_of("svfl"), FileJournal(tmp_path / str(number)))

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
