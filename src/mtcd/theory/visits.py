"""pi, the probability that a client is visited in one iteration: exact, and the paper's lower
bounds.

A token makes S visits in an iteration: one at its start k ~ P_gamma, and one after each of S - 1
hops (the hop after the last visit leads to the server).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp

from mtcd.core.arrays import Array
from mtcd.core.checks import check_whole
from mtcd.core.errors import ConfigError
from mtcd.core.terminal.findings import DECLARE
from mtcd.network.spectrum import diameter
from mtcd.network.topology import Network
from mtcd.network.walks.facts import checked_start, inside
from mtcd.network.walks.walk import Walk, declares_transitions, facts_of, make_walk

R = TypeVar("R")

TARGETS = 256  # clients made absorbing at a time: few enough for the cache, and for memory at any K

# From this share of nonzeros on, dense products are quicker.
DENSE_SHARE = 0.05  # only saves time


class Roam(NamedTuple):
    """The clients that one token may visit, and the probability of starting at each of them."""

    clients: tuple[int, ...]
    start: tuple[float, ...]


def uniform_roam(clients: Iterable[int]) -> Roam:
    """A token with a uniform start among these clients.

    Examples
    --------
    >>> uniform_roam([3, 5])
    Roam(clients=(3, 5), start=(0.5, 0.5))
    """
    region = tuple(clients)
    share = 1 / len(region)
    return Roam(region, (share,) * len(region))


def visit_probabilities(P: Any, start: Sequence[float] | Array, S: int) -> Array:
    """For each client, the probability that a token visits it in an iteration of S visits.

    The client is made absorbing: with start p and P_0, which is P with column j set to zero, it is
    p_j + sum over s = 1..S-1 of (p' P_0^(s-1) P)_j, where p' is p without p_j.

    Parameters
    ----------
    P
        The transition matrix, sparse or dense, of any walk whose hops depend on the client alone.
    start
        The probability of each client as the first one.
    S
        The visits of an iteration.

    Examples
    --------
    >>> visit_probabilities(np.array([[0.5, 0.5], [0.5, 0.5]]), [1.0, 0.0], S=3).tolist()
    [1.0, 0.75]
    """
    # S counts the start: see the head of this file.
    check_whole("S, the number of visits,", S)
    p = checked_start(start, P.shape[0])

    back = sp.csr_array(P).T.tocsr()
    if back.nnz > DENSE_SHARE * p.size**2:  # only saves time
        back = back.toarray()

    # All terms are positive, so that small probabilities come out right too; one minus the
    # probability of no visit would lose them to rounding.
    visited = p.copy()
    for first in range(0, p.size, TARGETS):
        targets = np.arange(first, min(first + TARGETS, p.size))
        there = (targets, targets - first)

        # Column j: where a token is that has not been at j.
        alive = np.repeat(p[:, None], targets.size, axis=1)
        alive[there] = 0.0

        for _ in range(S - 1):
            alive = back @ alive
            visited[targets] += alive[there]
            alive[there] = 0.0

    return np.minimum(visited, 1.0)  # above 1 by rounding only


class LeastVisits(NamedTuple):
    """The least probability of a visit in one iteration.

    ``per_token`` is the pi of both theorems: over all tokens and all clients that the token is for.
    ``any_token`` is over all clients, for a visit by at least one token: 1 - prod over gamma of (1
    - p_gamma). Both are the same with a token per cluster; where tokens overlap, the second is
    larger, but the theorem (which averages what the tokens found) rests on the first.
    """

    per_token: float
    any_token: float


def token_visits(network: Network, roam: Roam, walk: Walk, S: int) -> Array:
    """For each client of ``roam``, the probability that a token on this walk visits it in S visits,
    exactly.

    Raises
    ------
    ConfigError
        For a walk without theory.
    """
    facts = facts_of(walk, network, roam.clients)
    if facts is not None:
        exact = facts.visits(roam.start, S)
        if exact is not None:
            return exact

        chain = facts.chain()
        if chain is not None:
            return visit_probabilities(chain.P, roam.start, S)

    raise ConfigError(
        f"the probability of a visit is not known for {type(walk).__name__}: {DECLARE}."
    )


def least_visits(
    network: Network, roams: Sequence[Roam], S: int, walks: Sequence[Walk] | None = None
) -> LeastVisits:
    """pi for these tokens, exactly.

    Parameters
    ----------
    network
        The clients and their links.
    roams
        Where each token may be.
    S
        The visits of a token in an iteration.
    walks
        One for each token; by default the lazy walk.
    """
    if walks is None:
        walks = [make_walk("lazy", network)] * len(roams)

    least = []
    seen = np.zeros(network.size)
    for roam, walk, tokens in unlike(roams, walks):
        p = token_visits(network, roam, walk, S)
        least.append(float(p.min()))

        # Tokens with the same roam and walk visit independently of each other.
        at = list(roam.clients)
        for _ in range(tokens):
            seen[at] += (1.0 - seen[at]) * p

    return LeastVisits(min(least), float(seen.min()))


def unlike(roams: Sequence[R], walks: Sequence[Walk]) -> list[tuple[R, Walk, int]]:
    """Each distinct pair of roam and walk, and the number of tokens that have it.

    ``Walk.facts`` of one kind of walk are alike, whatever the token; transitions that walks declare
    may not be.
    """
    found: dict[tuple[R, Walk | type[Walk]], tuple[R, Walk, int]] = {}
    for roam, walk in zip(roams, walks, strict=True):
        kind: Walk | type[Walk] = type(walk)
        if declares_transitions(walk):
            kind = walk

        _, _, tokens = found.get((roam, kind), (roam, walk, 0))
        found[roam, kind] = roam, walk, tokens + 1

    return list(found.values())


def start_bound(roams: Sequence[Roam]) -> float:
    """pi >= p_0, the least probability with which a client is the start; 0 if some client never is.

    Examples
    --------
    >>> start_bound([uniform_roam(range(4)), uniform_roam(range(4, 6))])
    0.25
    """
    return min(min(roam.start) for roam in roams)


def walk_bound(
    network: Network, roams: Sequence[Roam], S: int, walks: Sequence[Walk] | None = None
) -> float:
    """pi >= p_0 (1 + d_max)^-S, p_0 that of the likeliest start; 0 where the bound does not hold.

    For walks that take any way to a neighbour with probability 1/(1 + d_max) or more: lazy (unless
    ``walks`` are given), Metropolis and non-backtracking (along a shortest path, which never goes
    back), others if they declare it.

    It holds if S is *above* the diameter of every cluster. (The paper says S >= diameter; but S
    visits are S - 1 hops, so with S = diameter the client at the far end is never reached.)
    """
    d_max = 0
    for roam in set(roams):
        region = inside(network, roam.clients)
        longest, exact = diameter(region)
        if longest is None:
            return 0.0

        # A length that was found from one client alone may be half of the diameter.
        if not exact:
            longest *= 2
        if longest >= S:
            return 0.0

        d_max = max(d_max, *map(len, region.neighbours))

    # Without walks they are lazy, which takes every way with 1/(1 + d_k).
    if walks:
        for roam, walk, _ in unlike(roams, walks):
            facts = facts_of(walk, network, roam.clients)
            if facts is None or not facts.takes_links(1.0 / (1.0 + d_max)):
                return 0.0

    # The far end is at most S - 1 hops away, each taken with 1/(1 + d_max) or more.
    p_0 = min(max(roam.start) for roam in roams)
    return float(p_0 * (1.0 + d_max) ** -S)
