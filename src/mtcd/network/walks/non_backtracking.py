"""The non-backtracking walk. Its next hop depends on the client and on the one before, so it is a
Markov chain on directed links (the one that the token used last), not on clients."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import scipy  # its parts are loaded when they are used

from mtcd.core.arrays import Array
from mtcd.core.checks import check_whole
from mtcd.network.spectrum import adjacency
from mtcd.network.topology import Network
from mtcd.network.walks.facts import Facts, checked_start, inside
from mtcd.network.walks.walk import WALKS, Walk

NUMBERS = 400_000
"""Numbers in a block of links times targets: few enough for memory at any size."""


@WALKS.register("non-backtracking")
class NonBacktrackingWalk(Walk):
    """Uniform over the neighbours except the previous client; back only from a dead end."""

    shared = True
    planned = "candidate"

    def next(self, client: int, previous: int, start: int, t: int, hop: int, draw: float) -> int:
        near = self._inside(client)
        # From a dead end the way back is the only one, and a lone client can only stay.
        choices = [k for k in near if k != previous] or near or [client]
        return choices[int(draw * len(choices))]

    def facts(self, network: Network, clients: Sequence[int]) -> Facts:
        return NonBacktrackingFacts(network, clients)


class NonBacktrackingFacts(Facts):
    """The theory of the walk inside these clients."""

    no_mixing = "where it goes depends on where it came from, so it is no Markov chain on clients: see hitting time"

    def __init__(self, network: Network, clients: Sequence[int]) -> None:
        self.network = network
        self.clients = clients

    def visits(self, start: Sequence[float], S: int) -> Array:
        return link_visits(inside(self.network, self.clients), start, S)

    def visits_work(self, S: int) -> float:
        links = sum(len(self.network.neighbours[k]) for k in self.clients)
        return 10.0 * S * len(self.clients) * links

    def takes_links(self, least: float) -> bool:
        return True  # along a shortest path, which never goes back

    def hitting_time(self) -> float:
        return longest_link_hitting_time(inside(self.network, self.clients))

    def hitting_work(self) -> float:
        region = inside(self.network, self.clients)
        return region.size * (2.0 * region.edges) ** 3


class DirectedLinks:
    """All directed links of a network, and the transitions of the walk between them."""

    def __init__(self, network: Network) -> None:
        links = scipy.sparse.coo_array(adjacency(network))
        # By tail, then head: the reverse of link i is found by sorting the other way.
        order = np.lexsort(links.coords[::-1])
        self.tails = links.coords[0][order]
        self.heads = links.coords[1][order]
        self.back = np.lexsort((self.tails, self.heads))  # the same link the other way
        self.degrees = np.array(list(map(len, network.neighbours)))
        self.count = order.size

        entries = np.ones(self.count), (self.heads, np.arange(self.count))
        self._into = scipy.sparse.csr_array(entries, shape=(network.size, self.count))

        # To each neighbour but the one it came from.
        others = self.degrees[self.tails] - 1
        self._dead_end = np.flatnonzero(others == 0)
        self._share = 1.0 / np.maximum(others, 1)

    def at_clients(self, X: Array) -> Array:
        """The probabilities of clients, from those of the links that lead to them."""
        return np.asarray(self._into @ X)

    def hop(self, X: Array, at: Array) -> Array:
        """The probabilities of links one hop later: on to any link but back, unless there is no
        other.

        X has those of links, ``at`` those of the clients that they lead to.
        """
        back = X[self.back]
        on = at[self.tails]

        # Never negative, whatever the rounding: a sum of what is 0 or more is at least each part.
        on -= back
        on *= self._share[:, None]
        on[self._dead_end] = back[self._dead_end]
        return np.asarray(on)

    def matrix(self) -> Array:
        """The transition matrix of the chain on links."""
        each = np.eye(self.count)
        return np.asarray(self.hop(each, self.at_clients(each)).T)


def link_visits(network: Network, start: Sequence[float] | Array, S: int) -> Array:
    """For each client, the probability that a non-backtracking token visits it in an iteration of S
    visits.

    As ``visit_probabilities``, with all links into a client made absorbing.
    """
    check_whole("S, the number of visits,", S)
    p = checked_start(start, network.size)
    links = DirectedLinks(network)
    visited = p.copy()
    # The first visit is the start itself; without links the token stays there.
    if links.count == 0 or S == 1:
        return visited

    width = max(1, NUMBERS // links.count)
    for first in range(0, network.size, width):
        targets = np.arange(first, min(first + width, network.size))
        # A block of targets at a time: all of them would take links times clients numbers.
        there = (targets, targets - first)
        begin = np.repeat((p / np.maximum(links.degrees, 1))[:, None], targets.size, axis=1)
        begin[there] = 0.0

        # Column j: the link that a token came along that has not been at j before.
        X = begin[links.tails]
        into = np.flatnonzero((links.heads >= first) & (links.heads <= targets[-1]))
        arrived = (into, links.heads[into] - first)
        at = links.at_clients(X)
        visited[targets] += at[there]
        for _ in range(S - 2):
            X[arrived] = 0.0
            at[there] = 0.0
            X = links.hop(X, at)
            at = links.at_clients(X)
            visited[targets] += at[there]

    return np.minimum(visited, 1.0)  # rounding errors may add up to more


def longest_link_hitting_time(network: Network) -> float:
    """The largest expected number of hops to a client, over all clients and starting links.

    One linear system per client, over the links that do not lead to it. A start at a client is the
    mean of those over the links to it. Infinite on a disconnected network.
    """
    if not network.connected:
        return math.inf
    if network.size == 1:
        return 0.0

    links = DirectedLinks(network)
    Q = links.matrix()
    longest = 0.0
    for target in range(network.size):
        away = np.flatnonzero(links.heads != target)
        system = np.eye(away.size) - Q[np.ix_(away, away)]
        hops = np.linalg.solve(system, np.ones(away.size))
        longest = max(longest, float(hops.max(initial=0.0)))
    return longest
