"""pi, the probability that a client is visited in one iteration: exact, and the paper's lower
bounds.

A token makes S visits in an iteration: one at its start k ~ P_gamma, and one after each of S - 1
hops (the hop after the last visit leads to the server).
"""

from __future__ import annotations

from collections.abc import Sequence
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
from mtcd.theory.starts import Roam

R = TypeVar("R")

TARGETS = 256  # clients made absorbing at a time: few enough for the cache, and for memory at any K
DENSE_SHARE = (
    0.05  # no mutants: only the time; from this share of nonzeros on, dense products are quicker
)


def visit_probabilities(P: Any, start: Sequence[float] | Array, S: int) -> Array:
    """For each client, the probability that a token visits it in an iteration of S visits.

    The client is made absorbing: with start p and P_0, which is P with column j set to zero, it is
    p_j + sum over s = 1..S-1 of (p' P_0^(s-1) P)_j, where p' is p without p_j. All terms are
    positive, so that small probabilities come out right too. P is sparse or dense, of any walk
    whose hops depend on the client alone.

    >>> visit_probabilities(np.array([[0.5, 0.5], [0.5, 0.5]]), [1.0, 0.0], S=3).tolist()
    [1.0, 0.75]
    """
    check_whole("S, the number of visits,", S)
    p = checked_start(start, P.shape[0])
    back = sp.csr_array(P).T.tocsr()
    if back.nnz > DENSE_SHARE * p.size**2:  # no mutants: only the time
        back = back.toarray()
    visited = p.copy()
    for first in range(0, p.size, TARGETS):
        targets = np.arange(first, min(first + TARGETS, p.size))
        there = (targets, targets - first)
        # column j: where a token is that has not been at j
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

    Raises an error for a walk without theory.
    """
    facts = facts_of(walk, network, roam.clients)
    exact = None if facts is None else facts.visits(roam.start, S)
    if exact is not None:
        return exact
    chain = None if facts is None else facts.chain()
    if chain is None:
        raise ConfigError(
            f"the probability of a visit is not known for {type(walk).__name__}: {DECLARE}."
        )
    return visit_probabilities(chain.P, roam.start, S)


def least_visits(
    network: Network, roams: Sequence[Roam], S: int, walks: Sequence[Walk] | None = None
) -> LeastVisits:
    """pi for these tokens, exactly. ``walks`` has one for each; by default the lazy walk."""
    least, seen = [], np.zeros(network.size)
    each = [make_walk("lazy", network)] * len(roams) if walks is None else walks
    for roam, walk, tokens in unlike(roams, each):
        p = token_visits(network, roam, walk, S)
        least.append(float(p.min()))
        at = list(roam.clients)
        for _ in range(tokens):
            seen[at] += (1.0 - seen[at]) * p
    return LeastVisits(min(least), float(seen.min()))


def unlike(roams: Sequence[R], walks: Sequence[Walk]) -> list[tuple[R, Walk, int]]:
    """Each distinct pair of roam and walk, and the number of tokens that have it.

    ``Walk.facts`` of one kind of walk are alike, whatever the token; transitions that walks declare
    may not be.
    """
    found: dict[tuple[R, Walk | type[Walk]], tuple[Walk, int]] = {}
    for roam, walk in zip(roams, walks, strict=True):
        key = roam, walk if declares_transitions(walk) else type(walk)
        found[key] = walk, found.get(key, (walk, 0))[1] + 1
    return [(roam, walk, tokens) for (roam, _), (walk, tokens) in found.items()]


def start_bound(roams: Sequence[Roam]) -> float:
    """pi >= p_0, the least probability with which a client is the start; 0 if some client never is.

    >>> from mtcd.theory.starts import uniform_roam
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
    degrees: list[int] = []
    for roam in set(roams):
        region = inside(network, roam.clients)
        longest, exact = diameter(region)
        # found from one client: at most twice as long
        if longest is None or longest * (1 if exact else 2) >= S:
            return 0.0
        degrees += map(len, region.neighbours)
    p_0, d_max = min(max(roam.start) for roam in roams), max(degrees)
    for roam, walk, _ in unlike(roams, walks) if walks else ():
        facts = facts_of(walk, network, roam.clients)
        if facts is None or not facts.takes_links(1.0 / (1.0 + d_max)):
            return 0.0
    return float(p_0 * (1.0 + d_max) ** -S)
