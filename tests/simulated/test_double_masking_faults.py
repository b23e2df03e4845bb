"""Double masks in a federation with faults: it continues without clients that are down, as plain
uploads do."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest

from mtcd.federation.delivery.reliable_party import Delivery, ReliableParty
from mtcd.federation.recovery.choose import make_reliable_party
from mtcd.methods.method import Method
from mtcd.methods.mtcd.mtcd import MTCD
from mtcd.methods.svfl.svfl import SVFL
from mtcd.models.glm.model import Glm
from mtcd.models.glm.optimum.optimum import optimum
from mtcd.network.topology import make_network
from mtcd.privacy.masked.double_client import DoubleMaskingClient
from mtcd.privacy.masked.masked import with_masks
from mtcd.privacy.masked.payloads import OpenedMasks
from mtcd.protocol.codec.envelopes import Envelope
from mtcd.protocol.gathering import Fresh
from mtcd.protocol.party import SERVER, Message
from mtcd.testing.simulator.world import Crash, Faults, World, make_with
from problems import make_data

MODEL = Glm("ridge", alpha=3.0)
# 14: in an epoch of batches of 6, two samples are left out
DATA = make_data(MODEL, 14, [2, 1, 2, 1, 1], seed=3)
PROBLEM = MODEL.problem(DATA)
NETWORK = make_network("complete", DATA.clients)
CLIENTS = range(len(DATA.clients))
BEST = optimum(PROBLEM.blocks, PROBLEM.labels, PROBLEM.loss, PROBLEM.penalties).value
EVERYTHING = Faults(loss=0.1, duplicate=0.1, crash=0.004, cut=0.02, hang=0.02)
METHODS: dict[str, Method] = {
    "rounds": SVFL(stepsize=0.02, local_updates=2),
    "rounds, mini-batches": SVFL(stepsize=0.005, batch=6),
    "mini-batches": MTCD(tokens=2, hops=3, stepsize=0.005, batch=6),
}


class Listening(World):
    """Knows by itself what each client has uploaded, and which uploads the server has summed."""

    def __post_init__(self) -> None:
        self.uploads: dict[tuple[int, int], tuple[np.ndarray, float]] = {}
        self.summed = np.zeros((len(CLIENTS), PROBLEM.samples))
        self.penalties = np.zeros(len(CLIENTS))
        self.sums: list[tuple[int, tuple[int, ...]]] = []
        """The batch and the clients of each sum."""
        self.opened: dict[tuple[int, int], set[tuple[str, int, int]]] = {}
        """By batch and client, the seeds that the server has ever received from it: of a pair, or
        of an own mask."""
        super().__post_init__()

    def start(self, number: int) -> None:
        super().start(number)
        party = self.parties.get(number)
        if party is None:
            return
        if number == SERVER:
            party.deliver = partial(self.deliver, party)
            self.check(party, None, ())  # it may have crashed just after an announcement
        else:
            inner = party.party.client
            inner.receive = partial(self.overhear, party.party, inner, type(inner).receive)

    def overhear(
        self, around: DoubleMaskingClient, client: Any, receive: Any, message: Message
    ) -> Sequence[Message]:
        sent = receive(client, message)
        for one in sent:
            if isinstance(one.payload, Fresh):
                batch = around.upload_batches.batch_of(message.payload)
                self.uploads[client.number, batch] = (
                    one.payload.representation.copy(),
                    one.payload.penalty,
                )
        return sent

    def deliver(self, server: ReliableParty, envelope: Envelope) -> Delivery:
        batch, payload = server.party.batch, envelope.message.payload
        if isinstance(payload, OpenedMasks):
            self.note(envelope.sender, payload, dict(self.sums)[payload.t])
        delivery = type(server).deliver(server, envelope)
        self.check(server, batch, delivery.reports)
        return delivery

    def note(self, sender: int, payload: OpenedMasks, arrived: tuple[int, ...]) -> None:
        known = self.opened.setdefault((payload.t, sender), set())
        for k in CLIENTS:
            if payload.theirs[k].any():
                known |= {
                    ("own", k, sender) if k in arrived else ("pair", min(k, sender), max(k, sender))
                }
            if payload.mine[k].any():
                known |= {("own", sender, k)}

    def revealed(self) -> list[tuple[int, int]]:
        """The uploads, by client and batch, all of whose masks the server could take off."""
        found = []
        for k, batch in self.uploads:
            known = set().union(*(seeds for (t, _), seeds in self.opened.items() if t == batch))
            others = [j for j in CLIENTS if j != k]
            if all({("own", k, j), ("pair", min(j, k), max(j, k))} <= known for j in others):
                found.append((k, batch))
        return found

    def check(self, server: ReliableParty, batch: int | None, reports: Sequence[Message]) -> None:
        """If there is a new sum, it is that of what was summed last of each client."""
        party = server.party
        if party.asked:
            for k in party.arrived:
                rows = party.upload_batches.batches.rows(party.batch)
                self.summed[k, slice(None) if rows is None else rows], self.penalties[k] = (
                    self.uploads[k, party.batch]
                )
            if (party.batch, tuple(party.arrived)) not in self.sums:
                self.sums.append((party.batch, tuple(party.arrived)))
        if batch is not None and reports:
            rows = party.upload_batches.batches.rows(batch)
            expected = self.summed.sum(axis=0)
            np.testing.assert_allclose(
                party.server.aggregate, expected if rows is None else expected[rows], atol=1e-8
            )
            assert party.server.penalty == pytest.approx(self.penalties.sum(), abs=1e-8)

    def believe(self, k: int, gone: bool) -> None:
        """All links notice."""
        for number, reliable in list(self.parties.items()):
            reliable.reports.clear()
            batch = reliable.party.batch if number == SERVER else None
            try:
                (reliable.peer_lost if gone else reliable.peer_found)(k)
            except Crash:
                self.crash(number, self.time + 5)
                continue
            if number == SERVER:
                self.check(reliable, batch, reliable.reports)
            self.reports += reliable.reports

    def lose(self, *clients: int) -> None:
        """They crash, and all links notice."""
        for k in clients:
            self.crash(k)
            self.believe(k, gone=True)

    def regain(self, *clients: int) -> None:
        """They start again, and all links notice."""
        for k in clients:
            self.start(k)
            self.believe(k, gone=False)

    def objective(self) -> float:
        theta = self.parameters()
        return PROBLEM.read_off(
            PROBLEM.aggregate(theta), sum(PROBLEM.client(k).penalty(theta[k]) for k in CLIENTS)
        )

    def run(self, count: int, most: int = 60_000) -> None:
        """Until so many more reports."""
        told, end = len(self.reports), self.time + most
        while len(self.reports) < told + count:
            self.step()
            assert self.time < end, (self.happened, self.parties[SERVER].policy.waits_for)


def world_of(name: str, seed: int, faults: Faults | None = None, reports: int = 0) -> Listening:
    """Of which so many reports have been heard."""
    method = with_masks(METHODS[name], "double-masked")
    world = Listening(
        lambda: method.parties(MODEL.problem(DATA), NETWORK, 7),
        seed,
        make_with(make_reliable_party, NETWORK),
        faults or Faults(),
    )
    world.run(reports)
    return world


@pytest.mark.parametrize("name", METHODS)
def test_training_continues_without_a_client_and_with_it_again(name: str) -> None:
    world = world_of(name, 1, Faults(loss=0.05, duplicate=0.1))
    world.run(8)
    before, at_first = world.parameters(), world.objective()
    world.lose(1, 3)
    world.run(40)
    assert world.parties[SERVER].policy.waits_for == frozenset()
    held = world.parameters()
    for k in CLIENTS:
        assert (np.abs(held[k] - before[k]).max() > 1e-4) == (k not in (1, 3))
    assert world.objective() < at_first
    assert world.sums[-1][1] == (0, 2, 4)
    waiting = world.parties[SERVER].unacknowledged()
    assert sum(one.to in (1, 3) for one in waiting) < 8  # however many syncs they have missed
    world.regain(1, 3)
    world.run(140)
    assert world.objective() == pytest.approx(BEST, rel=1e-6 if name == "rounds" else 0.02)
    assert len(world.sums[-1][1]) == 5


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 6))]
)
@pytest.mark.parametrize("name", METHODS)
def test_false_and_right_suspicions_at_any_moment(name: str, seed: int) -> None:
    world = world_of(name, seed, EVERYTHING)
    while world.time < 2000:
        world.step()
        if world.random.random() < 0.01:
            world.believe(world.random.choice(CLIENTS), gone=world.random.random() < 0.5)
    assert len(world.reports) > 4
    assert world.revealed() == []
    world.faults = Faults()
    for k in CLIENTS:
        world.believe(k, gone=False)
    world.run(100)
    assert world.objective() == pytest.approx(BEST, rel=1e-6 if name == "rounds" else 0.02)


def stuck(world: Listening) -> frozenset[int]:
    """The clients that the server waits for, after a while without a report."""
    told = len(world.reports)
    for _ in range(600):
        world.step()
    assert len(world.reports) <= told + 1
    return world.parties[SERVER].policy.waits_for


@pytest.mark.parametrize("name", METHODS)
def test_with_too_few_clients_the_server_waits(name: str) -> None:
    """Of five, three are enough."""
    world = world_of(name, 2, reports=8)
    world.lose(0, 1, 4)
    if name == "mini-batches":  # tokens go to those that are up
        for _ in range(300):
            world.step()
    assert stuck(world) & {0, 1, 4}
    world.regain(4)
    world.run(10)
    assert set(world.sums[-1][1]) == {2, 3, 4}


def test_until_every_sample_is_summed_once_the_server_waits_for_all() -> None:
    """A first change would be the representation itself."""
    world = world_of("rounds, mini-batches", 3, reports=2)
    world.lose(2)
    assert stuck(world) == {2}
    world.regain(2)
    world.run(12)
    batches = world.parties[SERVER].party.upload_batches.batches
    first = {tuple(sorted(batches.rows(t))) for t in range(1, 3)}
    assert all(
        len(clients) == 5 for t, clients in world.sums if tuple(sorted(batches.rows(t))) in first
    )
    world.lose(2)
    world.run(12)
    assert 2 not in world.sums[-1][1]


def until_one_has_opened(world: Listening) -> Any:
    """Step until all uploads are at the server, and the masks of one client. Returns the server."""
    server = world.parties[SERVER].party
    while not server.opened:
        world.step()
    return server


def test_a_client_that_is_down_after_its_upload_stays_in_the_sum() -> None:
    world = world_of("rounds", 4, reports=6)
    server = until_one_has_opened(world)
    batch, slow = server.batch, next(k for k in CLIENTS if k not in server.opened)
    world.lose(slow)
    world.run(1)
    assert (batch, tuple(CLIENTS)) in world.sums
    assert world.revealed() == []
    world.run(5)
    assert slow not in world.sums[-1][1]


def test_two_that_are_down_after_their_uploads_are_waited_for() -> None:
    world = world_of("rounds", 5, reports=6)
    server = until_one_has_opened(world)
    batch, slow = server.batch, [k for k in CLIENTS if k not in server.opened][:2]
    world.lose(*slow)
    assert stuck(world) == set(slow)
    for k, still in ((slow[0], {slow[1]}), (slow[1], set())):
        world.regain(k)
        assert still == set() or stuck(world) == still
    world.run(5)
    assert (batch, tuple(CLIENTS)) in world.sums
    assert world.revealed() == []


def test_the_smallest_sum_cannot_do_without_one_of_its_clients() -> None:
    world = world_of("rounds", 7, reports=6)
    world.lose(0, 3)
    world.run(4)
    server = until_one_has_opened(world)
    slow = next(k for k in server.arrived if k not in server.opened)
    world.lose(slow)
    assert stuck(world) == {slow}


def test_a_client_that_never_sent_its_key_is_waited_for() -> None:
    world = world_of("mini-batches", 6)
    world.lose(1)
    assert stuck(world) == {1}
    world.regain(1)
    world.run(5)
