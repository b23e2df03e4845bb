"""Messages that share the bandwidth of interfaces, as time goes on.

Between two events all rates are constant; at an event (a message begins or ends) they are computed
anew. Messages on one link in one direction still queue, first come, first served.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from mtcd.methods.planned import Leg
from mtcd.planner.interfaces import Interface, Interfaces, Link, fair_rates
from mtcd.planner.links import Links


@dataclass(slots=True)
class Transfer:
    """A message on its link, or waiting for it."""

    link: Link
    floats: float
    """What is still to be sent, in numbers of 64 bits."""
    asked: float
    """When it was handed to its link."""
    payload: Any = None
    began: float = math.nan
    rate: float = math.nan
    """Floats per second."""


@dataclass
class Transfers:
    """The messages under way over links whose hosts share their interfaces.

    Parameters
    ----------
    links
        The links, with ``interfaces``.
    """

    links: Links
    now: float = 0.0
    carried: dict[Interface, float] = field(default_factory=dict)
    """Floats that went through each interface that has a limit."""
    _active: dict[Link, Transfer] = field(default_factory=dict)
    _waiting: dict[Link, deque[Transfer]] = field(default_factory=dict)
    _changed: bool = False
    """Whether messages began or ended since the rates were computed."""

    @property
    def interfaces(self) -> Interfaces:
        """The interfaces of the hosts."""
        assert self.links.interfaces is not None
        return self.links.interfaces

    def under_way(self) -> list[Transfer]:
        """All that are not finished, also those that wait for their link."""
        waiting = [transfer for queue in self._waiting.values() for transfer in queue]
        return [*self._active.values(), *waiting]

    def start(self, transfer: Transfer) -> None:
        """Send a message now, or as soon as its link is free."""
        if transfer.link in self._active:
            self._waiting.setdefault(transfer.link, deque()).append(transfer)
        else:
            self._begin(transfer)

    def next_end(self) -> float:
        """When the next message ends if none begins before; infinite if none is under way."""
        if not self._active:
            return math.inf

        self._update_rates()
        return min(self.now + one.floats / one.rate for one in self._active.values())

    def advance(self, to: float) -> None:
        """Let time pass until ``to``, which is not after ``next_end()``."""
        self._update_rates()
        passed = to - self.now
        if passed > 0:
            for transfer in self._active.values():
                sent = min(transfer.floats, transfer.rate * passed)
                transfer.floats -= sent
                self._count(transfer.link, sent)
            self.now = to

    def finish(self) -> Transfer:
        """Take out the message that ends first. ``advance`` has come to its end, but for rounding:
        the rest of it is counted as sent."""
        transfer = min(self._active.values(), key=lambda one: one.floats / one.rate)
        self._count(transfer.link, transfer.floats)
        transfer.floats = 0.0
        del self._active[transfer.link]
        self._changed = True

        waiting = self._waiting.get(transfer.link)
        if waiting:
            self._begin(waiting.popleft())
        return transfer

    def _begin(self, transfer: Transfer) -> None:
        transfer.began = self.now
        self._active[transfer.link] = transfer
        self._changed = True

    def _update_rates(self) -> None:
        if not self._changed:
            return

        own = {link: 1.0 / self.links.seconds_per_float(*link) for link in self._active}
        rates = fair_rates(self._active, own, self.interfaces)
        for link, transfer in self._active.items():
            transfer.rate = rates[link]
        self._changed = False

    def _count(self, link: Link, floats: float) -> None:
        for interface in self.interfaces.of_link(*link):
            if math.isfinite(self.interfaces.capacity(interface)):
                self.carried[interface] = self.carried.get(interface, 0.0) + floats


def seconds_of(legs: Sequence[Leg], links: Links) -> float:
    """When the last of these messages arrives, if those that wait for none are sent at 0.

    Parameters
    ----------
    legs
        The messages; each waits for earlier ones only.
    links
        The links. With ``interfaces`` messages share bandwidth; without, nothing waits for a link.

    Returns
    -------
    float
        Seconds.
    """
    if links.interfaces is None:
        return _unhindered(legs, links)

    transfers = Transfers(links)
    missing = [len(leg.after) for leg in legs]
    followers: list[list[int]] = [[] for _ in legs]
    for number, leg in enumerate(legs):
        for before in leg.after:
            followers[before].append(number)

    # time, position, whether it is sent or arrives
    events: list[tuple[float, int, bool]] = []
    for number, count in enumerate(missing):
        if count == 0:
            heapq.heappush(events, (0.0, number, True))

    end = 0.0
    while events or transfers.under_way():
        ends = transfers.next_end()
        if not events or ends <= events[0][0]:
            transfers.advance(ends)
            number = transfers.finish().payload
            latency = legs[number].repeats * links.latency_of(*legs[number].link)
            heapq.heappush(events, (transfers.now + latency, number, False))
            continue

        time, number, sent = heapq.heappop(events)
        transfers.advance(time)
        transfers.now = max(transfers.now, time)
        leg = legs[number]
        if sent:
            if leg.link[0] == leg.link[1]:
                heapq.heappush(events, (time, number, False))
            elif leg.floats == 0:
                latency = leg.repeats * links.latency_of(*leg.link)
                heapq.heappush(events, (time + latency, number, False))
            else:
                transfers.start(Transfer(leg.link, leg.floats * leg.repeats, time, number))
            continue

        end = max(end, time)
        for follower in followers[number]:
            missing[follower] -= 1
            if missing[follower] == 0:
                heapq.heappush(events, (time, follower, True))

    return end


def _unhindered(legs: Sequence[Leg], links: Links) -> float:
    """The longest way through the messages."""
    ends: list[float] = []
    for leg in legs:
        begins = max((ends[before] for before in leg.after), default=0.0)
        ends.append(begins + leg.repeats * links.seconds(*leg.link, leg.floats))
    return max(ends, default=0.0)
