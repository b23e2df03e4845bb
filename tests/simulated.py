"""A federation without a network: envelopes in a bag, delivered in any order, lost, doubled; parties crash."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mtcd.federation.delivery.envelopes import Ack, Envelope
from mtcd.federation.delivery.journal import Journal, MemoryJournal
from mtcd.federation.delivery.records import pack, unpack
from mtcd.federation.delivery.reliable_party import ReliableParty
from mtcd.federation.recovery.iteration_client import IterationClient
from mtcd.federation.recovery.iteration_server import IterationServer
from mtcd.protocol.party import SERVER, Cast, Message


@dataclass
class Faults:
    """Chances, per step of the simulation."""

    loss: float = 0.0
    double: float = 0.0
    crash: float = 0.0
    cut: float = 0.0
    hang: float = 0.0


class Killed(Exception):  # noqa: N818 - nothing is wrong with it
    """In the middle of a commit."""


class DeadlyJournal(MemoryJournal):
    """May kill its party just before it writes, or just after."""

    def __init__(self) -> None:
        super().__init__()
        self.deadly: Callable[[], bool] = lambda: False

    def _write(self, content: bytes) -> None:
        if self.deadly():
            raise Killed
        super()._write(content)
        if self.deadly():
            raise Killed


Make = Callable[[int, Cast, Journal], ReliableParty]


def waiting_party(number: int, cast: Cast, journal: Journal) -> ReliableParty:
    return ReliableParty(number, cast.server if number == SERVER else cast.clients[number], journal, cast.opening)


def iteration_party(number: int, *rest: Any, **more: Any) -> IterationServer | IterationClient:
    """Of the server or a client of mtcd."""
    return (IterationServer if number == SERVER else IterationClient)(number, *rest, **more)


@dataclass
class World:
    """Time is the number of steps. In each, a fault may happen, and one envelope or ack of the bag arrives."""

    cast: Callable[[], Cast]
    seed: int
    make: Make = waiting_party
    faults: Faults = field(default_factory=Faults)
    eager: float = 0.0
    """The chance, per step, that somebody sends something that waits."""

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        first = self.cast()
        numbers = [*range(len(first.clients)), *([] if first.server is None else [SERVER])]
        self.numbers = numbers
        self.journals: dict[int, DeadlyJournal] = {}
        for number in numbers:
            self.journals[number] = DeadlyJournal()
        self.parties: dict[int, ReliableParty] = {}
        self.away: dict[int, int] = {}  # crashed, until this time; for ever if -1
        self.hung: dict[int, int] = {}
        self.cuts: dict[frozenset[int], int] = {}
        self.bag: list[bytes] = []
        self.told: list[Message] = []
        self.processed: Counter[tuple[int, int, int]] = Counter()
        self.happened: Counter[str] = Counter()
        self.time = 0
        for number in numbers:
            self.start(number)
            self.journals[number].deadly = lambda: self.random.random() < self.faults.crash

    def start(self, number: int) -> None:
        """A process from nothing but the plan and its journal."""
        try:
            self.parties[number] = self.make(number, self.cast(), self.journals[number])
            self.parties[number].start()
            self.away.pop(number, None)
        except Killed:
            self.crash(number, self.time + 5)

    def crash(self, number: int, until: int = -1) -> None:
        self.parties.pop(number, None)
        self.away[number] = until
        self.happened["crash"] += 1

    def step(self) -> None:
        self.time += 1
        self._faults()
        if not self.bag:
            self.bag = [pack(envelope) for reliable in self.parties.values() for envelope in reliable.unacknowledged()]
            self.random.shuffle(self.bag)
            if not self.bag:
                return
        self._hurry()
        place = self.random.randrange(len(self.bag))
        self.bag[place], self.bag[-1] = self.bag[-1], self.bag[place]
        data = self.bag.pop()
        if self.random.random() < self.faults.double:
            self.bag.append(data)
            self.happened["double"] += 1
        if self.random.random() < self.faults.loss:
            self.happened["loss"] += 1
            return
        thing = unpack(data)
        at = thing.sender if isinstance(thing, Ack) else thing.to
        try:
            self.arrive(thing, data)
        except Killed:
            self.crash(at, self.time + self.random.randrange(60))

    def _hurry(self) -> None:
        """What was put into an outbox without an envelope that caused it is soon under way too; old ones come again."""
        if not self.eager or not self.parties:
            return
        waiting = self.parties[self.random.choice(sorted(self.parties))].unacknowledged()
        if waiting and self.random.random() < self.eager:
            self.bag.append(pack(self.random.choice(waiting[-4:] if self.random.random() < 0.7 else waiting)))

    def arrive(self, thing: Envelope | Ack, data: bytes) -> None:
        back = isinstance(thing, Ack)
        at, other = (thing.sender, thing.to) if back else (thing.to, thing.sender)
        if at not in self.parties or (at != other and frozenset({at, other}) in self.cuts):
            return
        if at in self.hung:
            self.bag.append(data)
            return
        reliable = self.parties[at]
        if isinstance(thing, Ack):
            reliable.acknowledge(thing)
            return
        before = set(reliable.outbox)
        new = not reliable.is_duplicate(thing)
        try:
            ack, told = reliable.deliver(thing)
        except Killed:
            last = self.journals[at].last()
            cast = self.make(at, self.cast(), self.journals[at])
            self.processed[thing.sender, thing.to, thing.sequence] += new and cast.is_duplicate(thing) and bool(last)
            raise
        if ack is None:
            return
        self.processed[thing.sender, thing.to, thing.sequence] += new
        self.told += told
        self.bag += [pack(ack), *(pack(reliable.outbox[place]) for place in reliable.outbox if place not in before)]

    def _faults(self) -> None:
        for number, until in list(self.away.items()):
            if 0 <= until <= self.time:
                self.start(number)
        self.hung = {number: until for number, until in self.hung.items() if until > self.time}
        self.cuts = {link: until for link, until in self.cuts.items() if until > self.time}
        chance, pick = self.random.random, self.random.choice
        until = self.time + self.random.randrange(1, 80)
        if chance() < self.faults.crash and self.parties:
            self.crash(pick(sorted(self.parties)), until)
        if chance() < self.faults.hang:
            self.hung[pick(self.numbers)] = until
            self.happened["hang"] += 1
        if chance() < self.faults.cut:
            self.cuts[frozenset(self.random.sample(self.numbers, 2))] = until
            self.happened["cut"] += 1

    def parameters(self) -> list[np.ndarray]:
        """What the clients hold, from their journals: also of those who are not there."""
        cast = self.cast()
        for k, client in enumerate(cast.clients):
            client.restore(self.journals[k].last()["party"])
        return cast.parameters()
