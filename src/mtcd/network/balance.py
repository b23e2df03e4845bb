"""Clusters whose tours are of even length: where every token tours its cluster between two syncs,
all wait for the longest tour.

Clusters of even size may have tours of quite different length, as a cluster with a Hamiltonian
cycle takes half as long as a tree. So clients at the border of the cluster with the longest tour
go over to a neighbouring cluster, or change places with one of its clients, as long as that makes
the longest tour of both shorter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mtcd.network.clusters import Cluster
from mtcd.network.topology import Network, connected_pieces
from mtcd.network.tours import closed_walk, short_walk

MOST_WORK = 15_000
"""Clients in all the tours that a search looks for, which bounds its time."""


def balanced(network: Network, clusters: Sequence[Cluster]) -> tuple[Cluster, ...]:
    """The clusters after clients at their borders have changed sides, where that makes the longest
    tour shorter.

    Parameters
    ----------
    network
        The clients and their links.
    clusters
        Connected clusters; every client is in one.

    Returns
    -------
    tuple of clusters
        As many, each connected and sorted, in the order of their first members. Their longest tour
        is never longer than before. They follow from the arguments alone.

    Examples
    --------
    >>> from mtcd.network.topology import make_network
    >>> path = make_network("path", "abcd")
    >>> balanced(path, [(0,), (1, 2, 3)])
    ((0, 1), (2, 3))
    """
    found = [tuple(sorted(cluster)) for cluster in clusters]
    if not network.complete:
        _Search(network, found).run()
    return tuple(sorted(found))


class _Search:
    """The search for shorter tours; it changes ``clusters`` in place."""

    def __init__(self, network: Network, clusters: list[Cluster]) -> None:
        self.network, self.clusters = network, clusters
        self.lengths = [len(closed_walk(network, cluster)) for cluster in clusters]
        self.home = {k: c for c, cluster in enumerate(clusters) for k in cluster}
        self.work = 0

    def run(self) -> None:
        """Shorten the longest tour until it cannot be, or until the search has taken long."""
        while self.work < MOST_WORK:
            longest = self.lengths.index(max(self.lengths))
            if not self._shorten(longest):
                return

    def _shorten(self, longest: int) -> bool:
        """Make one exchange that helps; whether there was one."""
        limit = self.lengths[longest]
        for other, here, there in self._exchanges(longest):
            if self.work >= MOST_WORK:
                return False
            if max(len(here), len(there)) >= limit:  # no tour has fewer hops than clients
                continue
            if not (self._is_connected(here) and self._is_connected(there)):
                continue
            lengths = self._length(here), self._length(there)
            if max(lengths) < limit:
                self._put(longest, here, lengths[0])
                self._put(other, there, lengths[1])
                return True
        return False

    def _exchanges(self, cluster: int) -> Iterator[tuple[int, Cluster, Cluster]]:
        """A neighbouring cluster, and both as they would be: those with short tours first, a client
        that goes over before two that change places."""
        ways: dict[int, list[int]] = {}
        for k in self.clusters[cluster]:
            for other in sorted({self.home[j] for j in self.network.neighbours[k]} - {cluster}):
                ways.setdefault(other, []).append(k)

        order = sorted(ways, key=lambda other: (self.lengths[other], other))
        for other in order:
            for k in ways[other]:
                yield self._exchanged(cluster, other, {k}, set())
        for other in order:
            for k in ways[other]:
                for j in self._border(other, cluster):
                    yield self._exchanged(cluster, other, {k}, {j})

    def _border(self, cluster: int, towards: int) -> list[int]:
        """The clients of a cluster with a neighbour in another one."""
        found = []
        for k in self.clusters[cluster]:
            if any(self.home[j] == towards for j in self.network.neighbours[k]):
                found.append(k)
        return found

    def _exchanged(
        self, cluster: int, other: int, leave: set[int], come: set[int]
    ) -> tuple[int, Cluster, Cluster]:
        here = (set(self.clusters[cluster]) - leave) | come
        there = (set(self.clusters[other]) - come) | leave
        return other, tuple(sorted(here)), tuple(sorted(there))

    def _is_connected(self, members: Cluster) -> bool:
        return len(connected_pieces(self.network.neighbours, members)) == 1

    def _length(self, members: Cluster) -> int:
        self.work += len(members)
        return len(short_walk(self.network, members))

    def _put(self, cluster: int, members: Cluster, length: int) -> None:
        self.clusters[cluster], self.lengths[cluster] = members, length
        for k in members:
            self.home[k] = cluster
