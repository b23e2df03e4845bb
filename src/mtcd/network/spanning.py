"""A spanning tree from a centre of the network: sums travel up it, results travel down."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from mtcd.network.topology import Network, breadth_first

Distances = NDArray[np.int64]
# breadth-first searches spent on finding a centre: trees and complete networks need up to four
SEARCHES = 40


@dataclass(frozen=True)
class SpanningTree:
    """A tree over all clients: ``parents[k]`` is the next client on the way to the root, None at
    the root."""

    root: int
    parents: tuple[int | None, ...]
    levels: tuple[tuple[int, ...], ...]
    """The clients by their distance from the root."""

    @property
    def depth(self) -> int:
        """The distance of the farthest client from the root."""
        return len(self.levels) - 1

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """The children of each client, sorted."""
        found: list[list[int]] = [[] for _ in self.parents]
        for k, parent in enumerate(self.parents):
            if parent is not None:
                found[parent].append(k)
        return tuple(map(tuple, found))


def spanning_tree(network: Network) -> SpanningTree:
    """Shortest paths from a centre: the least depth that a spanning tree can have. The network must
    be connected.

    It depends on the network alone, so every party finds the same. On large networks without a
    clear centre (long cycles), the depth is the least of ``SEARCHES`` possible roots.

    >>> from mtcd.network.topology import make_network
    >>> spanning_tree(make_network("path", ["a", "b", "c"]))
    SpanningTree(root=1, parents=(1, None, 1), levels=((1,), (0, 2)))
    """
    root = _centre(network)
    levels = _levels(network, root)
    parents: list[int | None] = [None] * network.size
    for above, level in pairwise(levels):
        upper = set(above)
        for k in level:
            parents[k] = min(upper.intersection(network.neighbours[k]))
    return SpanningTree(root, tuple(parents), tuple(map(tuple, levels)))


def _centre(network: Network) -> int:
    """A centre: the client whose largest distance to another client is least.

    With e the distance of the farthest from some client, that of any client at distance d from it
    is at least max(d, e - d). The search tries the client with the least bound, until none can be
    better than the best.
    """
    least = np.zeros(network.size, dtype=np.int64)  # what is known of each client's farthest
    best = candidate = _middle(network)
    best_depth = network.size
    for _ in range(SEARCHES):
        levels = _levels(network, candidate)
        depth = len(levels) - 1
        if depth < best_depth:
            best, best_depth = candidate, depth
        distance = _distances(levels, network.size)
        least = np.maximum(least, np.maximum(distance, depth - distance))
        candidate = int(np.argmin(least))
        if least[candidate] >= best_depth:
            break
    return best


def _middle(network: Network) -> int:
    """A client halfway along a long shortest path: on a tree, a centre."""
    anywhere = _levels(network, 0)  # no mutants: any client will do
    start = _levels(network, anywhere[-1][0])
    length = len(start) - 1
    from_the_end = _levels(network, start[-1][0])
    halfway = sorted(set(start[length // 2]) & set(from_the_end[length - length // 2]))
    return halfway[len(halfway) // 2]


def _distances(levels: list[list[int]], clients: int) -> Distances:
    distance = np.zeros(clients, dtype=np.int64)
    for d, level in enumerate(levels):
        distance[level] = d
    return distance


def _levels(network: Network, start: int) -> list[list[int]]:
    return breadth_first(network.neighbours, start, set(range(network.size)))
