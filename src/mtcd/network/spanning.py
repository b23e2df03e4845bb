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

    @property
    def degree(self) -> int:
        """The most neighbours that a client has in the tree."""
        above = (int(parent is not None) for parent in self.parents)
        return max(len(below) + up for below, up in zip(self.children, above, strict=True))

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """The children of each client, sorted."""
        found: list[list[int]] = [[] for _ in self.parents]
        for k, parent in enumerate(self.parents):
            if parent is not None:
                found[parent].append(k)
        return tuple(map(tuple, found))


def spanning_tree(network: Network, degree: int | None = None) -> SpanningTree:
    """Shortest paths from a centre: the least depth that a spanning tree can have. The network must
    be connected.

    It depends on the network alone, so every party finds the same. On large networks without a
    clear centre (long cycles), the depth is the least of ``SEARCHES`` possible roots.

    Parameters
    ----------
    network
        The network.
    degree
        The most neighbours that a client should have in the tree. If the tree of shortest paths has
        more, clients are hung below others as near to the root as there is room. Where this search
        finds no such tree, twice as many neighbours are allowed, and so on: a star has no other
        tree than itself.

    Returns
    -------
    SpanningTree
        The tree.

    Examples
    --------
    >>> from mtcd.network.topology import make_network
    >>> spanning_tree(make_network("path", ["a", "b", "c"]))
    SpanningTree(root=1, parents=(1, None, 1), levels=((1,), (0, 2)))
    >>> complete = make_network("complete", [f"c{k}" for k in range(200)])
    >>> spanning_tree(complete).depth, spanning_tree(complete, degree=4).depth
    (1, 5)
    """
    root = _centre(network)
    levels = levels_from(network, root)
    parents = parents_in(levels, network.neighbours)
    towards = tuple(map(parents.get, range(network.size)))
    tree = SpanningTree(root, towards, tuple(map(tuple, levels)))
    if degree is None:
        return tree

    room = degree
    while room < tree.degree:
        found = _with_room(network, root, room)
        if found is not None:
            return found
        room *= 2
    return tree


def _with_room(network: Network, root: int, degree: int) -> SpanningTree | None:
    """A tree in which no client has more neighbours than this, level by level; None if some clients
    are left that only full ones could take."""
    if network.complete:
        return _filled(network.size, root, degree)

    parents: list[int | None] = [None] * network.size
    room = [degree - 1] * network.size  # for children: one neighbour is the parent
    room[root] = degree
    left = set(range(network.size)) - {root}

    levels = [[root]]
    while left:
        ways: dict[int, list[int]] = {}
        for parent in levels[-1]:
            for k in left.intersection(network.neighbours[parent]):
                ways.setdefault(k, []).append(parent)

        level = []
        # Those with the fewest ways to be reached first: the others have a choice left.
        for k in sorted(ways, key=lambda k: (len(ways[k]), k)):
            parent = max(ways[k], key=lambda parent: (room[parent], -parent))
            if room[parent]:
                room[parent] -= 1
                parents[k] = parent
                level.append(k)

        if not level:
            return None
        left.difference_update(level)
        levels.append(sorted(level))

    return SpanningTree(root, tuple(parents), tuple(map(tuple, levels)))


def _filled(clients: int, root: int, degree: int) -> SpanningTree:
    """The tree of a complete network, each level filled before the next begins: a search would look
    at all links."""
    parents: list[int | None] = [None] * clients
    levels = [[root]]
    waiting = [k for k in range(clients) if k != root]
    while waiting:
        level = []
        for parent in levels[-1]:
            children = degree if parent == root else degree - 1
            taken, waiting = waiting[:children], waiting[children:]
            for k in taken:
                parents[k] = parent
            level.extend(taken)
        levels.append(level)

    return SpanningTree(root, tuple(parents), tuple(map(tuple, levels)))


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
