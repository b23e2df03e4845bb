"""The way of a token around clients that are down.

A random walk takes another neighbour. A tour cannot: a token that goes on by the number of the hop
may miss the same client for ever. So while a client is down, the token follows a closed walk of its
own, through all clients that it can reach, in which no two clients follow each other twice in the
same order: the client that holds the token and the one before determine the position in it, and
after one round every client has been visited.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache

from mtcd.network.topology import Network, breadth_first
from mtcd.network.tours import around_the_tree, hamiltonian_cycle, spanning_tree
from mtcd.network.walks import Walk


def next_around(
    walk: Walk,
    network: Network,
    planned: int,
    here: int,
    previous: int,
    down: Collection[int],
    draw: float,
) -> int:
    """The next client of a token at ``here``, which came from ``previous`` and whose walk leads to
    ``planned``.

    ``planned``, if no client is down that matters; ``here`` itself, if there is no other. ``draw``
    is in [0, 1).
    """
    if walk.length is None:
        if planned not in down:
            return planned
        return _other_neighbour(walk.near(here), down, here, draw)
    if planned in (here, *walk.near(here)) and not any(walk.covers(k) for k in down):
        return planned
    members = {k for k in range(network.size) if walk.covers(k) and k not in down}
    piece = [k for level in breadth_first(network.neighbours, here, members) for k in level]
    walk_around = closed_walk(network, tuple(sorted(piece)))
    places = [i for i, k in enumerate(walk_around) if k == here]
    anywhere = places[0]  # the walk is closed, so that any will do
    place = next((i for i in places if walk_around[i - 1] == previous), anywhere)
    return walk_around[(place + 1) % len(walk_around)]


@lru_cache(maxsize=256)
def closed_walk(network: Network, members: tuple[int, ...]) -> list[int]:
    """Through all members, who are in one piece: round a cycle, or round a tree, every branch once
    each way."""
    cycle = hamiltonian_cycle(network.graph.subgraph(members))
    start = members[0]  # the way is closed, so that any will do
    return cycle or around_the_tree(spanning_tree(network, members), start)


def _other_neighbour(near: Sequence[int], down: Collection[int], here: int, draw: float) -> int:
    up = [k for k in near if k not in down] or [here]
    return up[int(draw * len(up))]
