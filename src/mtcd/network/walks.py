"""How a token picks its next client. A walk is a part that can be swapped.

Every walk uses only what a client may know: its neighbours and their degrees, its part of a table of routes,
and what the token tells of its way.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property

from mtcd.errors import ConfigError, NetworkError, did_you_mean
from mtcd.network.repair import repaired, repaired_tree
from mtcd.network.topology import Network
from mtcd.network.tours import closed_walk, following, spanning_tree
from mtcd.seeding import uniform

NOWHERE = -1


class Walk(ABC):
    """A policy for hops inside a cluster. Where it needs chance, the caller brings the draws."""

    needs_start = False
    length: int | None = None
    """Of a tour: after so many hops it is back where it started, and has been everywhere."""

    def __init__(
        self,
        network: Network,
        within: Iterable[int] | None = None,
        seed: int = 0,  # no mutants: not used
        token: int = 0,  # no mutants: not used
    ) -> None:
        self._neighbours = network.neighbours
        self._within = None if within is None else frozenset(within)

    @abstractmethod
    def next(self, client: int, previous: int, start: int, t: int, hop: int, draw: float) -> int:
        """Where the token goes from ``client``.

        It came there from ``previous`` (NOWHERE at first), set out from ``start`` in iteration ``t``, and this
        is hop number ``hop`` since then, counted from 1. ``draw`` is uniform in [0, 1).
        """

    def transitions(self, client: int) -> Mapping[int, float] | None:
        """The probability of each next client, if it depends on ``client`` alone; None: not declared.

        The theory computes with what a walk of your own declares here, and says 'not known' of one that declares
        nothing. A subclass that overrides ``next`` must override this too: what it inherits no longer counts.
        """
        return None

    def repaired(self, network: Network, members: Sequence[int]) -> Walk:
        """The same walk over these clients, when some have left or joined."""
        return type(self)(network, members)

    def around(self, client: int) -> Walk:
        """The walk of the piece that the client is in."""
        return self

    def last_visits(self, start: int, hops: int) -> Mapping[int, int]:
        """Of a tour from ``start``: the hop after which each client is visited for the last time in so many."""
        raise NotImplementedError(f"{type(self).__name__} is no tour")

    def covers(self, client: int) -> bool:
        """Whether the token may ever get to this client."""
        return self._within is None or client in self._within

    def near(self, client: int) -> Sequence[int]:
        """Where the token may go from a client, if it cannot go where the walk leads."""
        return self._inside(client)

    def _inside(self, client: int) -> Sequence[int]:
        """The neighbours that the walk may go to."""
        if self._within is None:
            return self._neighbours[client]
        if client not in self._within:
            raise NetworkError(f"the walk is at client {client}, outside its cluster: start it inside")
        return [k for k in self._neighbours[client] if k in self._within]


class LazyWalk(Walk):
    """The paper's walk: uniform over the neighbours and the client itself."""

    def __init__(
        self,
        network: Network,
        within: Iterable[int] | None = None,
        seed: int = 0,  # no mutants: not used
        token: int = 0,  # no mutants: not used
    ) -> None:
        super().__init__(network, within)
        self._choices: dict[int, Sequence[int]] = {}  # of the clients seen so far

    def next(self, client: int, previous: int, start: int, t: int, hop: int, draw: float) -> int:
        try:
            choices = self._choices[client]
        except KeyError:
            choices = self._choices[client] = self._choices_of(client)
        return choices[int(draw * len(choices))]

    def _choices_of(self, client: int) -> Sequence[int]:
        if self._within is None and len(self._neighbours[client]) == len(self._neighbours) - 1:
            return range(len(self._neighbours))  # everybody: nothing to store
        return tuple(sorted({client, *self._inside(client)}))


class MetropolisWalk(Walk):
    """Equally often at every client, in the long run: a neighbour with more neighbours is taken less readily.

    A neighbour j is proposed at random, and taken with probability min(1, degree_k / degree_j).
    """

    def next(self, client: int, previous: int, start: int, t: int, hop: int, draw: float) -> int:
        near = self._inside(client)
        if not near:
            return client
        proposed = near[int(draw * len(near))]
        left_over = draw * len(near) % 1.0  # uniform again
        return proposed if left_over * len(self._inside(proposed)) < len(near) else client


class NonBacktrackingWalk(Walk):
    """Uniform over the neighbours other than the one that the token came from; back only from a dead end."""

    def next(self, client: int, previous: int, start: int, t: int, hop: int, draw: float) -> int:
        near = self._inside(client)
        choices = [k for k in near if k != previous] or near or [client]
        return choices[int(draw * len(choices))]


class TourWalk(Walk):
    """Round and round the same closed walk through all clients: no chance, and nobody waits long.

    A client's table says where the token goes next at each of its passages.
    """

    needs_start = True

    def __init__(
        self,
        network: Network,
        within: Iterable[int] | None = None,
        seed: int = 0,  # no mutants: not used
        token: int = 0,  # no mutants: not used
        tour: list[int] | None = None,
    ) -> None:
        super().__init__(network, within)
        self.tour = tour or closed_walk(network, range(network.size) if within is None else sorted(within))
        self.length = len(self.tour)
        self._place = {client: place for place, client in reversed(list(enumerate(self.tour)))}
        self._last: dict[tuple[int, int], Mapping[int, int]] = {}

    def next(self, client: int, previous: int, start: int, t: int, hop: int, draw: float) -> int:
        if start not in self._place:
            raise NetworkError(f"the walk starts at client {start}, outside its cluster: start it inside")
        return self.tour[(self._place[start] + hop) % len(self.tour)]

    def last_visits(self, start: int, hops: int) -> Mapping[int, int]:
        if (start, hops) not in self._last:
            first, n = self._place[start], len(self.tour)
            self._last[start, hops] = {self.tour[(first + hop) % n]: hop for hop in range(max(hops - n, 0), hops)}
        return self._last[start, hops]

    def cover(self, start: int) -> int:
        """How many visits from ``start`` on it takes until all clients have had one."""
        return self._covers[self._place[start]]

    def best_start(self) -> int:
        """The client from which all others are visited soonest; the first on the tour of several."""
        return min(self._place, key=lambda client: (self.cover(client), self._place[client]))

    @cached_property
    def _covers(self) -> Sequence[int]:
        """``cover`` from each place on the tour, in one pass: a window that holds all clients moves along it."""
        n, end = len(self.tour), 0
        inside: Counter[int] = Counter()
        lengths = []
        for place in range(n):
            while len(inside) < len(self._place):
                inside[self.tour[end % n]] += 1
                end += 1
            lengths.append(end - place)
            inside[self.tour[place]] -= 1
            if not inside[self.tour[place]]:
                del inside[self.tour[place]]
        return lengths

    def repaired(self, network: Network, members: Sequence[int]) -> Walk:
        return TourWalk(network, members, tour=repaired(self.tour, network, members))


class RandomTourWalk(Walk):
    """Around a spanning tree, 2(K - 1) hops, with the branches in a fresh random order in every tour.

    A client draws the order of its branches from the seed, and sends the token into the branch after the one
    that it came from.
    """

    def __init__(
        self,
        network: Network,
        within: Iterable[int] | None = None,
        seed: int = 0,  # no mutants: always given
        token: int = 0,  # no mutants: always given
        tree: dict[int, list[int]] | None = None,
    ) -> None:
        super().__init__(network, within)
        members = range(network.size) if within is None else sorted(within)
        self.tree = tree or spanning_tree(network, members)
        self.length: int = max(1, 2 * (len(members) - 1))
        self._id = (seed, token)
        self._orders: dict[tuple[int, int, int], list[int]] = {}

    def next(self, client: int, previous: int, start: int, t: int, hop: int, draw: float) -> int:
        tour, done = divmod(hop - 1, self.length)
        if not self.tree[client]:
            return client  # alone
        return following(self._order(t, tour, client), NOWHERE if done == 0 else previous)

    def repaired(self, network: Network, members: Sequence[int]) -> Walk:
        return RandomTourWalk(network, members, *self._id, tree=repaired_tree(self.tree, network, members))

    def _order(self, t: int, tour: int, client: int) -> list[int]:
        key = t, tour, client
        if key not in self._orders:
            if len(self._orders) > 10 * len(self.tree):  # no mutants: only memory; of tours that are over
                self._orders.clear()
            seed, token = self._id
            draws = {j: uniform(seed, "branches", (token, t, tour, client), i) for i, j in enumerate(self.tree[client])}
            self._orders[key] = sorted(draws, key=lambda j: draws[j])
        return self._orders[key]


class Pieces(Walk):
    """A tour for each piece of a cluster that has fallen apart."""

    needs_start = True

    def __init__(self, tours: Mapping[tuple[int, ...], Walk]) -> None:
        self._around = {client: walk for piece, walk in tours.items() for client in piece}
        self.length = max(walk.length or 0 for walk in tours.values())

    def next(self, client: int, previous: int, start: int, t: int, hop: int, draw: float) -> int:
        return self._around[client].next(client, previous, start, t, hop, draw)

    def around(self, client: int) -> Walk:
        return self._around[client]

    def last_visits(self, start: int, hops: int) -> Mapping[int, int]:
        return self._around[start].last_visits(start, hops)

    def covers(self, client: int) -> bool:
        return client in self._around


WALKS: dict[str, Callable[[Network, Iterable[int] | None, int, int], Walk]] = {
    "lazy": LazyWalk,
    "metropolis": MetropolisWalk,
    "non-backtracking": NonBacktrackingWalk,
    "tour": TourWalk,
    "random-tour": RandomTourWalk,
}
# those that are the same for every token, so that one serves all
SHARED = frozenset({"lazy", "metropolis", "non-backtracking", "tour"})


def make_walk(kind: str, network: Network, within: Iterable[int] | None = None, seed: int = 0, token: int = 0) -> Walk:
    """The walk called ``kind``, one of ``WALKS``; ``within`` is the cluster it may not leave."""
    if kind not in WALKS:
        raise ConfigError(f"unknown walk '{kind}': {did_you_mean(kind, WALKS)}")
    return WALKS[kind](network, within, seed, token)
