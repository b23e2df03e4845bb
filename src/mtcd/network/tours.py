"""Closed walks that visit every client of a cluster, as short as a quick search finds.

A Hamiltonian cycle, K hops, is the shortest. If none is found, the walk follows the shortest paths
of a good round trip, and on networks too large for that search once around a spanning tree: 2(K -
1) hops, possible on every connected graph.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import networkx as nx
import numpy as np

from mtcd.core.errors import NetworkError
from mtcd.core.mappings import positions
from mtcd.core.seeding import stream
from mtcd.network.topology import Network, breadth_first, connected_pieces, parents_in

# Beyond these sizes a search would take longer than it saves.
LARGEST_ROUND_TRIP = 150
LARGEST_CYCLE = 5000
ROTATIONS = 60
"""Rotations per client before a search for a cycle restarts."""
ATTEMPTS = 12  # only saves time
LARGE = 1000  # an attempt on a large network takes seconds
ATTEMPTS_OF_LARGE = 2  # only saves time


def closed_walk(network: Network, members: Sequence[int]) -> list[int]:
    """A short closed walk: the clients in its order; the last is followed by the first.

    >>> from mtcd.network.topology import make_network
    >>> closed_walk(make_network("path", ["a", "b", "c"]), range(3))
    [0, 1, 2, 1]
    """
    # The walk depends on the network and its members alone: it is looked for once per run, as the
    # search may take seconds.
    # Sorted: a set of members has one walk, in whatever order it is named.
    key = tuple(sorted(members))
    if key not in network.tours:
        network.tours[key] = short_walk(network, key)
    return network.tours[key]


def walk_through_all(network: Network, end: int) -> list[int]:
    """A walk along links through all clients that ends at ``end``: the shortest suffix of a closed
    walk.

    >>> from mtcd.network.topology import make_network
    >>> walk_through_all(make_network("path", ["a", "b", "c"]), 0)
    [2, 1, 0]
    """
    tour = closed_walk(network, range(network.size))
    walks = []
    for place, client in enumerate(tour):
        if client == end:
            once_around = [*tour[place:], *tour[:place], end]
            last = positions(once_around)
            walks.append(once_around[min(last.values()) :])

    return min(walks, key=len)


def short_walk(network: Network, members: tuple[int, ...]) -> list[int]:
    """The closed walk of :func:`closed_walk` through sorted members, looked for anew and not kept:
    for searches that try many clusters.

    >>> from mtcd.network.topology import make_network
    >>> short_walk(make_network("complete", ["a", "b", "c"]), (0, 2))
    [0, 2]
    """
    check_reach(network, members)
    if len(members) == 1 or network.complete:  # any order is a cycle then
        return [*members]

    graph = network.graph.subgraph(members)
    cycle = ring(graph) or hamiltonian_cycle(graph)
    if cycle is not None:
        return cycle

    # The walk that always exists, in case that the search finds nothing shorter.
    around = around_the_tree(spanning_tree(network, members), min(members))
    if len(members) > LARGEST_ROUND_TRIP:
        return around
    return min(around, round_trip(graph, list(dict.fromkeys(around))), key=len)


def check_reach(network: Network, members: Sequence[int]) -> None:
    """Reject clients that are not connected among themselves."""
    if not network.complete and len(connected_pieces(network.neighbours, members)) > 1:
        raise NetworkError(
            "a tour needs clients that can all be reached from each other: add links, or use "
            "clusters with walk: tour."
        )


def spanning_tree(network: Network, members: Sequence[int]) -> dict[int, list[int]]:
    """The neighbours of each member in a tree of shortest paths from the smallest."""
    check_reach(network, members)
    levels = breadth_first(network.neighbours, min(members), set(members))
    tree: dict[int, list[int]] = {k: [] for k in members}
    for k, parent in parents_in(levels, network.neighbours).items():
        tree[parent].append(k)
        tree[k].append(parent)

    return {k: sorted(near) for k, near in tree.items()}


def around_the_tree(tree: dict[int, list[int]], root: int) -> list[int]:
    """Once along both sides of every branch: 2(K - 1) hops.

    >>> around_the_tree({0: [1], 1: [0, 2], 2: [1]}, root=0)
    [0, 1, 2, 1]
    """
    walk = [root]
    previous = root
    for _ in range(2 * (len(tree) - 1) - 1):
        here = walk[-1]
        walk.append(following(tree[here], previous))
        previous = here
    return walk


def following(branches: Sequence[int], previous: int) -> int:
    """The branch after the one the token came from, in cyclic order; the first branch at the start.

    Taking it at every client leads around the whole tree: a client needs no other routing
    information.

    >>> following([2, 5, 7], previous=5), following([2, 5, 7], previous=7)
    (7, 2)
    """
    # A bisection: the middle of a star has as many branches as there are clients.
    place = bisect_left(branches, previous)
    if place == len(branches) or branches[place] != previous:
        return branches[0]
    return branches[(place + 1) % len(branches)]


def ring(graph: nx.Graph) -> list[int] | None:
    """The only cycle there is, where every client has two neighbours, however many there are."""
    if any(degree != 2 for _, degree in graph.degree):
        return None

    start = min(graph)
    walk = [start, min(graph[start])]
    while walk[-1] != start:
        walk.append(next(k for k in graph[walk[-1]] if k != walk[-2]))
    return walk[:-1]


def hamiltonian_cycle(graph: nx.Graph) -> list[int] | None:
    """A cycle through all, by Posa's rotations: a path is extended if possible, and rotated
    otherwise."""
    nodes = sorted(graph)
    if not 3 <= len(nodes) <= LARGEST_CYCLE:
        return None
    if not nx.is_biconnected(graph) or _uneven(graph):  # there is none
        return None

    number = positions(nodes)
    near = [sorted(map(number.__getitem__, graph[k])) for k in nodes]
    for attempt in range(ATTEMPTS if len(nodes) <= LARGE else ATTEMPTS_OF_LARGE):
        # Seeds without the user's: a tour belongs to the network, and every party finds the same.
        rng = stream(0, "hamiltonian cycle", attempt)
        path = _rotated_path(near, ROTATIONS * len(nodes), rng)
        if path is not None:
            return [nodes[i] for i in path]
    return None


def _uneven(graph: nx.Graph) -> bool:
    """Whether it is bipartite with sides of different size, as half of all grids are: it has no
    such cycle then."""
    try:
        sides = nx.bipartite.color(graph)
    except nx.NetworkXError:
        return False
    return bool(2 * sum(sides.values()) != len(sides))


def _rotated_path(near: list[list[int]], most: int, rng: np.random.Generator) -> list[int] | None:
    """One attempt: a path from 0 through all whose end is next to it, or None."""
    K = len(near)
    # Arrays, as a rotation turns half of the path on average.
    path = np.zeros(K, dtype=np.int64)
    place = np.full(K, K)  # of each client on the path; K: not on it yet
    seen = [False] * K

    end = 0
    size = 1
    place[0] = 0
    seen[0] = True
    for draw in rng.random(most):
        # A path through all whose ends are linked is the cycle.
        if size == K and 0 in near[end]:
            return [int(k) for k in path]

        fresh = [k for k in near[end] if not seen[k]]
        if fresh:
            # Those with few ways left first: they are the hard ones to reach later.
            dense = 2 * len(near[end]) > K  # a rule of thumb; there, none is hard
            if dense:
                end = fresh[0]  # any will do
            else:
                end = min(fresh, key=lambda k: (sum(not seen[j] for j in near[k]), k))
            path[size] = end
            place[end] = size
            seen[end] = True
            size += 1
            continue

        # A link from the end back to the path: what follows its other end is turned round.
        inner = [k for k in near[end] if place[k] < size - 2]
        if not inner:
            return None
        pivot = int(place[inner[int(draw * len(inner))]])
        turned = path[pivot + 1 : size][::-1].copy()
        path[pivot + 1 : size] = turned
        place[turned] = np.arange(pivot + 1, size)
        end = int(path[size - 1])

    return None


def round_trip(graph: nx.Graph, order: list[int]) -> list[int]:
    """Shortest paths from one client to the next in an order that 2-opt has improved: pieces are
    turned round as long as that makes the trip shorter."""
    number = positions(order)
    far = np.zeros((len(order), len(order)))
    for k, lengths in nx.all_pairs_shortest_path_length(graph):
        for j, length in lengths.items():
            far[number[k], number[j]] = length

    # The order around the tree is a good start: its neighbours are near each other already.
    trip = np.arange(len(order))
    better = True
    while better:
        better = False
        for i in range(1, len(trip)):
            # What it changes to turn the piece from place i to each later one.
            before = trip[i - 1]
            first = trip[i]
            lasts = trip[i:]
            afters = np.append(trip[i + 1 :], trip[0])
            change = far[before, lasts] + far[first, afters]
            change -= far[before, first] + far[lasts, afters]
            j = int(change.argmin())
            if change[j] < 0:
                trip[i : i + j + 1] = trip[i : i + j + 1][::-1]
                better = True

    stops = [order[i] for i in trip]
    walk: list[int] = []
    for here, there in zip(stops, [*stops[1:], stops[0]], strict=True):
        walk += nx.shortest_path(graph, here, there)[:-1]
    return walk
