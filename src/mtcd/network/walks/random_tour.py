"""Random tours: one spanning tree, its branches in a new random order in every tour. With their
exact theory: probabilities of visits, the longest wait of a client, the cover time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

import numpy as np
import scipy  # its parts are loaded when they are used

from mtcd.core.arrays import Array
from mtcd.core.checks import check_whole
from mtcd.core.mappings import positions
from mtcd.core.seeding import uniform
from mtcd.network.repair import repaired_tree
from mtcd.network.topology import Network
from mtcd.network.tours import spanning_tree
from mtcd.network.walks.facts import Facts, TourTimes, checked_start
from mtcd.network.walks.walk import WALKS, Walk

Tree = Sequence[Sequence[int]]
"""The neighbours of each client in a tree."""


@WALKS.register("random-tour")
class RandomTourWalk(Walk):
    """Around a spanning tree, 2(K - 1) hops, with the branches in a new random order in every tour.

    A client draws the order of its branches from the seed, and sends the token into the branch
    after the one that it came from.
    """

    planned = "refinement"

    def __init__(
        self,
        network: Network,
        within: Iterable[int] | None = None,
        seed: int = 0,
        token: int = 0,
        tree: dict[int, list[int]] | None = None,
    ) -> None:
        super().__init__(network, within)
        members: Sequence[int] = range(network.size)
        if within is not None:
            members = tuple(within)
        self.tree = tree or spanning_tree(network, members)
        self.length: int = random_tour_length(len(members))
        # A tour of its own for each token: its orders depend on both.
        self._id = (seed, token)
        self._orders: dict[tuple[int, int, int], list[int]] = {}

    def next(self, client: int, previous: int, start: int, t: int, hop: int, draw: float) -> int:
        tour, done = divmod(hop - 1, self.length)
        if not self.tree[client]:
            return client  # alone
        order = self._order(t, tour, client)  # not sorted, as ``tours.following`` needs it
        if not done or previous not in order:
            return order[0]  # any of them, as the order is random
        return order[(order.index(previous) + 1) % len(order)]

    def repaired(self, network: Network, members: Sequence[int]) -> Walk:
        tree = repaired_tree(self.tree, network, members)
        return RandomTourWalk(network, members, *self._id, tree=tree)

    def _order(self, t: int, tour: int, client: int) -> list[int]:
        key = t, tour, client
        if key not in self._orders:
            most = 10 * len(self.tree)
            if len(self._orders) > most:  # mostly of tours that are over
                self._orders.clear()

            seed, token = self._id
            draws = {}
            # Every client draws alone, and all must agree on the order: so it hangs on the seed and
            # on where the tour is, not on a generator that moves on.
            for i, j in enumerate(self.tree[client]):
                draws[j] = uniform(seed, "branches", (token, t, tour, client), i)
            self._orders[key] = sorted(draws, key=draws.__getitem__)

        return self._orders[key]

    def facts(self, network: Network, clients: Sequence[int]) -> Facts:
        place = positions(clients)
        tree = []
        for k in clients:
            tree.append([place[j] for j in self.tree[k]])
        return RandomTourFacts(tree)


class RandomTourFacts(Facts):
    """The theory of random tours around a tree."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree

    def visits(self, start: Sequence[float], S: int) -> Array:
        return random_tour_visits(self._tree, start, S)

    def visits_work(self, S: int) -> float:
        return 4 * random_tour_work(self._tree, S)

    def tour(self) -> TourTimes:
        K = len(self._tree)
        return TourTimes(random_tour_length(K), random_tour_wait(K), random_tour_cover(K))


def random_tour_length(K: int) -> int:
    """Along both sides of every link of the tree: 2(K - 1) hops; a single client stays."""
    return max(1, 2 * (K - 1))


def random_tour_wait(K: int) -> int:
    """The most hops between two visits of a client: early in one random tour, late in the next, 4(K
    - 1) - 2."""
    return max(1, 4 * (K - 1) - 2)


def random_tour_cover(K: int) -> int:
    """The most hops until a random tour has visited all: 2K - 3, if the last client is a leaf
    beside the start."""
    return max(0, 2 * (K - 1) - 1)


def random_tour_visits(tree: Tree, start: Sequence[float] | Array, S: int) -> Array:
    """For each client, the probability that a random tour visits it in an iteration of S visits.

    S = 2(K - 1) visits or more are a whole tour. Below, the token goes from its start along the
    tree's path to a client, and at each client of this path first goes round those branches that
    happen to come before the one it needs: a detour of 2 hops for every client in them. So, link by
    link, from the leaves inwards and out again,

        arrival(u, v) = [start at u] * detours(u, v)  +  sum over w of arrival(w, u) * detours(w, u,
        v),   1 hop later

    where arrival(u, v) is the distribution of the time at which the token is first at v, coming
    from u, and * is the convolution.
    """
    check_whole("S, the number of visits,", S)
    p = checked_start(start, len(tree))
    if 2 * (p.size - 1) <= S:
        return np.ones(p.size)

    # Arrivals at u come before departures from u: first from the leaves to the root, then back.
    sizes = branch_sizes(tree)
    inwards = inwards_first(tree)
    arrival: dict[tuple[int, int], Array] = {}
    for u, parent in inwards:
        if u != parent:
            _depart(arrival, tree, sizes, p, u, [parent], S)
    for u, parent in reversed(inwards):
        _depart(arrival, tree, sizes, p, u, [v for v in tree[u] if v != parent], S)

    visited = p  # at the start; each arrival adds to it
    for (_, v), times in arrival.items():
        visited[v] += times.sum()
    return np.minimum(visited, 1.0)


def _depart(
    arrival: dict[tuple[int, int], Array],
    tree: Tree,
    sizes: Mapping[tuple[int, int], int],
    p: Array,
    u: int,
    towards: Sequence[int],
    S: int,
) -> None:
    """Arrivals from u at these neighbours. Branches of the same size are alike, so they are taken
    together."""
    # By size alone, so that the results of ``detours`` are shared between many clients.
    branches = tuple(sorted(sizes[u, w] for w in tree[u]))
    alike: dict[int, list[int]] = defaultdict(list)
    for w in tree[u]:
        if (w, u) in arrival:
            alike[sizes[u, w]].append(w)

    sources = {}
    for size, ws in alike.items():
        sources[size] = _sums_without_one([arrival[w, u] for w in ws])

    for v in towards:
        others = _without(branches, sizes[u, v])
        times = np.zeros(S)
        times[0] = p[u]
        times = _later(times, detours(others, S))
        for size, ws in alike.items():
            if ws != [v]:
                # The last of the sums is that of all: for a v that is not of this size.
                chosen = len(ws)
                if v in ws:
                    chosen = ws.index(v)
                rest = _without(others, size)
                times += _later(sources[size][chosen], detours(rest, S))
        # One hop from u to v.
        arrival[u, v] = np.concatenate([[0.0], times[:-1]])


def _later(times: Array, delays: Array) -> Array:
    return np.convolve(times, delays)[: times.size]


def _sums_without_one(rows: Sequence[Array]) -> list[Array]:
    """For each row the sum of the others, and then the sum of all; sums only, so that small numbers
    stay right."""
    before = [np.zeros_like(rows[0])]
    for row in rows:
        before.append(before[-1] + row)

    after = np.zeros_like(rows[0])
    sums = [before[-1]]
    for i in reversed(range(len(rows))):
        sums.append(before[i] + after)
        after = after + rows[i]
    return sums[::-1]


def _without(sizes: tuple[int, ...], size: int) -> tuple[int, ...]:
    i = sizes.index(size)
    return sizes[:i] + sizes[i + 1 :]


@lru_cache(maxsize=1024)
def detours(sizes: tuple[int, ...], S: int) -> Array:
    """The distribution of the hops spent in branches of these sizes that come before one more, in
    random order.

    Entry t is for t hops, up to S - 1. If that one comes at a time x, uniform in [0, 1], each other
    is before it with probability x, independently. Given x the hops are a sum of independent
    numbers, whose distribution is found branch by branch; it is a polynomial in x of degree
    len(sizes), which Gauss's rule integrates exactly.
    """
    if not sizes:
        return np.ones(1)
    most = min((S - 1) // 2, sum(sizes))
    enough = len(sizes) // 2 + 1
    nodes, weights = scipy.special.roots_legendre(enough)
    x = ((nodes + 1) / 2)[:, None]  # from [-1, 1] to [0, 1]

    # Row by row for each x, the distribution in units of 2 hops: there and back.
    given = np.zeros((x.size, most + 1))
    given[:, 0] = 1.0
    for size in sizes:
        then = given * (1 - x)
        if size <= most:
            then[:, size:] += given[:, :-size] * x
        given = then

    times = np.zeros(2 * most + 1)
    times[::2] = (weights / 2) @ given
    return times


def inwards_first(tree: Tree) -> list[tuple[int, int]]:
    """Every client and its parent (itself for client 0, the root), children before parents."""
    found = [(0, 0)]
    for u, parent in found:  # which grows meanwhile
        found += [(v, u) for v in tree[u] if v != parent]
    return found[::-1]


def branch_sizes(tree: Tree) -> dict[tuple[int, int], int]:
    """For neighbours u and v: how many clients the tree has on the side of v."""
    below = [1] * len(tree)
    sizes = {}
    for u, parent in inwards_first(tree):
        if u != parent:
            below[parent] += below[u]
            sizes[parent, u] = below[u]
            sizes[u, parent] = len(tree) - below[u]
    return sizes


def random_tour_work(tree: Tree, S: int) -> float:
    """The approximate number of multiplications of ``random_tour_visits``."""
    if 2 * (len(tree) - 1) <= S:
        return 0.0

    sizes = branch_sizes(tree)
    work = 0.0
    for u, near in enumerate(tree):
        kinds = len({sizes[u, v] for v in near})
        of_detours = kinds * (kinds + 1) / 2 * len(near) ** 2 / 2
        of_sums = len(near) * kinds * S
        work += S / 2 * (of_detours + of_sums)
    return work
