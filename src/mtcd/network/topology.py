"""The graph of the clients, and its standard kinds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise
from math import isqrt
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from mtcd.core.errors import NetworkError, check_known, listing
from mtcd.core.seeding import stream
from mtcd.network.complete import CompleteNeighbours
from mtcd.network.geometric import random_geometric

Neighbours = Sequence[Sequence[int]]
"""For each client its neighbours, sorted."""
Edges = NDArray[np.int64]
"""One row (k, j) for each edge."""
STORED = 1000
"""The neighbours of larger complete networks are computed when they are read."""


@dataclass(frozen=True)
class Change:
    """Clients that leave and join a network during a training.

    Parameters
    ----------
    iteration : int
        When: hops per token.
    leave : sequence of str or int
        Those that leave, by name or number.
    join : sequence of str or int
        Those that join.

    Examples
    --------
    >>> import mtcd
    >>> mtcd.Change(100, leave=["bank"]).iteration
    100
    """

    iteration: int
    leave: Sequence[Any] = ()
    join: Sequence[Any] = ()


@dataclass(frozen=True, eq=False)
class Network:
    """An undirected graph over clients 0..K-1; edges are direct links.

    Made by :func:`make_network` or :func:`network_from_edges`.

    Parameters
    ----------
    clients : tuple of str
        The names of the clients.
    neighbours : tuple of tuples of int
        The neighbours of each client.
    changes : tuple of Change
        Clients that leave and join: see :func:`with_changes`.
    notes : tuple of str
        What the user should know of it.

    Examples
    --------
    >>> import mtcd
    >>> mtcd.make_network("cycle", ["a", "b", "c", "d"]).neighbours[0]
    (1, 3)
    """

    clients: tuple[str, ...]
    neighbours: Neighbours  # sorted, without the client itself
    changes: tuple[Change, ...] = ()  # see with_changes: in order, clients by number
    notes: tuple[str, ...] = ()  # for the user: what of a graph was not used

    def __repr__(self) -> str:
        changes = ""
        if self.changes:
            changes = f", {len(self.changes)} change(s)"
        return f"Network({self.size:,} client(s): {listing(self.clients, 4)}; {self.edges:,} edges{changes})"

    @property
    def size(self) -> int:
        """K, the number of clients."""
        return len(self.clients)

    @cached_property
    def edges(self) -> int:
        """The number of edges."""
        return sum(map(len, self.neighbours)) // 2

    @property
    def complete(self) -> bool:
        """Whether all clients are neighbours."""
        return self.edges == self.size * (self.size - 1) // 2

    @cached_property
    def graph(self) -> nx.Graph:
        """The same graph for networkx; its nodes are the numbers of the clients."""
        graph = nx.Graph()
        graph.add_nodes_from(range(self.size))
        for k, near in enumerate(self.neighbours):
            # Each link once, from its smaller end.
            graph.add_edges_from((k, j) for j in near if k < j)
        return graph

    @cached_property
    def components(self) -> tuple[tuple[int, ...], ...]:
        """The connected components, each sorted, in the order of their first members."""
        if self.complete:  # A search would read all K (K - 1) links to find one component.
            return (tuple(range(self.size)),)
        return connected_pieces(self.neighbours, range(self.size))

    @cached_property
    def tours(self) -> dict[tuple[int, ...], list[int]]:
        """A cache of closed walks through clusters: see ``tours.py``."""
        return {}

    @property
    def connected(self) -> bool:
        """Whether there is a path from any client to any other."""
        return len(self.components) == 1


def make_network(
    kind: str,
    clients: Sequence[str],
    *,
    p: float | None = None,
    rows: int | None = None,
    radius: float | None = None,
    seed: int = 0,
) -> Network:
    """Make a network of a standard kind.

    Parameters
    ----------
    kind : str
        'complete', 'cycle', 'path', 'grid', 'star', 'erdos-renyi', 'random-geometric' or 'empty'.
    clients : sequence of str
        The names of the clients.
    p : float, optional
        The probability of each edge of an Erdos-Renyi graph, which is used as it is drawn,
        connected or not.
    rows : int, optional
        The rows of a grid; without it the grid is as near to a square as K allows.
    radius : float, optional
        The distance up to which clients of a random geometric graph, at random places in a square
        of side 1, are linked. Such a graph must be connected.
    seed : int, default 0
        Determines random graphs.

    Returns
    -------
    Network
        The clients and their links.

    Raises
    ------
    NetworkError
        If there is no such network of these clients.

    Examples
    --------
    >>> make_network("path", ["a", "b", "c"]).neighbours
    ((1,), (0, 2), (1,))
    """
    names = checked_names(clients)
    K = len(names)
    check_known(kind, KINDS, f"unknown kind of network '{kind}':", NetworkError)

    # A setting of another kind is refused, not ignored: the network would not be the one meant.
    settings = (
        ("p", p, "erdos-renyi"),
        ("rows", rows, "grid"),
        ("radius", radius, "random-geometric"),
    )
    for setting, value, of in settings:
        if value is not None and kind != of:
            raise NetworkError(f"{setting} is for the kind '{of}' only: leave it out for '{kind}'")

    if kind == "complete":
        return Network(names, _complete(K))
    if kind == "grid":
        edges = _grid(K, rows)
    elif kind == "erdos-renyi":
        edges = _erdos_renyi(K, p, seed)
    elif kind == "random-geometric":
        edges = random_geometric(K, radius, seed)
    else:
        edges = _FIXED[kind](K)
    return Network(names, neighbour_lists(edges, K))


def breadth_first(
    neighbours: Neighbours | Mapping[int, Sequence[int]], start: int, unseen: set[int]
) -> list[list[int]]:
    """The members of ``unseen`` that are reachable from ``start`` within it, by distance; they are
    removed from it.

    >>> breadth_first([[1], [0, 2], [1]], 0, {0, 1, 2})
    [[0], [1], [2]]
    """
    # The caller's own set, from which a search over several components takes what it found.
    unseen.discard(start)
    levels = []
    level = [start]
    while level:
        levels.append(level)
        level = []
        for k in levels[-1]:
            # On dense graphs this ends the search after a few clients.
            if not unseen:
                break  # only saves time
            found = unseen.intersection(neighbours[k])
            unseen.difference_update(found)
            level.extend(sorted(found))
    return levels


def connected_pieces(neighbours: Neighbours, members: Iterable[int]) -> tuple[tuple[int, ...], ...]:
    """The connected components of the graph on ``members`` alone, in the order of
    ``Network.components``."""
    unseen = set(members)
    pieces = []
    for start in sorted(unseen):
        if start in unseen:
            levels = breadth_first(neighbours, start, unseen)
            pieces.append(tuple(sorted(chain.from_iterable(levels))))

    return tuple(pieces)


def levels_from(network: Network, start: int) -> list[list[int]]:
    """All clients that are reachable from ``start``, by distance."""
    return breadth_first(network.neighbours, start, set(range(network.size)))


def parents_in(levels: list[list[int]], neighbours: Neighbours) -> dict[int, int]:
    """A tree of shortest paths from a search: for each client but the first, its smallest neighbour
    one level nearer."""
    parents = {}
    for above, level in pairwise(levels):
        upper = set(above)
        for k in level:
            # The smallest, not the first found: sets have no order, and parties must agree on the
            # tree.
            parents[k] = min(upper.intersection(neighbours[k]))
    return parents


def long_path(network: Network) -> tuple[int, int]:
    """The length of a long shortest path, and a client halfway along it.

    The farthest client from anywhere, and the farthest from that one: on a tree this is a longest
    path, and its middle a centre. The network must be connected.

    >>> long_path(make_network("path", ["a", "b", "c"]))
    (2, 1)
    """
    anywhere = levels_from(network, 0)  # any client will do
    far = levels_from(network, anywhere[-1][0])
    length = len(far) - 1
    from_the_end = levels_from(network, far[-1][0])

    half = length // 2  # any client will do, and one in the middle is done soonest
    halfway = sorted(set(far[half]) & set(from_the_end[length - half]))
    return length, halfway[len(halfway) // 2]


def checked_names(clients: Sequence[str]) -> tuple[str, ...]:
    """The names as a tuple, if there are any and they differ."""
    names = tuple(clients)
    if not names:
        raise NetworkError("a network needs at least one client")
    doubled = [name for name, times in Counter(names).items() if times > 1]
    if doubled:
        raise NetworkError(f"names of clients must differ, but these repeat: {listing(doubled)}")
    return names


def neighbour_lists(edges: Edges, K: int) -> Neighbours:
    """The neighbours of each client, sorted; loops dropped, repeated edges taken once."""
    # Both ways at once, so that one sort gives the lists of all clients.
    both = np.concatenate([edges, edges[:, ::-1]])
    both = both[both[:, 0] != both[:, 1]]
    codes = np.sort(both[:, 0] * K + both[:, 1])  # by client, then neighbour

    # Each once. No code is 0, which would be the loop of client 0. np.unique takes ten times as
    # long.
    codes = codes[np.diff(codes, prepend=0) > 0]

    ends = np.searchsorted(codes, np.arange(K + 1) * K).tolist()
    others = (codes % K).tolist()
    return tuple(tuple(others[ends[k] : ends[k + 1]]) for k in range(K))


def _complete(K: int) -> Neighbours:
    """All others. A list of edges would be far larger than the network."""
    if K > STORED:
        return CompleteNeighbours(K)
    everyone = tuple(range(K))
    return tuple(everyone[:k] + everyone[k + 1 :] for k in everyone)


def _path(K: int) -> Edges:
    return np.column_stack([np.arange(K - 1), np.arange(1, K)])


def _cycle(K: int) -> Edges:
    return np.column_stack([np.arange(K), (np.arange(K) + 1) % K])


def _star(K: int) -> Edges:
    return np.column_stack([np.zeros(K - 1, dtype=np.int64), np.arange(1, K)])


def _empty(K: int) -> Edges:
    return np.empty((0, 2), dtype=np.int64)


def _grid(K: int, rows: int | None) -> Edges:
    if rows is None:
        rows = next(r for r in range(isqrt(K), 0, -1) if K % r == 0)
    elif rows < 1 or K % rows:
        most = 20
        fitting = listing([r for r in range(1, K + 1) if K % r == 0], limit=most)
        raise NetworkError(f"{K} clients do not fill {rows} rows: choose rows from {fitting}")
    at = np.arange(K).reshape(rows, -1)
    along = np.column_stack([at[:, :-1].ravel(), at[:, 1:].ravel()])
    down = np.column_stack([at[:-1].ravel(), at[1:].ravel()])
    return np.concatenate([along, down])


def _erdos_renyi(K: int, p: float | None, seed: int) -> Edges:
    """Each pair is an edge with probability p: a binomial number of pairs, drawn uniformly."""
    if p is None:
        raise NetworkError(
            "the kind 'erdos-renyi' needs p, the probability of each edge, from 0 to 1"
        )
    if not 0 <= p <= 1:
        raise NetworkError(f"p is a probability, from 0 to 1; got {p}")
    pairs = K * (K - 1) // 2
    if not pairs:
        return _empty(K)

    # Numbers of pairs, not pairs: of a large sparse network nearly all pairs are no links.
    rng = stream(seed, "network")
    chosen = rng.choice(pairs, rng.binomial(pairs, p), replace=False, shuffle=False)

    # Pair number j(j-1)/2 + k is (k, j), k < j.
    firsts = np.arange(K) * (np.arange(K) - 1) // 2
    j = np.searchsorted(firsts, chosen, side="right") - 1
    return np.column_stack([chosen - firsts[j], j])


_FIXED: dict[str, Callable[[int], Edges]] = {
    "cycle": _cycle,
    "path": _path,
    "star": _star,
    "empty": _empty,
}
KINDS = ("complete", "cycle", "path", "grid", "star", "erdos-renyi", "random-geometric", "empty")
DRAWN = ("erdos-renyi", "random-geometric")
"""The kinds that are drawn from a seed."""
