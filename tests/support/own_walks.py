"""Walks of a user's own: some declare their transitions, some do not."""

from __future__ import annotations

from collections.abc import Mapping

from mtcd.network.walks import Walk
from mtcd.network.walks.lazy import LazyWalk
from mtcd.network.walks.tour import TourWalk


class Onwards(Walk):
    """To the neighbour with the next higher number if there is one, else to that with the lowest;
    no chance in it."""

    def next(self, client: int, previous: int, start: int, t: int, hop: int, draw: float) -> int:
        near = self._inside(client)
        return min((j for j in near if j > client), default=min(near, default=client))


class Sticky(Walk):
    """Stays with probability 3/4, else to any neighbour. Declared."""

    stays = 0.75

    def next(self, client: int, previous: int, start: int, t: int, hop: int, draw: float) -> int:
        near = self._inside(client)
        if draw < self.stays or not near:
            return client
        return near[int((draw - self.stays) / (1 - self.stays) * len(near))]

    def transitions(self, client: int) -> Mapping[int, float]:
        near = self._inside(client)
        share = (1 - self.stays) / len(near) if near else 0.0
        return {client: 1 - share * len(near), **dict.fromkeys(near, share)}


class Around(Walk):
    """Round a cycle in one direction, staying half of the time: a chain that is not reversible.
    Declared."""

    def next(self, client: int, previous: int, start: int, t: int, hop: int, draw: float) -> int:
        return client if draw < 0.5 else (client + 1) % len(self._neighbours)

    def transitions(self, client: int) -> Mapping[int, float]:
        return {client: 0.5, (client + 1) % len(self._neighbours): 0.5}


class EagerLazy(LazyWalk):
    """A lazy walk but for its hops: what the theory knows of lazy walks is wrong here."""

    def next(self, client: int, previous: int, start: int, t: int, hop: int, draw: float) -> int:
        return self._inside(client)[0]


class StickyButNot(Sticky):
    """Hops otherwise than its parent, and does not declare how."""

    def next(self, client: int, previous: int, start: int, t: int, hop: int, draw: float) -> int:
        return client


class LastFirst(TourWalk):
    """A tour whose hops are not those of its ``tour``."""

    def next(self, client: int, previous: int, start: int, t: int, hop: int, draw: float) -> int:
        return self.tour[-hop % len(self.tour)]


class RenamedLazy(LazyWalk):
    """A lazy walk in all but name."""


class NotNearby(Sticky):
    """Declares hops to clients that are no neighbours."""

    def transitions(self, client: int) -> Mapping[int, float]:
        return {len(self._neighbours) - 1 - client: 1.0}


class TooLikely(Sticky):
    """Declares probabilities that add up to more than 1."""

    def transitions(self, client: int) -> Mapping[int, float]:
        return {client: 0.75, self._inside(client)[0]: 0.75}


UNDECLARED = (Onwards, EagerLazy, StickyButNot, LastFirst)
