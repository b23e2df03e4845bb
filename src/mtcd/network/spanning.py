"""A spanning tree from a centre of the network: sums travel up it, results travel down."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mtcd.network.topology import Network, levels_from, long_path, parents_in

SEARCHES = 40
"""Searches spent on finding a centre; trees and complete networks need up to four."""


@dataclass(frozen=True)
class SpanningTree:
    """A tree over all clients.

    Parameters
    ----------
    root
        The client at which sums arrive.
    parents
        For each client the next one on the way to the root; None at the root.
    levels
        The clients by their distance from the root.

    Examples
    --------
    >>> SpanningTree(1, parents=(1, None, 1), levels=((1,), (0, 2))).children
    ((), (0, 2), ())
    """

    root: int
    parents: tuple[int | None, ...]
    levels: tuple[tuple[int, ...], ...]

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
    levels = levels_from(network, root)
    parents = parents_in(levels, network.neighbours)
    towards = tuple(map(parents.get, range(network.size)))
    return SpanningTree(root, towards, tuple(map(tuple, levels)))


def _centre(network: Network) -> int:
    """A centre: the client whose largest distance to another client is least.

    With e the distance of the farthest from some client, that of any client at distance d from it
    is at least max(d, e - d). The search tries the client with the least bound, until none can be
    better than the best.
    """
    least = np.zeros(network.size, dtype=np.int64)  # what is known of each client's farthest
    _, candidate = long_path(network)
    best = candidate
    best_depth = network.size
    for _ in range(SEARCHES):
        levels = levels_from(network, candidate)
        depth = len(levels) - 1
        if depth < best_depth:
            best = candidate
            best_depth = depth

        distance = np.zeros_like(least)
        for d, level in enumerate(levels):
            distance[level] = d
        least = np.maximum(least, np.maximum(distance, depth - distance))
        # Clients that no bound tells apart are tried in the order of their numbers, so that each
        # party, which searches alone, finds the same root.
        candidate = int(np.argmin(least))
        if least[candidate] >= best_depth:
            break
    return best
