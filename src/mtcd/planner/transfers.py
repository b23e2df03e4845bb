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
        # a link carries one message at a time in each direction, as a connection of TCP does
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

        # what the link itself allows, were its hosts not busy with others
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

    return _Sharing(legs, links).end()


class _Sharing:
    """Messages that wait for others, over links that share bandwidth: a simulation of them."""

    def __init__(self, legs: Sequence[Leg], links: Links) -> None:
        self.legs, self.links = legs, links
        self.transfers = Transfers(links)
        # time, position, whether it is sent or arrives
        self.events: list[tuple[float, int, bool]] = []
        self.missing = [len(leg.after) for leg in legs]
        self.followers: list[list[int]] = [[] for _ in legs]
        for number, leg in enumerate(legs):
            for before in leg.after:
                self.followers[before].append(number)

    def end(self) -> float:
        """When the last of them arrives."""
        for number, leg in enumerate(self.legs):
            if not leg.after:
                heapq.heappush(self.events, (0.0, number, True))

        end = 0.0
        while self.events or self.transfers.under_way():
            ends = self.transfers.next_end()
            if not self.events or ends <= self.events[0][0]:
                self.transfers.advance(ends)
                self._arrives_later(self.transfers.now, self.transfers.finish().payload)
                continue

            time, number, sent = heapq.heappop(self.events)
            self.transfers.advance(time)
            # with nothing under way, time passes only here
            self.transfers.now = max(self.transfers.now, time)
            if sent:
                self._send(time, number)
            else:
                end = max(end, time)
                self._release_followers(time, number)

        return end

    def _send(self, time: float, number: int) -> None:
        leg = self.legs[number]
        sender, to = leg.link
        if sender == to:
            heapq.heappush(self.events, (time, number, False))
        elif leg.floats == 0:
            self._arrives_later(time, number)
        else:
            floats = leg.floats * leg.repeats
            self.transfers.start(Transfer(leg.link, floats, time, number))

    def _arrives_later(self, time: float, number: int) -> None:
        """What has left its link arrives a latency later; a leg that stands for several messages in
        a row waits as often."""
        leg = self.legs[number]
        latency = leg.repeats * self.links.latency_of(*leg.link)
        heapq.heappush(self.events, (time + latency, number, False))

    def _release_followers(self, time: float, number: int) -> None:
        """Send the messages for which this was the last one to wait for."""
        for follower in self.followers[number]:
            self.missing[follower] -= 1
            if self.missing[follower] == 0:
                heapq.heappush(self.events, (time, follower, True))


def _unhindered(legs: Sequence[Leg], links: Links) -> float:
    """The longest way through the messages."""
    ends: list[float] = []
    for leg in legs:
        begins = max((ends[before] for before in leg.after), default=0.0)
        ends.append(begins + leg.repeats * links.seconds(*leg.link, leg.floats))
    return max(ends, default=0.0)
