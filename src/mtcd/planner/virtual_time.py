"""An engine that simulates time: a discrete-event simulation of messages over links with latency
and bandwidth.

The parties are the same objects as in other engines, and give the same iterates and ledger; only
the order of deliveries, and the clock, are those of the simulated links. (Faults are simulated
elsewhere, by federation/simulate.)

- A party processes one message at a time, in the order of arrival. That takes as long as it does on
  this machine (CPU time), or as long as is given.
- A message occupies its link for its bits divided by the bandwidth, then takes the latency.
  Messages on one link in one direction queue, first come, first served; different links, and both
  directions of a link, do not hinder each other, unless the links have ``interfaces``: then the
  messages under way at a host share its bandwidth (``transfers.py``).
- A message without floats takes the latency alone, and one from a party to itself no time.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from time import thread_time
from typing import Any, Protocol

from mtcd.engines.kinds import EngineSettings, MakeEngine
from mtcd.engines.local import LocalEngine
from mtcd.planner.interfaces import Interface, Link
from mtcd.planner.links import Links
from mtcd.planner.transfers import Transfer, Transfers
from mtcd.protocol.engine import Recipe
from mtcd.protocol.ledger.ledger import WIDE_BYTES, Ledger
from mtcd.protocol.party import Message, Parties, Party
from mtcd.protocol.transports.transport import Transport


class LinkTimes(Protocol):
    """What simulated time asks of the links: their latency and their bandwidth."""

    def latency_of(self, sender: int, to: int) -> float:
        """The seconds that a message is under way, whatever its size."""

    def seconds_per_float(self, sender: int, to: int) -> float:
        """The seconds that a number of 64 bits takes to send."""


@dataclass
class Use:
    """What a simulation has counted: seconds of computing by party, and of sending by link."""

    computing: dict[int, float] = field(default_factory=dict)
    sending: dict[Link, float] = field(default_factory=dict)
    queueing: dict[Link, float] = field(default_factory=dict)
    """Seconds that messages waited for a link."""
    messages: dict[Link, int] = field(default_factory=dict)
    carrying: dict[Interface, float] = field(default_factory=dict)
    """Seconds that each limited interface would have needed for its messages at its full rate."""

    def count(self, link: Link, sending: float, queueing: float) -> None:
        """Count a message that took so many seconds to send, after so many in a queue."""
        self.sending[link] = self.sending.get(link, 0.0) + sending
        self.queueing[link] = self.queueing.get(link, 0.0) + queueing
        self.messages[link] = self.messages.get(link, 0) + 1


class SimulatedQueue(deque[Message]):
    """The messages under way, in the order of simulated time. It stands in for the queue of the
    local engine."""

    def __init__(self, links: LinkTimes, ledger: Ledger, use: Use) -> None:
        super().__init__()
        self.links, self.ledger, self.use = links, ledger, use
        self.now = 0.0
        self.free: dict[int, float] = {}
        """When each party has processed all that it received."""
        self._link_free: dict[Link, float] = {}
        # time, order, whether it is sent or arrives
        self._events: list[tuple[float, int, bool, Message]] = []
        self._order = count()

    def __len__(self) -> int:
        return len(self._events)

    def __bool__(self) -> bool:
        return bool(self._events)

    def __iter__(self) -> Iterator[Message]:
        # not by message, which has no order: time and number decide
        return (message for *_, message in sorted(self._events, key=lambda event: event[:2]))

    def extend(self, messages: Iterable[Message]) -> None:
        """All are sent now."""
        for message in messages:
            self.append(message)

    def append(self, message: Message) -> None:
        """A party sends it, as soon as it has processed what it received."""
        # not yet on its way: it first waits until its sender is done
        self._push(self.free.get(message.sender, self.now), True, message)

    def popleft(self) -> Message:
        """The next message to arrive; it is now the time of its arrival, or when its receiver is
        free."""
        while True:
            time, _, sent, message = heapq.heappop(self._events)
            if sent:
                self._push(self._arrival(message, time), False, message)
                continue
            self.now = time
            return message

    def _push(self, time: float, sent: bool, message: Message) -> None:
        heapq.heappush(self._events, (time, next(self._order), sent, message))

    def _arrival(self, message: Message, sent: float) -> float:
        link = message.sender, message.to
        if message.sender == message.to:
            return sent
        if not message.floats:
            # it neither waits for its link nor holds up others, and is not counted as use of it
            return sent + self.links.latency_of(*link)

        begins = max(sent, self._link_free.get(link, 0.0))
        wide = self.ledger.float_bytes / WIDE_BYTES  # a float32 takes half the time
        takes = message.floats * wide * self.links.seconds_per_float(*link)
        self._link_free[link] = begins + takes
        self.use.count(link, takes, begins - sent)
        return begins + takes + self.links.latency_of(*link)


class SharedQueue(SimulatedQueue):
    """The same over links whose hosts share the bandwidth of their interfaces."""

    def __init__(self, links: Links, ledger: Ledger, use: Use) -> None:
        super().__init__(links, ledger, use)
        self.transfers = Transfers(links)

    def __len__(self) -> int:
        return len(self._events) + len(self.transfers.under_way())

    def __bool__(self) -> bool:
        return bool(self._events) or math.isfinite(self.transfers.next_end())

    def __iter__(self) -> Iterator[Message]:
        yield from super().__iter__()
        for transfer in self.transfers.under_way():
            yield transfer.payload

    def popleft(self) -> Message:
        """The next message to arrive."""
        while True:
            # a transfer that ends first frees bandwidth, which moves the ends of all others: they
            # are no events in the heap, but asked for anew
            ends = self.transfers.next_end()
            if not self._events or ends <= self._events[0][0]:
                self.transfers.advance(ends)
                self._sent(self.transfers.finish())
                continue

            time, _, sent, message = heapq.heappop(self._events)
            self.transfers.advance(time)
            # nothing is under way while all parties compute: time then passes by itself
            self.transfers.now = max(self.transfers.now, time)
            if not sent:
                self.now = time
                return message

            link = message.sender, message.to
            if message.floats == 0 or message.sender == message.to:
                self._push(self._arrival(message, time), False, message)
            else:
                wide = self.ledger.float_bytes / WIDE_BYTES
                self.transfers.start(Transfer(link, message.floats * wide, time, message))

    def _sent(self, transfer: Transfer) -> None:
        """A message has left its link: it arrives a latency later."""
        now = self.transfers.now
        self.use.count(transfer.link, now - transfer.began, transfer.began - transfer.asked)
        for interface, floats in self.transfers.carried.items():
            self.use.carrying[interface] = floats / self.transfers.interfaces.capacity(interface)
        self._push(now + self.links.latency_of(*transfer.link), False, transfer.payload)


class _Timed(Party):
    """A party whose work takes simulated time."""

    def __init__(self, number: int, party: Party, engine: VirtualTimeEngine) -> None:
        self.number, self.party, self.engine = number, party, engine

    @property
    def transport(self) -> Transport | None:  # type: ignore[override]
        return self.party.transport

    def receive(self, message: Message) -> Sequence[Message]:
        timeline, use = self.engine.timeline, self.engine.use
        began = thread_time()
        sends = self.party.receive(message)
        took = thread_time() - began
        if self.engine.visit_seconds is not None:
            took = self._given(message)

        # a message that finds its receiver busy waits until the earlier ones are processed
        done = max(timeline.now, timeline.free.get(self.number, 0.0)) + took

        timeline.free[self.number] = done
        use.computing[self.number] = use.computing.get(self.number, 0.0) + took
        self.engine.seconds = max(self.engine.seconds or 0.0, done)
        return sends

    def _given(self, message: Message) -> float:
        if not message.floats:  # as when it is measured: next to nothing
            return 0.0
        return float(self.engine.visit_seconds or 0.0)


class VirtualTimeEngine(LocalEngine):
    """Delivers messages in the order of simulated time."""

    def __init__(self, settings: VirtualTime, parties: Parties, ledger: Ledger) -> None:
        super().__init__(parties, ledger)
        self.visit_seconds, self.use = settings.visit_seconds, settings.use
        self.timeline = SimulatedQueue(settings.links, ledger, self.use)
        if getattr(settings.links, "interfaces", None) is not None:
            self.timeline = SharedQueue(settings.links, ledger, self.use)
        self.seconds = 0.0
        # the local engine makes its queue by this: here, one that orders messages by time
        self.queue = lambda: self.timeline

    def receivers(self) -> dict[int, Party | None]:
        timed: dict[int, Party | None] = dict(super().receivers())
        for number, party in timed.items():
            if party is not None:
                timed[number] = _Timed(number, party, self)
        return timed


@dataclass(frozen=True, eq=False)
class VirtualTime(EngineSettings):
    """Simulated time over these links.

    ``visit_seconds``: how long a party takes for a message with floats; measured on this machine
    unless given. ``use`` is counted during the simulation.
    """

    links: Any
    visit_seconds: float | None = None
    use: Use = field(default_factory=Use)

    def maker(self, recipe: Recipe) -> MakeEngine:
        return lambda parties, ledger: VirtualTimeEngine(self, parties, ledger)
