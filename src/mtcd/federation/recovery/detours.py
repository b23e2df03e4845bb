"""The way of a token round those who are gone.

Walks that go by chance take another neighbour. A tour is another matter: who goes on by the number of the hop may
miss the same client for ever. So while somebody is gone, the token goes round a closed walk of its own, through all
that it can still get to, in which no two clients follow each other twice in the same order: who has it now and who
had it before tell the place in it, and once round it, everybody has been visited.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache

from mtcd.network.topology import Network, breadth_first
from mtcd.network.tours import around_the_tree, hamiltonian_cycle, spanning_tree
from mtcd.network.walks import Walk


def way_round(
    walk: Walk, network: Network, planned: int, here: int, previous: int, gone: Collection[int], draw: float
) -> int:
    """Where the token goes from ``here``, where it came from ``previous`` and the walk leads to ``planned``.

    To ``planned``, if nobody is gone that matters. ``here`` itself, if there is nobody else. ``draw`` is in [0, 1).
    """
    if walk.length is None:
        return planned if planned not in gone else detour(walk.near(here), gone, here, draw)
    if planned in (here, *walk.near(here)) and not any(walk.covers(k) for k in gone):
        return planned
    members = {k for k in range(network.size) if walk.covers(k) and k not in gone}
    piece = [k for level in breadth_first(network.neighbours, here, members) for k in level]
    way = closed_way(network, tuple(sorted(piece)))
    places = [i for i, k in enumerate(way) if k == here]
    place = next((i for i in places if way[i - 1] == previous), places[0])
    return way[(place + 1) % len(way)]


@lru_cache(maxsize=256)
def closed_way(network: Network, members: tuple[int, ...]) -> list[int]:
    """Through all members, who are in one piece: round a cycle, or round a tree, every branch once each way."""
    if len(members) <= 2:
        return list(members)
    cycle = hamiltonian_cycle(network.graph.subgraph(members))
    start = members[0]  # no mutants: the way is closed, so that any will do
    return cycle or around_the_tree(spanning_tree(network, members), start)


def detour(near: Collection[int], gone: Collection[int], here: int, draw: float) -> int:
    """Somebody near who is there; here itself if there is nobody."""
    living = [k for k in sorted(near) if k not in gone] or [here]
    return living[int(draw * len(living))]
