"""The simulated federation: reliable parties, journals that outlive them, and links with faults."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtcd.federation.delivery.journal import Journal, MemoryJournal
from mtcd.federation.delivery.reliable_party import ReliableParty
from mtcd.network.topology import Network
from mtcd.protocol.codec.envelopes import Ack, Envelope
from mtcd.protocol.codec.records import pack, unpack
from mtcd.protocol.party import SERVER, Message, Parties

FOREVER = -1
LONGEST_OUTAGE = 80
"""Steps that a crash, a hang or a cut link lasts at most."""


@dataclass
class Faults:
    """The chances of each fault, per step; of loss and duplication, per envelope or ack."""

    loss: float = 0.0
    duplicate: float = 0.0
    crash: float = 0.0
    cut: float = 0.0
    hang: float = 0.0


class Crash(Exception):  # noqa: N818 - nothing is wrong with it
    """The process crashes in the middle of a commit."""


class CrashingJournal(MemoryJournal):
    """May crash its party just before it writes, or just after."""

    def __init__(self) -> None:
        super().__init__()
        self.crashes: Callable[[], bool] = lambda: False

    def _write(self, content: bytes) -> None:
        if self.crashes():
            raise Crash
        super()._write(content)
        if self.crashes():
            raise Crash

    def copy(self) -> MemoryJournal:
        """The same content, in a journal that may be written to."""
        made = MemoryJournal()
        made.content = self.content
        made.beside = {name: array.copy() for name, array in self.beside.items()}
        return made


class Arrival(Enum):
    """The outcome of the arrival of an envelope or ack."""

    LOST = "lost"
    DOWN = "its receiver is down"
    CUT = "the link is cut"
    HUNG = "its receiver hangs"
    ACK = "ack"
    DUPLICATE = "duplicate"
    DEFERRED = "deferred"
    STALE = "stale"
    PROCESSED = "processed"


Make = Callable[[int, Parties, Journal], ReliableParty]


@dataclass
class World:
    """All parties. In each step, faults may happen, and one envelope or ack arrives.

    ``make_parties`` makes the parties of the training, ``make`` one reliable party of them, resumed
    from its journal.
    """

    make_parties: Callable[[], Parties]
    seed: int
    make: Make
    faults: Faults = field(default_factory=Faults)
    eager: float = 0.0
    """The chance, per step, that a party sends again an envelope that waits for its ack."""

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        first = self.make_parties()
        self.numbers = list(range(len(first.clients)))
        if first.server is not None:
            self.numbers.append(SERVER)

        # they outlive the parties, as files do
        self.journals = {number: CrashingJournal() for number in self.numbers}
        self.parties: dict[int, ReliableParty] = {}
        self.away: dict[int, int] = {}
        """Crashed parties, with the time at which each restarts, or FOREVER."""
        self.hung: dict[int, int] = {}
        self.cuts: dict[frozenset[int], int] = {}
        self.in_flight: list[bytes] = []
        """Envelopes and acks, as bytes: a party shares nothing with another."""
        self.reports: list[Message] = []
        self.processed: Counter[tuple[int, int, int]] = Counter()
        """How often each envelope was processed, by sender, receiver and sequence number."""
        self.happened: Counter[str] = Counter()
        self.time = 0
        for number in self.numbers:
            self.start(number)
            self.journals[number].crashes = lambda: self.random.random() < self.faults.crash

    # Processes

    def start(self, number: int) -> None:
        """Start a process, from nothing but the plan and its journal."""
        try:
            self.parties[number] = self.make(number, self.make_parties(), self.journals[number])
            self.parties[number].started()
            self.away.pop(number, None)
        except Crash:
            self.crash(number, self.time + 5)

    def crash(self, number: int, until: int = FOREVER) -> None:
        """The process crashes, and restarts at a time."""
        self.parties.pop(number, None)
        self.away[number] = until
        self.happened["crash"] += 1

    def from_journal(self, number: int) -> ReliableParty:
        """The party as its journal has it, whether it is up or not, for tests that look at it."""
        return self.make(number, self.make_parties(), self.journals[number].copy())

    def parameters(self) -> list[NDArray[np.float64]]:
        """The parameters of all clients, up or down, from their journals."""
        parties = self.make_parties()
        for k, client in enumerate(parties.clients):
            # not from the parties in memory, which may be ahead of what they have written
            client.restore(self.journals[k].last()["party"])
        return parties.parameters()

    # Links

    def step(self) -> None:
        """One unit of time: perhaps a fault, then one envelope or ack arrives, in any order."""
        self.time += 1
        self._faults()
        if not self.in_flight:
            self.send_all()
            if not self.in_flight:
                return
        self._send_again()

        # in any order: links promise none
        place = self.random.randrange(len(self.in_flight))
        self.in_flight[place], self.in_flight[-1] = self.in_flight[-1], self.in_flight[place]
        data = self.in_flight.pop()
        if self.random.random() < self.faults.duplicate:
            self.in_flight.append(data)
            self.happened["duplicate"] += 1
        if self.random.random() < self.faults.loss:
            self.happened["loss"] += 1
            return

        thing = unpack(data)
        try:
            self.arrive(thing, data)
        except Crash:
            self.crash(receiver(thing), self.time + self.random.randrange(60))

    def send_all(self) -> None:
        """Every party that is up sends all that waits for an ack."""
        self.in_flight = []
        for party in self.parties.values():
            self.in_flight += map(pack, party.unacknowledged())
        self.random.shuffle(self.in_flight)

    def _send_again(self) -> None:
        """Envelopes that no other one caused are sent soon, too; old ones are sent again."""
        if not self.eager or not self.parties:
            return
        waiting = self.parties[self.random.choice(sorted(self.parties))].unacknowledged()
        if waiting and self.random.random() < self.eager:
            if self.random.random() < 0.7:  # mostly new ones, which have not arrived yet
                waiting = waiting[-4:]
            self.in_flight.append(pack(self.random.choice(waiting)))

    def arrive(self, thing: Envelope | Ack, data: bytes) -> Arrival:
        """An envelope or ack reaches its receiver, if that is up."""
        at = receiver(thing)
        if at not in self.parties:
            return Arrival.DOWN
        if frozenset({thing.sender, thing.to}) in self.cuts:  # a party is not cut off from itself
            return Arrival.CUT
        if at in self.hung:
            self.in_flight.append(data)
            return Arrival.HUNG

        party = self.parties[at]
        if isinstance(thing, Ack):
            party.acknowledge(thing)
            return Arrival.ACK
        is_new, is_stale = not party.is_duplicate(thing), party.policy.is_stale(thing)

        key = thing.sender, thing.to, thing.sequence
        before = set(party.outbox)
        try:
            ack, reports = party.deliver(thing)
        except Crash:
            # whether it counts as processed, the journal says: it is all that survives
            kept = self.from_journal(at)
            self.processed[key] += is_new and kept.is_duplicate(thing)
            raise

        if ack is None:
            return Arrival.DEFERRED
        self.processed[key] += is_new
        self.reports += reports

        new = [pack(envelope) for place, envelope in party.outbox.items() if place not in before]
        self.in_flight += [pack(ack), *new]
        if not is_new:
            return Arrival.DUPLICATE
        # checked before and after: the envelope may carry a new term, or end its own iteration
        if is_stale and party.policy.is_stale(thing):
            return Arrival.STALE
        return Arrival.PROCESSED

    def _faults(self) -> None:
        for number, until in list(self.away.items()):
            if 0 <= until <= self.time:
                self.start(number)
        self.hung = {number: until for number, until in self.hung.items() if until > self.time}
        self.cuts = {link: until for link, until in self.cuts.items() if until > self.time}
        # one generator for all: a seed tells the whole story, and can be told again
        chance, pick = self.random.random, self.random.choice

        until = self.time + self.random.randrange(1, LONGEST_OUTAGE)
        if chance() < self.faults.crash and self.parties:
            self.crash(pick(sorted(self.parties)), until)

        if chance() < self.faults.hang:
            self.hung[pick(self.numbers)] = until
            self.happened["hang"] += 1
        if chance() < self.faults.cut:
            self.cuts[frozenset(self.random.sample(self.numbers, 2))] = until
            self.happened["cut"] += 1

    # Reports of the links

    def report(self, observer: int, k: int, down: bool) -> None:
        """The links of ``observer`` report, rightly or wrongly, that party k is down, or up."""
        party = self.parties.get(observer)
        if party is not None and observer not in self.hung:
            before = set(party.outbox)
            try:
                if down:
                    party.peer_lost(k)
                else:
                    party.peer_found(k)
                self.in_flight += [
                    pack(one) for place, one in party.outbox.items() if place not in before
                ]
            except Crash:
                self.crash(observer, self.time + 5)

    def report_truth(self, network: Network) -> None:
        """The links of clients notice which neighbours are down, hang or are cut off; some sooner,
        some later."""
        for observer in list(self.parties):
            for k in network.neighbours[observer]:
                down = k in self.away or k in self.hung or frozenset({observer, k}) in self.cuts
                party = self.parties.get(observer)
                if party is not None and down != (k in party.down) and self.random.random() < 0.2:
                    self.report(observer, k, down)


def receiver(thing: Envelope | Ack) -> int:
    """The party that an envelope or ack goes to."""
    if isinstance(thing, Ack):
        return thing.sender  # of the envelope that is acknowledged
    return thing.to


def make_with(build: Callable[..., ReliableParty], *more: Any) -> Make:
    """A ``Make`` with further arguments, as a network."""
    return lambda number, parties, journal: build(number, parties, journal, *more)
