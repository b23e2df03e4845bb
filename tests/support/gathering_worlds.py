"""Simulated trainings in which a server gathers uploads, plain or with double masks, and clients
come and go. What is summed is checked against what clients were heard to upload."""

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
METHODS: dict[str, Method] = {
    "rounds": SVFL(stepsize=0.02, local_updates=2),
    "rounds, mini-batches": SVFL(stepsize=0.005, batch=6),
    "mini-batches": MTCD(tokens=2, hops=3, stepsize=0.005, batch=6),
}

make = make_with(make_reliable_party, NETWORK)


class GatheringWorld(World):
    """A world whose clients are lost and come back."""

    def notice(self, reliable: ReliableParty, k: int, gone: bool) -> None:
        (reliable.peer_lost if gone else reliable.peer_found)(k)

    def believe(self, k: int, gone: bool) -> None:
        """All links notice."""
        for number, reliable in list(self.parties.items()):
            reliable.reports.clear()
            try:
                self.notice(reliable, k, gone)
            except Crash:
                self.crash(number, self.time + 5)
                continue
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
        """Of what all clients hold."""
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


class WithPlainUploads(GatheringWorld):
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

    def notice(self, reliable: ReliableParty, k: int, gone: bool) -> None:
        super().notice(reliable, k, gone)
        if reliable.reports:
            self.check(reliable)


class WithDoubleMasks(GatheringWorld):
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

    def notice(self, reliable: ReliableParty, k: int, gone: bool) -> None:
        batch = reliable.party.batch if reliable.number == SERVER else None
        super().notice(reliable, k, gone)
        if reliable.number == SERVER:
            self.check(reliable, batch, reliable.reports)


UPLOADS = {"plain uploads": WithPlainUploads, "double masks": WithDoubleMasks}


def world_of(
    uploads: str, name: str, seed: int, faults: Faults | None = None, reports: int = 0
) -> Any:
    """Of which so many reports have been heard."""
    method = METHODS[name]
    if uploads == "double masks":
        method = with_masks(method, "double-masked")
    world = UPLOADS[uploads](
        lambda: method.parties(MODEL.problem(DATA), NETWORK, 7), seed, make, faults or Faults()
    )
    world.run(reports)
    return world
