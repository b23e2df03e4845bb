"""Candidates: methods with settings, for the given model, data and network.

Those of MTCD and STCD stand here; what other methods propose is registered by their features
(:class:`mtcd.methods.planned.Planned`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import cast

from mtcd.core import features
from mtcd.core.errors import ConfigError
from mtcd.methods.method import Method, resolve_stepsize, resolved_stepsize
from mtcd.methods.mtcd.combine import RULES
from mtcd.methods.mtcd.features import ACCELERATIONS
from mtcd.methods.mtcd.mtcd import MTCD, STCD
from mtcd.methods.planned import CANDIDATES, NOISY, Planned, PlanSetting, planned
from mtcd.network.clusters import Cluster
from mtcd.network.topology import Network
from mtcd.network.tours import closed_walk
from mtcd.network.walks import WALKS

# parts of 1/max_k L_k for tokens that move at once, a cluster each, and for accelerated tours
APART = (1.0, 0.2, 0.04)
CROSSING_TOKENS = (2, 4, 8)
CROSSING_HOPS = (1, 4)  # times the number of clients
TOURS = (1, 3)  # of a cluster between syncs, without acceleration
MOST_TOKENS = 64


@dataclass(frozen=True, eq=False)
class Space(PlanSetting):
    """All candidates for a setting."""

    @cached_property
    def accelerations(self) -> list[str]:
        """Those that are planned for such a model."""
        objective = "nonsmooth" if self.smoothness.problem.nonsmooth else "smooth"
        return [name for name, made in ACCELERATIONS.usable().items() if objective in made.planned]

    def candidates(self) -> Iterator[Method]:
        """Each once, without the config's own; step sizes are numbers. One by one, as some take
        time to make."""
        # the config's own method is a pilot already
        seen = {repr(short(self.own))}
        for method in self.masked(map(short, self._all())):
            if repr(method) not in seen:
                seen.add(repr(method))
                yield method

    def masked(self, methods: Iterable[Method]) -> Iterator[Method]:
        """With sums at the server as the config's own method has them, without those that cannot
        have them."""
        aggregation = self.own.aggregation
        for method in methods:
            with suppress(ConfigError):  # a method that cannot have them
                found = aggregation.applied(method)
                # a sum over one token is that token: nothing would be hidden
                sum_of_one = isinstance(found, MTCD) and found.batch is None and found.tokens == 1
                if not (aggregation.hides_parts and sum_of_one):
                    yield found

    def _all(self) -> Iterator[Method]:
        # the config has a setting that other methods cannot keep, such as a mode of privacy
        if not planned(self.own).replaceable:
            return

        yield from self._stcd()
        for home in features.parts(CANDIDATES).values():
            yield from cast(Planned, features.load(home)).candidates(self)

        # last: clusters of large networks take time, and the screening may run out of it
        if self.server:
            yield from self._clustered()
            yield from self._crossing()

    def _adaptive_ones(self) -> list[str]:
        return [name for name in self.accelerations if ACCELERATIONS[name].adapts]

    def _rules(self, tokens: str) -> list[str]:
        """The rules that are planned for such tokens."""
        found = []
        # weights that the server chooses minimise f on all samples: not on those of a mini-batch
        for name, rule in RULES.usable().items():
            possible = self.batch is None or not rule.server_chooses
            if possible and tokens in rule.planned:
                found.append(name)

        return found

    def _stcd(self) -> Iterator[Method]:
        if not self.network.connected:
            return

        step = 1.0 / float(self.smoothness.blocks.max())  # all samples, whatever the config's batch
        for acceleration in self._adaptive_ones():
            yield self._adaptive(STCD(walk="tour", acceleration=acceleration))

        walks = [name for name, walk in WALKS.usable().items() if walk.planned == "candidate"]
        for Q in self.local_updates:
            # extrapolation is not stable at every step: it may need a smaller one
            for part, acceleration in product(APART, self.accelerations):
                yield STCD(Q, part * step, walk="tour", acceleration=acceleration)

            for walk in walks:
                yield STCD(Q, step, walk=walk)

    @property
    def token_counts(self) -> list[int]:
        """Numbers of clusters to try: doubling, from the number of connected components on."""
        count, most = max(2, len(self.network.components)), self.network.size
        counts: list[int] = []
        # one number in any case, even where there are more components than MOST_TOKENS
        while count <= most and (not counts or count <= MOST_TOKENS):
            counts.append(count)
            count *= 2

        return counts or [1]

    def _clustered(self) -> Iterator[Method]:
        """A token per cluster, touring it: found clusters, and those of the config."""
        kinds: list[MTCD] = [MTCD(tokens, 1, clusters="auto") for tokens in self.token_counts]
        if isinstance(self.own, MTCD) and not isinstance(self.own.clusters, str | None):
            kinds.append(MTCD(None, 1, clusters=self.own.clusters))

        for kind in kinds:
            # a roam that ends in the middle of a tour would leave out clients of its cluster
            tour = longest_tour(self.network, kind.token_clusters(self.network, self.seed) or ())
            touring = replace(kind, hops=tour, walk="tour")
            for acceleration in self._for_full_batches(self._adaptive_ones()):
                yield self._adaptive(replace(touring, acceleration=acceleration))

            for Q, part in product(self.local_updates, self._parts):
                step = part * self.alone
                base = replace(touring, local_updates=Q, stepsize=step, batch=self.batch)
                yield from self._of_clusters(base, tour)

    @property
    def _parts(self) -> Sequence[float]:
        """The parts of the longest step of one client alone that are tried."""
        if self.batch is None:
            return APART
        return NOISY

    def _for_full_batches(self, accelerations: list[str]) -> list[str]:
        """These accelerations; none with mini-batches, whose tokens differ from tour to tour even
        where the models do not."""
        if self.batch is None:
            return accelerations
        return []

    def _of_clusters(self, base: MTCD, tour: int) -> Iterator[Method]:
        """With every acceleration, and with every rule and some numbers of tours between syncs."""
        for acceleration in self._for_full_batches(self.accelerations):
            yield replace(base, acceleration=acceleration)

        for rule, tours in product(self._rules("clustered"), TOURS):
            yield replace(base, hops=tours * tour, combine=rule)

    def _adaptive(self, method: MTCD) -> Method:
        """Tours that choose their steps by themselves."""
        return resolve_stepsize(method, self.smoothness)[0]

    def _crossing(self) -> Iterator[Method]:
        """Tokens that may go anywhere."""
        K = self.network.size
        walk = "lazy"
        if self.network.connected:
            walk = "tour"

        rules = self._rules("crossing")
        settings = product(rules, CROSSING_TOKENS, CROSSING_HOPS, self.local_updates)
        for rule, tokens, times, Q in settings:
            yield MTCD(tokens, times * K, Q, self.alone, self.batch, rule, walk)


def short(method: Method) -> Method:
    """The same method with its step size rounded to four digits."""
    if method.stepsize is None:
        return method
    # more digits make no difference, but a candidate of their own
    return method.with_stepsize(float(f"{resolved_stepsize(method):.4g}"))


def longest_tour(network: Network, clusters: tuple[Cluster, ...]) -> int:
    """Hops of the longest tour of a cluster, the least ``hops`` of acceleration at the sync."""
    return max((len(closed_walk(network, sorted(cluster))) for cluster in clusters), default=1)


def further(space: Space, method: Method) -> Iterator[Method]:
    """The same method with two settings changed."""
    for near in neighbours(space, method):
        yield from neighbours(space, near)


def neighbours(space: Space, method: Method) -> Iterator[Method]:
    """The same method with one setting changed a little: for a search around a good one."""
    return space.masked(map(short, _changed(space, method)))


def _changed(space: Space, method: Method) -> Iterator[Method]:
    if isinstance(method, MTCD):
        yield from _other_memory(method)
        if method.hops is None:
            yield from _other_walks(method)
            yield from _other_homes(space, method)
        else:
            yield from _other_roams(space, method, method.hops)
        if method.adaptive:  # it chooses its steps by itself
            return

    yield from planned(method).changed(space, method)


def _other_memory(method: MTCD) -> Iterator[Method]:
    """More or fewer tours that an acceleration remembers."""
    if not method.acceleration or method.adaptive:
        return

    most = ACCELERATIONS[method.acceleration].most_starts(method)
    for depth in (most + 1, most + 3, most - 1):
        if depth >= 1:
            yield replace(method, depth=depth)


def _other_walks(method: MTCD) -> Iterator[Method]:
    """Other tours of a lone token, without acceleration: that needs the tour it has."""
    if method.acceleration or not WALKS[method.walk].repeats:
        return

    for name, walk in WALKS.usable().items():
        if walk.planned == "refinement":
            yield replace(method, walk=name)


def _other_roams(space: Space, method: MTCD, hops: int) -> Iterator[Method]:
    """Longer and shorter roams, and other numbers of tokens."""
    clusters = method.token_clusters(space.network, space.seed)
    tour, tours = 1, None
    if clusters:
        tour = longest_tour(space.network, clusters)
        tours = max(1, round(hops / tour))

    # the acceleration at a sync compares whole tours, and so do some rules
    least = 1
    if method.acceleration or RULES[method.combine_rule].whole_tours:
        least = max(1, tour)
    for other in (hops * 2, hops // 2):
        if other >= least:
            yield replace(method, hops=other)

    yield from _other_tokens(space, method, tours)


def _other_homes(space: Space, method: MTCD) -> Iterator[Method]:
    """Where an extrapolated tour begins and ends: somewhere else on it."""
    if not method.acceleration:
        return

    tour = closed_walk(space.network, range(space.network.size))
    for client in sorted({tour[0], tour[len(tour) // 3], tour[len(tour) // 2]}):
        yield replace(method, start=space.network.clients[client])


def _other_tokens(space: Space, method: MTCD, tours: int | None) -> Iterator[Method]:
    """More or fewer tokens; in clusters, with as many ``tours`` between syncs as before."""
    if method.tokens is None:
        return  # as many as the config has clusters
    tokens = method.tokens
    counts = (tokens + 1, tokens - 1, tokens * 2, tokens // 2)

    if tours is None:
        for count in counts:
            if count >= 1:
                yield replace(method, tokens=count)
    elif isinstance(method.clusters, str):  # found for each number of tokens
        # clusters are connected: there are as many as components, or more
        fewest, most = len(space.network.components), space.network.size
        for count in counts:
            if fewest <= count <= most:
                other = replace(method, tokens=count)
                clusters = other.token_clusters(space.network, space.seed) or ()
                yield replace(other, hops=tours * longest_tour(space.network, clusters))
