"""Tours, with their exact theory: probabilities of visits, the longest wait of a client, the cover
time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import numpy as np

from mtcd.core.arrays import Array
from mtcd.core.checks import check_whole
from mtcd.core.errors import NetworkError
from mtcd.core.mappings import positions
from mtcd.network.repair import repaired
from mtcd.network.topology import Network
from mtcd.network.tours import closed_walk
from mtcd.network.walks.facts import Facts, TourTimes, checked_start
from mtcd.network.walks.walk import WALKS, Walk


@WALKS.register("tour")
class TourWalk(Walk):
    """The same closed walk through all clients, over and over, without random draws.

    The routing table of a client has the next client for each of its passages.
    """

    needs_start = True
    shared = True
    repeats = True
    planned = "candidate"

    def __init__(
        self,
        network: Network,
        within: Iterable[int] | None = None,
        seed: int = 0,
        token: int = 0,
        tour: list[int] | None = None,
    ) -> None:
        super().__init__(network, within)
        members: Sequence[int] = range(network.size)
        if within is not None:
            members = tuple(within)
        self.tour = tour or closed_walk(network, members)
        self.length = len(self.tour)
        self._place = first_places(self.tour)
        self._last: dict[tuple[int, int], Mapping[int, int]] = {}

    def next(self, client: int, previous: int, start: int, t: int, hop: int, draw: float) -> int:
        if start not in self._place:
            raise NetworkError(
                f"the walk starts at client {start}, outside its cluster: start it inside"
            )
        # The place follows from the start and the hop: a client needs no state, and a token that is
        # sent again goes the same way.
        return self.tour[(self._place[start] + hop) % len(self.tour)]

    def last_visits(self, start: int, hops: int) -> Mapping[int, int]:
        if (start, hops) not in self._last:
            first = self._place[start]
            n = len(self.tour)
            # Only the last time around: of the passages of a client, the last one stays.
            last = {}
            for hop in range(max(hops - n, 0), hops):
                last[self.tour[(first + hop) % n]] = hop
            self._last[start, hops] = last

        return self._last[start, hops]

    def cover(self, start: int) -> int:
        """The visits from ``start`` on until all clients have been visited."""
        return self._covers[self._place[start]]

    def best_start(self) -> int:
        """The client with the least ``cover``; of several, the first on the tour."""
        return min(self._place, key=lambda k: (self.cover(k), self._place[k]))

    @cached_property
    def _covers(self) -> Sequence[int]:
        return visits_to_cover(self.tour)

    def repaired(self, network: Network, members: Sequence[int]) -> Walk:
        return TourWalk(network, members, tour=repaired(self.tour, network, members))

    def facts(self, network: Network, clients: Sequence[int]) -> Facts:
        place = positions(clients)
        return TourFacts([place[k] for k in self.tour])


class TourFacts(Facts):
    """The theory of a tour, given as the sequence of its clients."""

    def __init__(self, tour: Sequence[int]) -> None:
        self._tour = tour

    def visits(self, start: Sequence[float], S: int) -> Array:
        return tour_visits(self._tour, start, S)

    def visits_work(self, S: int) -> float:
        return 10.0 * min(S, len(self._tour)) * len(set(self._tour))

    def tour(self) -> TourTimes:
        tour = self._tour
        return TourTimes(len(tour), tour_wait(tour), tour_cover(tour))


def tour_visits(tour: Sequence[int], start: Sequence[float] | Array, S: int) -> Array:
    """For each client, the probability of a visit among S consecutive places of the tour.

    A token that starts at a client begins at that client's first place; only the start is random.

    >>> tour_visits([0, 1, 2, 1], [0.25, 0.25, 0.5], S=2).tolist()
    [0.25, 1.0, 0.75]
    """
    check_whole("S, the number of visits,", S)
    places = np.array(tour)
    p = checked_start(start, max(tour) + 1)
    visited = np.zeros(p.size)
    total = 0.0
    for client in np.flatnonzero(p):
        # From the first place of the client: that is where ``next`` begins.
        seen = np.roll(places, -tour.index(client))[:S]
        visited[np.unique(seen)] += p[client]
        total += p[client]

    return visited / total  # exactly 1 where every start leads there


def tour_wait(tour: Sequence[int]) -> int:
    """The most hops between two visits of the same client.

    >>> tour_wait([0, 1, 2, 1])
    4
    """
    # The last visits of the time around before this one: the tour goes on without end.
    last = {client: place - len(tour) for place, client in enumerate(tour)}
    longest = 0  # of two visits, one is later
    for place, client in enumerate(tour):
        longest = max(longest, place - last[client])
        last[client] = place
    return longest


def tour_cover(tour: Sequence[int]) -> int:
    """The hops until every client has been visited, at most, wherever the tour is begun (at a
    client's first place).

    >>> tour_cover([0, 1, 2, 1])
    3
    """
    visits = visits_to_cover(tour)
    return max(visits[place] for place in first_places(tour).values()) - 1


def visits_to_cover(tour: Sequence[int]) -> list[int]:
    """From each place on the tour, the visits until all clients have been visited.

    >>> visits_to_cover([0, 1, 2, 1])
    [3, 4, 3, 4]
    """
    clients = len(set(tour))
    inside: Counter[int] = Counter()
    end = 0
    visits = []
    # One pass: the window from a place to where all were visited moves along the tour.
    for place, client in enumerate(tour):
        while len(inside) < clients:
            inside[tour[end % len(tour)]] += 1
            end += 1
        visits.append(end - place)

        inside[client] -= 1
        if not inside[client]:
            del inside[client]
    return visits


def first_places(tour: Sequence[int]) -> dict[int, int]:
    """Where each client is first on the tour."""
    return {client: place for place, client in reversed(list(enumerate(tour)))}
