"""Where tokens start and where they go next, as a function of (seed, token, iteration, hop) alone.

Every party can work this out for itself: nothing here depends on what happened before.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from mtcd.errors import ConfigError
from mtcd.network.topology import ClientNames, Network
from mtcd.network.walks import Walk, make_walk
from mtcd.seeding import uniform

Distribution = str | int | Mapping[str, float]
Start = None | Distribution | Sequence[Distribution]


class StartAt:
    """P_gamma: the distribution over clients from which a token's start is drawn."""

    def __init__(self, clients: Sequence[int], weights: Sequence[float] | None = None) -> None:
        self.clients = clients
        self.cumulative = None if weights is None else list(accumulate(weights))

    def pick(self, draw: float) -> int:
        """The client for a uniform draw in [0, 1)."""
        if self.cumulative is None:
            return self.clients[int(draw * len(self.clients))]
        place = bisect_right(self.cumulative, draw * self.cumulative[-1])
        return self.clients[min(place, len(self.clients) - 1)]


@dataclass(frozen=True, eq=False)
class Roaming:
    """One walk and one start distribution per token."""

    walks: Sequence[Walk]
    starts: Sequence[StartAt]
    seed: int

    def first(self, token: int, iteration: int) -> int:
        """k ~ P_gamma, for iteration t."""
        return self.starts[token].pick(uniform(self.seed, "start", (token,), iteration))

    def next(self, token: int, hops: int, client: int) -> int:
        """Where the token goes from ``client`` after so many hops in all (t*S + s)."""
        return self.walks[token].next(client, uniform(self.seed, "walk", (token,), hops))


def plan_roaming(
    network: Network,
    tokens: int,
    clusters: Sequence[Sequence[int]] | None,
    walk: str,
    start: Start,
    seed: int,
) -> Roaming:
    """Tokens over the whole network, or each in its cluster."""
    given = _per_token(start, tokens)
    if clusters is None:
        walks = [make_walk(walk, network)] * tokens
        starts = [_start_at(network, choice, range(network.size)) for choice in given]
    else:
        walks = [make_walk(walk, network, within=cluster) for cluster in clusters]
        starts = [_start_at(network, choice, cluster) for choice, cluster in zip(given, clusters, strict=True)]
    return Roaming(walks, starts, seed)


def _per_token(start: Start, tokens: int) -> list[Distribution | None]:
    if start is None or isinstance(start, str | int | Mapping):
        return [start] * tokens
    if len(start) != tokens:
        raise ConfigError(
            f"method.start lists {len(start)} starts for {tokens} tokens: give one for each, or one for all."
        )
    return list(start)


def _start_at(network: Network, choice: Distribution | None, region: Sequence[int]) -> StartAt:
    if choice is None:
        return StartAt(region)
    weights = choice if isinstance(choice, Mapping) else {choice: 1.0}
    names = ClientNames(network.clients)
    numbers = [names.number(name, "method.start") for name in weights]
    if not set(numbers) <= set(region):
        raise ConfigError(f"method.start: {choice!r} is outside the cluster of its token.")
    if not all(weight >= 0 for weight in weights.values()) or not sum(weights.values()) > 0:
        raise ConfigError("method.start: weights must be 0 or more, and not all 0.")
    return StartAt(numbers, list(weights.values()))
