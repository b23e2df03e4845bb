"""pi: how likely it is that a client is visited in one iteration, exactly and by the paper's lower bounds.

A token makes S visits in an iteration: one at its start k ~ P_gamma, and one after each of S - 1 hops (the hop
after the last visit leads to the server).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mtcd.checks import check_whole
from mtcd.errors import ConfigError
from mtcd.network.spectrum import adjacency, diameter
from mtcd.network.topology import Network

Array = NDArray[np.float64]

TARGETS = 256  # clients made absorbing at a time: few enough for the cache, and for memory at any K
DENSE_SHARE = 0.05  # from this share of nonzeros on, dense products are quicker


class Roam(NamedTuple):
    """Where one token may be, and the probability of starting at each of these clients."""

    clients: tuple[int, ...]
    start: tuple[float, ...]


def uniform_roam(clients: Iterable[int]) -> Roam:
    """A token that is as likely to start at one of these clients as at another.

    >>> uniform_roam([3, 5])
    Roam(clients=(3, 5), start=(0.5, 0.5))
    """
    region = tuple(clients)
    return Roam(region, (1 / len(region),) * len(region))


def inside(network: Network, clients: Sequence[int]) -> Network:
    """The network of these clients alone: who can talk to whom without leaving them."""
    if len(clients) == network.size and clients[0] == 0 and clients[-1] == network.size - 1:
        return network
    place = {k: i for i, k in enumerate(clients)}
    near = (tuple(place[j] for j in network.neighbours[k] if j in place) for k in clients)
    return Network(tuple(network.clients[k] for k in clients), tuple(near))


def lazy_walk(network: Network) -> sp.csr_array:
    """P of the paper's walk: P_kj = 1/(1 + degree_k) for j = k and for every neighbour j.

    For a cluster: ``lazy_walk(inside(network, cluster))``.

    >>> from mtcd.network.topology import make_network
    >>> lazy_walk(make_network("path", ["a", "b", "c"])).toarray().round(2).tolist()
    [[0.5, 0.5, 0.0], [0.33, 0.33, 0.33], [0.0, 0.5, 0.5]]
    """
    may_go = adjacency(network) + sp.eye_array(network.size)
    return sp.csr_array(sp.diags_array(1.0 / may_go.sum(axis=1)) @ may_go)


def visit_probabilities(P: Any, start: Sequence[float] | Array, S: int) -> Array:
    """For each client, the probability that a token visits it in an iteration of S visits.

    The client is made absorbing: with start p and P_0, which is P with column j set to zero, it is
    p_j + sum over s = 1..S-1 of (p' P_0^(s-1) P)_j, where p' is p without p_j. All terms are positive, so that
    small probabilities come out right too. P is sparse or dense, of any walk whose hops depend on the client alone.

    >>> visit_probabilities(np.array([[0.5, 0.5], [0.5, 0.5]]), [1.0, 0.0], S=3).tolist()
    [1.0, 0.75]
    """
    check_whole("S, the number of visits,", S)
    p = _checked_start(start, P.shape[0])
    back = sp.csr_array(P).T.tocsr()
    if back.nnz > DENSE_SHARE * p.size**2:
        back = back.toarray()
    visited = p.copy()
    for first in range(0, p.size, TARGETS):
        targets = np.arange(first, min(first + TARGETS, p.size))
        there = (targets, targets - first)
        alive = np.repeat(p[:, None], targets.size, axis=1)  # column j: where a token is that has not been at j
        alive[there] = 0.0
        for _ in range(S - 1):
            alive = back @ alive
            visited[targets] += alive[there]
            alive[there] = 0.0
    return np.minimum(visited, 1.0)  # above 1 by rounding only


class LeastVisits(NamedTuple):
    """The least probability of a visit in one iteration.

    ``per_token`` is the pi of both theorems: over all tokens and all clients that the token is for.
    ``any_token`` is over all clients, for a visit by at least one token: 1 - prod over gamma of (1 - p_gamma).
    Both are the same with a token per cluster; where tokens overlap, the second is larger, but the theorem (which
    averages what the tokens found) rests on the first.
    """

    per_token: float
    any_token: float


def least_visits(network: Network, roams: Sequence[Roam], S: int) -> LeastVisits:
    """pi of the lazy walk for these tokens, exactly."""
    least, seen = 1.0, np.zeros(network.size)
    for roam, tokens in Counter(roams).items():
        p = visit_probabilities(lazy_walk(inside(network, roam.clients)), roam.start, S)
        least = min(least, float(p.min()))
        at = list(roam.clients)
        for _ in range(tokens):
            seen[at] += (1.0 - seen[at]) * p
    return LeastVisits(least, float(seen.min()))


def start_bound(roams: Sequence[Roam]) -> float:
    """pi >= p_0, the least probability with which a client is the start; 0 if some client never is.

    >>> start_bound([uniform_roam(range(4)), uniform_roam(range(4, 6))])
    0.25
    """
    return min(min(roam.start) for roam in roams)


def walk_bound(network: Network, roams: Sequence[Roam], S: int) -> float:
    """pi >= p_0 (1 + d_max)^-S, p_0 that of the likeliest start; 0 where the bound does not hold.

    It holds if S is *above* the diameter of every cluster. (The paper says S >= diameter; but S visits are S - 1
    hops, so with S = diameter the client at the far end is never reached.)
    """
    p_0, d_max = 1.0, 0
    for roam in set(roams):
        region = inside(network, roam.clients)
        longest, exact = diameter(region)
        if longest is None or longest * (1 if exact else 2) >= S:  # found from one client: at most twice as long
            return 0.0
        p_0 = min(p_0, max(roam.start))
        d_max = max(d_max, *map(len, region.neighbours))
    return float(p_0 * (1.0 + d_max) ** -S)


def _checked_start(start: Sequence[float] | Array, K: int) -> Array:
    p = np.array(start, dtype=float)
    if p.shape != (K,):
        raise ConfigError(f"the start has {p.size} probabilities for {K} clients: give one for each client.")
    if not (p >= 0).all() or not abs(p.sum() - 1.0) < 1e-9:
        raise ConfigError("the start must be probabilities, 0 or more, that add up to 1: divide them by their sum.")
    return p
