"""Repair of tours when clients leave and join: few changes of the old walk, so that few routing
tables change."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from itertools import chain

import networkx as nx

from mtcd.network.topology import Network, breadth_first
from mtcd.network.tours import check_reach, closed_walk

TOO_LONG = 1.25
"""A repaired tour that is longer than a new one by this factor is replaced by it."""


def repaired(tour: list[int], network: Network, members: Sequence[int]) -> list[int]:
    """A closed walk through exactly ``members``, which are connected: the old one repaired, or a
    new one if shorter.

    >>> from mtcd.network.topology import make_network
    >>> repaired([0, 1, 2, 3, 4], make_network("complete", "abcdef"), [0, 1, 3, 4, 5])
    [0, 5, 1, 3, 4]
    """
    # Joins that lead back to the old members must not change the way of the token.
    if set(tour) == set(members):
        return tour

    walk = mended(tour, network, members)
    fresh = closed_walk(network, members)
    # A new tour changes the routing table of nearly every client; a longer one costs hops in every
    # round. Up to this factor the tables are dearer.
    if len(walk) <= TOO_LONG * len(fresh):
        return walk
    return fresh


def mended(tour: Sequence[int], network: Network, members: Sequence[int]) -> list[int]:
    """Remove absent clients, bridge the gaps by shortest paths, and insert new clients where it
    costs fewest hops."""
    check_reach(network, members)
    graph = network.graph.subgraph(members)
    remaining = [k for k in tour if k in graph]
    walk = _bridged(remaining or [min(members)], graph)
    # In the order of numbers: every party repairs for itself, and must find the same tour.
    for k in sorted(set(members).difference(walk)):
        if k not in walk:  # the path to another may contain it
            walk = _with(walk, k, graph)

    return _shortened(walk, network)


def _bridged(stops: Sequence[int], graph: nx.Graph) -> list[int]:
    """A closed walk through the stops in their order, by shortest paths."""
    walk: list[int] = []
    for here, there in zip(stops, [*stops[1:], stops[0]], strict=True):
        if graph.has_edge(here, there):  # a search would go through all neighbours
            walk.append(here)
        else:
            walk += nx.shortest_path(graph, here, there)[:-1]

    return walk or [stops[0]]  # a single stop: the path from it to itself has no link


def _with(walk: Sequence[int], k: int, graph: nx.Graph) -> list[int]:
    """The walk with a detour to ``k``."""
    far = nx.single_source_shortest_path_length(graph, k)
    after = [*walk[1:], walk[0]]
    place = min(range(len(walk)), key=lambda i: far[walk[i]] + far[after[i]])
    # Through the shared graph of the members only: an absent client cannot pass a token on.
    there = nx.shortest_path(graph, walk[place], k)
    back = nx.shortest_path(graph, k, after[place])
    return [*walk[: place + 1], *there[1:], *back[1:-1], *walk[place + 1 :]]


def _shortened(walk: list[int], network: Network) -> list[int]:
    """Drop passages of clients that are visited elsewhere too, if the clients before and after are
    neighbours.

    If these are the same client, one of its two passages is dropped as well.
    """
    times = Counter(walk)
    place = 0
    while place < len(walk):
        k = walk[place]
        before = walk[place - 1]
        after = walk[(place + 1) % len(walk)]
        spare = times[k] > 1 and (before == after or after in network.neighbours[before])
        if not spare:
            place += 1
            continue
        times[k] -= 1
        del walk[place]
        place = max(place - 1, 0)  # the one before has another neighbour now
    return walk


def repaired_tree(
    tree: Mapping[int, Sequence[int]], network: Network, members: Sequence[int]
) -> dict[int, list[int]]:
    """A spanning tree of ``members``, which are connected, with all remaining branches of the old
    one.

    A subtree that was cut off is attached to a neighbour, and so is a new client.
    """
    check_reach(network, members)
    inside = set(members)
    branches: dict[int, list[int]] = {}
    for k in members:
        branches[k] = [j for j in tree.get(k, ()) if j in inside]

    pieces: dict[int, list[int]] = {}
    """For each member what is left of the old tree around it."""
    unseen = set(members)
    for start in sorted(members):
        if start in unseen:
            piece = list(chain.from_iterable(breadth_first(branches, start, unseen)))
            pieces |= dict.fromkeys(piece, piece)

    # Hang the other pieces onto the largest, from its smallest client on.
    # Of several of one size the first: all parties hang the same pieces in the same places.
    largest: list[int] = max(pieces.values(), key=len)
    hung = set(largest)
    queue = deque(sorted(hung))
    while queue:
        k = queue.popleft()
        for j in network.neighbours[k]:
            if j in inside and j not in hung:
                branches[k].append(j)
                branches[j].append(k)
                hung.update(pieces[j])
                queue.extend(pieces[j])
    return {k: sorted(near) for k, near in branches.items()}
