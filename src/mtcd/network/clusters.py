"""Clusters: groups of clients, each connected, every client in exactly one."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from itertools import chain

import numpy as np
import scipy  # its parts are loaded when they are used

from mtcd.core.arrays import Array
from mtcd.core.errors import NetworkError, listing
from mtcd.network.communities import communities
from mtcd.network.edges import ClientNames
from mtcd.network.spectrum import adjacency, fiedler_sparse, laplacian
from mtcd.network.topology import Network, breadth_first, connected_pieces

Cluster = tuple[int, ...]

DENSE_LIMIT = 64
"""Up to this many clients all eigenvectors are cheap."""
MOVES = 32
"""Clients that may change sides after a cut, to even the sides out."""


def find_clusters(network: Network, count: int | None = None, seed: int = 0) -> tuple[Cluster, ...]:
    """Connected clusters of the network.

    Parameters
    ----------
    network
        The clients and their links.
    count
        How many clusters, of even size; without it, the communities of the network. Evenness gives
        way to connectedness: a star in two is one leaf and the rest.
    seed
        Of the search for communities.

    Returns
    -------
    tuple of clusters
        Each sorted, in the order of their first members.

    Raises
    ------
    NetworkError
        If there are no such clusters.

    Examples
    --------
    >>> from mtcd.network.topology import make_network
    >>> find_clusters(make_network("path", "abcd"), count=2)
    ((0, 1), (2, 3))
    """
    if count is None:
        return communities(network, seed)
    parts = network.components
    if count < len(parts):
        raise NetworkError(
            f"{count} clusters asked for, but a cluster must be connected, and the network has "
            f"{len(parts)} connected component(s): ask for at least {len(parts)}"
        )
    if count > network.size:
        raise NetworkError(
            f"{count} clusters asked for, but there are {network.size} clients: a token per "
            f"cluster needs a client for each"
        )

    # A complete network of 10,000 clients would have 10^8 entries, and needs none of them.
    A = None
    if not network.complete:
        A = adjacency(network)

    todo = list(zip(parts, _shares([len(part) for part in parts], count), strict=True))
    done: list[Cluster] = []
    # Cut in two again and again: each cut is small enough to be made connected and even, which a
    # cut into many at once is not.
    while todo:
        members, share = todo.pop()
        if share == 1:
            done.append(members)
        elif share == len(members):
            done.extend((k,) for k in members)
        else:
            todo.extend(_bisect(network, A, members, share))
    return tuple(sorted(done))


def check_clusters(network: Network, groups: Sequence[Sequence[str | int]]) -> tuple[Cluster, ...]:
    """Given clusters, by names or numbers of clients, as sorted numbers; invalid ones are
    rejected."""
    names = ClientNames(network.clients)
    clusters = []
    for c, group in enumerate(groups):
        clusters.append(tuple(sorted(names.number(who, f"cluster {c}") for who in group)))

    home: dict[int, int] = {}
    for c, cluster in enumerate(clusters):
        if not cluster:
            raise NetworkError(f"cluster {c} is empty: remove it, or put a client in it")
        for k in cluster:
            if k in home:
                raise NetworkError(
                    f"client '{network.clients[k]}' is in cluster {home[k]} and again in cluster "
                    f"{c}: keep it in one place"
                )
            home[k] = c

    missing = [name for k, name in enumerate(network.clients) if k not in home]
    if missing:
        raise NetworkError(
            f"every client belongs in a cluster, but these are in none: {listing(missing)}"
        )

    # Last: what is missing or named twice explains why a cluster falls apart.
    for c, cluster in enumerate(clusters):
        _check_connected(network, c, cluster)
    return tuple(clusters)


def _check_connected(network: Network, c: int, cluster: Cluster) -> None:
    pieces = connected_pieces(network.neighbours, cluster)
    if len(pieces) > 1:
        stranded = listing([network.clients[k] for k in min(pieces, key=len)])
        raise NetworkError(
            f"cluster {c} is not connected: no path inside it joins {stranded} to the rest; add "
            f"the clients between them, or split it"
        )


def _shares(sizes: Sequence[int], count: int) -> list[int]:
    """``count`` clusters dealt to parts in proportion to size: one each, then to the fullest per
    cluster."""
    shares = [1] * len(sizes)
    heap = [(-float(size), part) for part, size in enumerate(sizes)]
    heapq.heapify(heap)
    for _ in range(count - len(sizes)):
        part = heap[0][1]
        shares[part] += 1
        heapq.heapreplace(heap, (-sizes[part] / shares[part], part))
    return shares


def _bisect(
    network: Network, A: scipy.sparse.csr_array | None, members: Cluster, count: int
) -> list[tuple[Cluster, int]]:
    """Two connected sides of the connected ``members``, and the share of ``count`` clusters of
    each."""
    half = count // 2
    target = round(len(members) * half / count)
    if A is None:  # A complete network: every cut leaves connected sides.
        sides = set(members[:target]), set(members[target:])
    else:
        order = _order(network, A, members)
        sides = _connect(network, set(order[:target]), set(order[target:]))
        # The Fiedler vector gives few cut links, not even sides; where the repairs of the cut leave
        # it uneven, a cut of a tree may come nearer, if at more cut links.
        sides = _even_out(network, sides, order, target)
        if len(sides[0]) != target:
            cut = _tree_cut(network, members, target)
            sides = min(sides, cut, key=lambda pair: abs(len(pair[0]) - target))

    shares = _shares([len(side) for side in sides], count)
    return [(tuple(sorted(side)), share) for side, share in zip(sides, shares, strict=True)]


def _order(network: Network, A: scipy.sparse.csr_array, members: Cluster) -> list[int]:
    """The members, sorted by the Fiedler vector."""
    at = np.array(members)
    inner = A[at][:, at]
    if inner.nnz == len(at) * (len(at) - 1):  # complete: one order is as good as another
        return list(members)

    from scipy.sparse.linalg import ArpackError

    try:
        along = _fiedler(laplacian(inner))
    except ArpackError:
        # By distance from a client at the edge: cruder, but it cannot fail.
        levels = breadth_first(network.neighbours, members[0], set(members))
        edge = levels[-1][0]
        levels = breadth_first(network.neighbours, edge, set(members))
        return list(chain.from_iterable(levels))

    # Rounded: clients that are alike but for rounding errors go by their numbers.
    order = np.argsort(np.round(along, 9), kind="stable")
    return [members[i] for i in order]


def _fiedler(L: scipy.sparse.csr_array) -> Array:
    """The Fiedler vector; of several, the one that correlates most with the numbers of the clients.

    On a square grid, for example, that is the one along which the numbers grow fastest. (For large
    graphs this is left to where ``fiedler_sparse`` starts.)
    """
    numbers = np.linspace(-1, 1, L.shape[0])  # anything that grows with them
    if L.shape[0] > DENSE_LIMIT:  # only saves time
        vector = fiedler_sparse(L)[1]
        # An eigenvector has no sign of its own; with one, every run numbers clusters alike.
        if vector @ numbers < 0:
            return -vector
        return vector

    values, vectors = scipy.linalg.eigh(L.toarray())
    rounding = 1e-9 * values[-1]  # any small part of the largest
    # All eigenvectors of the second eigenvalue: which of them a library returns is up to it, and
    # clusters must not depend on that.
    space = vectors[:, 1:][:, values[1:] <= values[1] + rounding]
    along: Array = space @ (space.T @ numbers)
    size = np.linalg.norm(along)
    if size <= 1e-6:  # rounding errors, or any of them
        return np.asarray(space[:, 0])
    return along / size


def _connect(network: Network, low: set[int], high: set[int]) -> tuple[set[int], set[int]]:
    """Two connected sides of a connected set: components that are cut off change sides.

    What is left of ``low`` is connected; then every piece of ``high`` touches it, for pieces of one
    side do not touch each other. So all but one of those can join it.
    """
    # In this order: first what hangs loose from low moves to high, and the other way round after.
    low, strays = _largest(network, low)
    high, strays = _largest(network, high | strays)
    return low | strays, high


def _largest(network: Network, side: set[int]) -> tuple[set[int], set[int]]:
    pieces = connected_pieces(network.neighbours, side)
    largest = max(pieces, key=len)
    return set(largest), side.difference(largest)


def _even_out(
    network: Network, sides: tuple[set[int], set[int]], order: list[int], target: int
) -> tuple[set[int], set[int]]:
    """Move clients across the cut, one by one, while that brings the low side nearer to ``target``.

    A client can go if it has a neighbour across and those it leaves stay connected without it. Of
    these, the first to go is the one nearest to the other end.
    """
    low, high = sides
    for _ in range(min(MOVES, abs(len(low) - target))):
        if len(low) > target:
            giver = low
            taker = high
            nearest = order[::-1]
        else:
            giver = high
            taker = low
            nearest = order

        # Those next to the cut come first: they belong to this side least.
        touching = []
        for k in nearest:
            if k in giver and not taker.isdisjoint(network.neighbours[k]):
                touching.append(k)
            # Whether a client can be spared takes a search: only so many are tried.
            if len(touching) == MOVES:
                break

        mover = next((k for k in touching if _can_spare(network, giver, k)), None)
        if mover is None:
            break  # only saves time
        giver.remove(mover)
        taker.add(mover)
    return low, high


def _can_spare(network: Network, side: set[int], client: int) -> bool:
    return len(connected_pieces(network.neighbours, side - {client})) == 1


def _tree_cut(network: Network, members: Cluster, target: int) -> tuple[set[int], set[int]]:
    """The cut of one edge of a spanning tree that comes nearest to ``target``; optimal on a
    tree."""
    # On a tree every edge is a cut into two connected sides, so all of them can be tried.
    order, below = _spanning_tree(network, members)

    def off(i: int) -> int:
        hanging = below[order[i]]
        return min(abs(hanging - target), abs(len(order) - hanging - target))

    i = min(range(len(order)), key=off)  # never 0, the root: any leaf comes nearer
    hanging = set(order[i : i + below[order[i]]])
    rest = set(members) - hanging
    if abs(len(hanging) - target) <= abs(len(rest) - target):
        return hanging, rest
    return rest, hanging


def _spanning_tree(network: Network, members: Cluster) -> tuple[list[int], dict[int, int]]:
    """A depth-first tree: its clients, each followed by all that hang below it, and how many those
    are.

    The client itself is counted. Depth first, because such a tree is long, and so can be cut
    anywhere.
    """
    root = (members[0], -1)  # its parent is not used
    unseen = set(members)
    parents: dict[int, int] = {}
    stack = [root]
    while stack:
        k, parent = stack.pop()
        if k in unseen:
            unseen.remove(k)
            parents[k] = parent
            stack.extend((j, k) for j in network.neighbours[k] if j in unseen)

    # Clients stand behind their parents: backwards, each count is complete before it is added.
    below = dict.fromkeys(parents, 1)
    for k in list(parents)[:0:-1]:
        below[parents[k]] += below[k]
    return list(parents), below
