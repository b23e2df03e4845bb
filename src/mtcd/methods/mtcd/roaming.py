"""Starts and next clients of tokens, as a function of (seed, token, iteration, hop) alone.

Every party can compute them without communication.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from numbers import Integral
from typing import TYPE_CHECKING, Any

from mtcd.core import features
from mtcd.core.errors import ConfigError
from mtcd.core.seeding import BLOCK, uniform, uniform_block
from mtcd.network.edges import ClientNames
from mtcd.network.topology import Network
from mtcd.network.walks import NOWHERE, WALKS, Walk, make_walk
from mtcd.protocol.party import Client

if TYPE_CHECKING:
    from mtcd.methods.mtcd.client import TokenClient

CHANGES = "mtcd.roaming"
"""The group in which a feature names its function for networks that change."""
Distribution = str | int | Mapping[str, float]
Start = None | Distribution | Sequence[Distribution]
NO_BLOCK: tuple[int, Sequence[float]] = (-1, ())


class StartAt:
    """P_gamma: the distribution over clients from which a token's start is drawn."""

    def __init__(self, clients: Sequence[int], weights: Sequence[float] | None = None) -> None:
        self.clients, self.weights = clients, weights
        self.cumulative: list[float] | None = None
        if weights is not None:
            self.cumulative = list(accumulate(weights))

    def support(self) -> list[int]:
        """The clients at which a token may start."""
        if self.weights is None:
            return list(self.clients)

        weighted = zip(self.clients, self.weights, strict=True)
        return [client for client, weight in weighted if weight > 0]

    def among(self, present: Collection[int]) -> StartAt | None:
        """The distribution restricted to present clients; None if it is empty."""
        here = [client for client in self.support() if client in present]
        if not here:
            return None
        if self.weights is None:
            return StartAt(here)

        weight = dict(zip(self.clients, self.weights, strict=True))
        return StartAt(here, [weight[client] for client in here])

    def pick(self, draw: float) -> int:
        """The client for a uniform draw in [0, 1)."""
        if self.cumulative is None:
            # A uniform start draws the client directly; weights need the cumulative sums.
            return self.clients[int(draw * len(self.clients))]

        # The sum of the weights need not be 1. Rounding may place a draw just below 1 behind the
        # last client.
        place = bisect_right(self.cumulative, draw * self.cumulative[-1])
        return self.clients[min(place, len(self.clients) - 1)]


@dataclass(frozen=True, eq=False)
class Roaming:
    """One walk and one start distribution per token."""

    walks: Sequence[Walk]
    starts: Sequence[StartAt]
    seed: int
    hops: int | None
    """S; None: for ever."""

    @cached_property
    def _blocks(self) -> dict[int, tuple[int, Sequence[float]]]:
        """By token, the block of random numbers that its walk has reached: a cache, the numbers do
        not depend on it."""
        return {}

    @cached_property
    def _firsts(self) -> dict[int, tuple[int, int]]:
        """By token, the iteration for which its start was last drawn, and the start: a cache
        too."""
        return {}

    def first(self, token: int, iteration: int) -> int:
        """k ~ P_gamma, for iteration t."""
        # The server asks once per token and iteration, but a walk that needs the start asks at
        # every hop.
        known = self._firsts.get(token)
        if known is None or known[0] != iteration:
            start = self.starts[token].pick(uniform(self.seed, "start", (token,), iteration))
            known = self._firsts[token] = iteration, start
        return known[1]

    @property
    def lone_start(self) -> int:
        """The client at which the lone token starts, without a server."""
        return self.first(0, 0)

    def next(self, token: int, t: int, hop: int, client: int, previous: int) -> int:
        """The client that follows ``client`` (which follows ``previous``) on hop s = ``hop`` of
        iteration t."""
        walk = self.walks[token]
        start = NOWHERE
        if walk.needs_start:
            start = self.first(token, t)

        # Each hop of a token has a random number of its own, whoever asks for it and when: so
        # engines agree, and a token that is regenerated takes the same way again.
        position = hop
        if self.hops:
            position += t * self.hops

        # Drawn in blocks: one draw of many numbers is much quicker than many draws. A block depends
        # on the seed and its number alone, so it does not matter who draws it.
        block, place = divmod(position, BLOCK)
        known, draws = self._blocks.get(token, NO_BLOCK)
        if known != block:
            draws = uniform_block(self.seed, "walk", (token,), block)
            self._blocks[token] = block, draws
        return walk.next(client, previous, start, t, hop, draws[place])

    def last(self, token: int, t: int) -> int:
        """The last client that the token visits in iteration t."""
        assert self.hops is not None  # a token that roams for ever has no last client
        client, previous = self.first(token, t), NOWHERE
        for hop in range(1, self.hops):
            following = self.next(token, t, hop, client, previous)
            client, previous = following, client

        return client

    @property
    def lone(self) -> Walk:
        """The walk of the lone token, without a server."""
        return self.walks[0]

    def all_walks(self) -> Sequence[Walk]:
        """The walks of all tokens, in all membership views."""
        return self.walks

    # For accelerated tours, and for networks that change.

    def hosted(self, client: TokenClient) -> Client:
        """Without a server: the client as tokens meet it, which may be absent for a while."""
        return client

    def ends_tour(self, hop: int) -> bool:
        """Without a server: whether the token is at its home client after ``hop`` hops."""
        return hop % tour_length(self.walks[0]) == 0

    def has_visited_all(self, hop: int) -> bool:
        """Without a server: whether the token, after ``hop`` hops, has visited every client of its
        tour."""
        return has_visited_all(self.walks[0], self.first(0, 0), hop)

    def is_last_visit(self, token: int, t: int, hop: int, client: int) -> bool:
        """Whether the visit after ``hop`` hops of iteration t is the last of this client before the
        sync.

        Without a server: before the end of the tour, at the home client, which is that client's
        last visit.
        """
        return is_last_visit(self.walks[token], self.first(token, t), self.hops, hop, client)

    def begins_view(self, when: int) -> bool:
        """Whether a membership view begins at this iteration (without a server: this hop). The
        first begins at 0."""
        return when == 0

    def is_away(self, client: int, hop: int) -> bool:
        """Without a server: whether the client is absent after ``hop`` hops."""
        return False


def tour_length(walk: Walk) -> int:
    """The hops of a walk that is a tour."""
    assert walk.length is not None
    return walk.length


def has_visited_all(walk: Walk, home: int, hop: int) -> bool:
    """Whether a tour from ``home`` has visited every client since its last start."""
    done = hop % tour_length(walk)
    return done == 0 or done >= walk.cover(home)


def is_last_visit(walk: Walk, start: int, hops: int | None, hop: int, client: int) -> bool:
    """Whether the visit after ``hop`` hops is the client's last of ``hops``, or of the tour if that
    is None."""
    # Whoever is visited last before the sync: clients look this up to tell their last update.
    if hops is not None:
        return walk.last_visits(start, hops)[client] == hop
    length = tour_length(walk)
    return client != start and walk.last_visits(start, length)[client] == hop % length


def plan_roaming(
    network: Network,
    tokens: int,
    clusters: Sequence[Sequence[int]] | None,
    walk: str,
    start: Start,
    seed: int,
    hops: int | None,
) -> Roaming:
    """The roaming of tokens over the whole network, or each in its cluster, ``hops`` per iteration
    (None: for ever)."""
    regions: Sequence[Sequence[int]] = [range(network.size)] * tokens
    if clusters is not None:
        regions = clusters

    walks = _walks(network, tokens, clusters, walk, seed)
    starts = []
    for choice, region in zip(_per_token(start, tokens), regions, strict=True):
        starts.append(_start_at(network, choice, region))
    if start is not None:
        _check_reach(network, starts, regions, hops)

    return Roaming(walks, starts, seed, hops)


def _walks(
    network: Network, tokens: int, clusters: Sequence[Sequence[int]] | None, walk: str, seed: int
) -> Sequence[Walk]:
    """The walk of each token, in its cluster if it has one."""
    # A walk that depends on neither seed nor token is made once: it may hold tables of all clients.
    if clusters is None and WALKS[walk].shared:
        return [make_walk(walk, network)] * tokens

    if clusters is None:
        return [make_walk(walk, network, None, seed, token) for token in range(tokens)]
    return [make_walk(walk, network, part, seed, i) for i, part in enumerate(clusters)]


def through_changes(
    roaming: Roaming,
    network: Network,
    clusters: Sequence[Sequence[int]] | None,
    whole_tours: bool = False,
) -> Roaming:
    """The roaming while clients leave and join, if they do.

    Parameters
    ----------
    roaming
        The roaming over the whole network.
    network
        The network; its changes are known in advance.
    clusters
        The clients of each token, or None where tokens roam everywhere.
    whole_tours
        Whether clients leave and join between two tours only.

    Returns
    -------
    Roaming
        The same, unless the network changes.

    Raises
    ------
    ConfigError
        If the network changes, and no feature is there that can roam on it.
    """
    if not network.changes:
        return roaming

    # Registered, not imported: a network that stays the same does not load what changes need.
    homes = features.parts(CHANGES)
    if "changes" not in homes:
        raise ConfigError("network.changes: this installation has no part for it: leave it out.")
    adapt: Callable[..., Roaming] = features.load(homes["changes"])  # type: ignore[assignment]
    return adapt(roaming, network, clusters, whole_tours)


def _per_token(start: Start, tokens: int) -> list[Distribution | None]:
    if start is None or isinstance(start, str | int | Integral | Mapping):
        return [start] * tokens

    if len(start) != tokens:
        raise ConfigError(
            f"method.start lists {len(start)} starts for {tokens} tokens: give one for each, or "
            f"one for all."
        )
    return list(start)


def _start_at(network: Network, choice: Distribution | None, region: Sequence[int]) -> StartAt:
    if choice is None:
        return StartAt(region)

    weights: Mapping[Any, float]
    if isinstance(choice, Mapping):
        weights = choice
    else:
        weights = {choice: 1.0}

    names = ClientNames(network.clients)
    numbers = [names.number(name, "method.start") for name in weights]
    # A token that starts outside of its cluster would leave it at once.
    if not set(numbers) <= set(region):
        raise ConfigError(f"method.start: {choice!r} is outside the cluster of its token.")

    possible = all(0 <= weight < math.inf for weight in weights.values())
    if not possible or not sum(weights.values()) > 0:
        raise ConfigError("method.start: weights must be finite, 0 or more, and not all 0.")
    return StartAt(numbers, list(weights.values()))


def _check_reach(
    network: Network, starts: Sequence[StartAt], regions: Sequence[Sequence[int]], hops: int | None
) -> None:
    """Reject starts from which some client is never visited: its block would not be trained."""
    # Given starts only: by default every client is a possible start.
    reached: set[int] = set()
    for start, region in zip(starts, regions, strict=True):
        reached |= reach(network, start, region, hops)

    missed = sorted(set(range(network.size)) - reached)
    if not missed:
        return

    where = "."
    if hops is not None:
        where = f" within {hops} hops: give more hops or other starts."
    raise ConfigError(
        f"method.start: client {network.clients[missed[0]]!r} can never be visited from the given "
        f"starts{where}"
    )


def reach(network: Network, start: StartAt, region: Iterable[int], hops: int | None) -> set[int]:
    """The clients that a token may visit in an iteration."""
    within, edge = set(region), set(start.support())
    seen = set(edge)

    most = network.size
    if hops is not None:
        most = hops - 1  # the start is the first visit
    for _ in range(most):
        near: set[int] = set()
        for client in edge:
            near.update(network.neighbours[client])

        edge = (near & within) - seen
        seen |= edge
        if not edge:
            break  # only saves time

    return seen
