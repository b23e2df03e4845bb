"""Candidates: methods with settings, for the given model, data and network.

Step sizes come from the smoothness of the problem. Where one client moves at a time, 1/max_k L_k is
safe. Where many move at once they may all correct the same error: there the steps of a visit, Q of
them, add up to a part of 1/L.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

from mtcd.core.errors import ConfigError
from mtcd.methods.dcpa.dcpa import DCPA
from mtcd.methods.method import Method, resolve_stepsize
from mtcd.methods.mtcd.combine import RULES
from mtcd.methods.mtcd.features import ACCELERATIONS
from mtcd.methods.mtcd.mtcd import MTCD, STCD
from mtcd.methods.svfl.svfl import SVFL
from mtcd.methods.tree_cg.tree_cg import TreeCG
from mtcd.network.clusters import Cluster
from mtcd.network.topology import Network
from mtcd.network.tours import closed_walk
from mtcd.network.walks import WALKS
from mtcd.privacy.sealed.settings import SealedTours
from mtcd.theory.stepsize import Smoothness

LOCAL_UPDATES, MOST_UPDATES = (5, 20, 100), 200
# parts of 1/L for all clients at once: the theorems' limit, the safe one, nearly the largest
TOGETHER = (0.5, 1.0, 1.8)
# with mini-batches, smaller ones too: the noise that remains grows with the step size
NOISY = (0.05, 0.2, 0.5, 1.0)
# parts of 1/max_k L_k for tokens that move at once, a cluster each, and for accelerated tours
APART = (1.0, 0.2, 0.04)
CROSSING_TOKENS = (2, 4, 8)
CROSSING_HOPS = (1, 4)  # times the number of clients
TOURS = (1, 3)  # of a cluster between syncs, without acceleration
MOST_TOKENS = 64


@dataclass(frozen=True, eq=False)
class Space:
    """The setting for which candidates are made. ``server``: whether there is one."""

    network: Network
    smoothness: Smoothness
    own: Method
    outputs: int
    seed: int
    server: bool = True

    @property
    def batch(self) -> int | None:
        """The batch size of the config, for all methods that support mini-batches."""
        return self.own.batch

    @cached_property
    def local_updates(self) -> list[int]:
        """Q: what the config has, unless a visit would take too long for a pilot, and others."""
        return sorted({min(self.own.local_updates, MOST_UPDATES), *LOCAL_UPDATES})

    @cached_property
    def alone(self) -> float:
        """1/max_k L_k."""
        largest = float(self.smoothness.blocks.max())
        return 1.0 / (
            largest if self.batch is None else max(largest, self.smoothness.batch(self.batch))
        )

    @cached_property
    def accelerations(self) -> list[str]:
        """Those that are planned for such a model."""
        objective = "nonsmooth" if self.smoothness.problem.nonsmooth else "smooth"
        return [name for name, made in ACCELERATIONS.usable().items() if objective in made.planned]

    def together(self, part: float, Q: int) -> float:
        """A step size for all clients at once: Q steps are this part of 1/L."""
        return min(part / (self.smoothness.batch(self.batch) * Q), 1.8 * self.alone)

    def candidates(self) -> Iterator[Method]:
        """Each once, without the config's own; step sizes are numbers. One by one, as some take
        time to make."""
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
            with suppress(ConfigError):
                found = aggregation.applied(method)
                sum_of_one = isinstance(found, MTCD) and found.batch is None and found.tokens == 1
                if not (aggregation.hides_parts and sum_of_one):
                    yield found

    def _all(self) -> Iterator[Method]:
        # an open method would promise less privacy than the config asks for
        if isinstance(self.own, SealedTours):
            return
        yield from self._stcd()
        yield from self._dcpa()
        if self.network.connected and not self.smoothness.problem.nonsmooth:
            yield TreeCG()
        if self.server:
            yield from self._svfl()
            yield from self._clustered()
            yield from self._crossing()

    def _adaptive_ones(self) -> Iterator[str]:
        return (name for name in self.accelerations if ACCELERATIONS[name].adapts)

    def _rules(self, tokens: str) -> list[str]:
        """The rules that are planned for such tokens."""
        rules = {name: rule for name, rule in RULES.usable().items() if tokens in rule.planned}
        return [
            name for name, rule in rules.items() if self.batch is None or not rule.server_chooses
        ]

    def _svfl(self) -> Iterator[Method]:
        for Q in sorted({1, *self.local_updates}):
            for part in TOGETHER if self.batch is None else NOISY:
                yield SVFL(Q, self.together(part, Q), self.batch)

    def _dcpa(self) -> Iterator[Method]:
        if self.network.connected and self.outputs == 1:
            rule = DCPA().auto_stepsize(self.smoothness)
            for factor in (1.0, 0.3, 3.0):  # of mu_w, with mu_y such that the product stays
                yield DCPA(factor * rule.value, dual_stepsize=float(f"{rule.value / factor:.4g}"))

    def _stcd(self) -> Iterator[Method]:
        if not self.network.connected:
            return
        step = 1.0 / float(self.smoothness.blocks.max())  # all samples, whatever the config's batch
        for acceleration in self._adaptive_ones():
            yield self._adaptive(STCD(walk="tour", acceleration=acceleration))
        for Q in self.local_updates:
            for part in APART:
                for acceleration in self.accelerations:
                    yield STCD(Q, part * step, walk="tour", acceleration=acceleration)
            for name, walk in WALKS.usable().items():
                if walk.planned == "candidate":
                    yield STCD(Q, step, walk=name)

    @property
    def token_counts(self) -> list[int]:
        """Numbers of clusters to try: doubling, from the number of connected components on."""
        fewest, most = max(2, len(self.network.components)), self.network.size
        counts: list[int] = []
        while fewest <= most and (len(counts) < 1 or fewest <= MOST_TOKENS):
            counts.append(fewest)
            fewest *= 2
        return counts or [1]

    def _clustered(self) -> Iterator[Method]:
        """A token per cluster, touring it: found clusters, and those of the config."""
        kinds: list[MTCD] = [MTCD(tokens, 1, clusters="auto") for tokens in self.token_counts]
        if isinstance(self.own, MTCD) and not isinstance(self.own.clusters, str | None):
            kinds.append(MTCD(None, 1, clusters=self.own.clusters))
        for kind in kinds:
            longest = longest_tour(self.network, kind.token_clusters(self.network, self.seed) or ())
            for acceleration in self._adaptive_ones() if self.batch is None else ():
                yield self._adaptive(
                    replace(kind, hops=longest, walk="tour", acceleration=acceleration)
                )
            for Q in self.local_updates:
                for part in APART if self.batch is None else NOISY:
                    base = replace(
                        kind,
                        hops=longest,
                        local_updates=Q,
                        stepsize=part * self.alone,
                        walk="tour",
                        batch=self.batch,
                    )
                    for acceleration in self.accelerations if self.batch is None else ():
                        yield replace(base, acceleration=acceleration)
                    for rule in self._rules("clustered"):
                        for tours in TOURS:
                            yield replace(base, hops=tours * longest, combine=rule)

    def _adaptive(self, method: MTCD) -> Method:
        """Tours that choose their steps by themselves."""
        return resolve_stepsize(method, self.smoothness)[0]

    def _crossing(self) -> Iterator[Method]:
        """Tokens that may go anywhere."""
        K = self.network.size
        walk = "tour" if self.network.connected else "lazy"
        for rule in self._rules("crossing"):
            for tokens in CROSSING_TOKENS:
                for times in CROSSING_HOPS:
                    for Q in self.local_updates:
                        yield MTCD(tokens, times * K, Q, self.alone, self.batch, rule, walk)


def short(method: Method) -> Method:
    """The same method with its step size rounded to four digits."""
    if method.stepsize is None:
        return method
    return method.with_stepsize(float(f"{method.resolved_stepsize():.4g}"))


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
    if method.stepsize is None:  # nothing to set
        return
    if isinstance(method, MTCD):
        yield from _other_roams(space, method)
        if method.adaptive:
            return
    for factor in (2.0, 0.5):
        Q = max(1, round(method.local_updates * factor))
        if not isinstance(method, DCPA) and method.local_updates != Q:
            yield replace(method, local_updates=Q)  # type: ignore[type-var]
    for factor in (1.5, 1 / 1.5, 4.0, 1 / 4):
        step = method.resolved_stepsize() * factor
        if not method.gradient_steps or step < 2.0 * space.alone:
            yield method.with_stepsize(step)
    if isinstance(method, DCPA):
        for factor in (2.0, 0.5):
            yield replace(
                method, dual_stepsize=float(f"{method.resolved_dual_stepsize() * factor:.4g}")
            )


def _other_roams(space: Space, method: MTCD) -> Iterator[Method]:
    if method.acceleration and not method.adaptive:
        most = ACCELERATIONS[method.acceleration].most_starts(method)
        for depth in (most + 1, most + 3, most - 1):
            if depth >= 1:
                yield replace(method, depth=depth)
    elif not method.acceleration and WALKS[method.walk].repeats and method.hops is None:
        for name, walk in WALKS.usable().items():
            if walk.planned == "refinement":
                yield replace(method, walk=name)
    if method.hops is None:
        yield from _other_homes(space, method)
        return
    clusters = method.token_clusters(space.network, space.seed)
    tour = 1 if clusters is None else longest_tour(space.network, clusters)
    for hops in (method.hops * 2, method.hops // 2):
        if hops >= 1 and not (method.acceleration and hops < tour):
            yield replace(method, hops=hops)
    yield from _other_tokens(space, method, max(1, round(method.hops / tour)) if clusters else None)


def _other_homes(space: Space, method: MTCD) -> Iterator[Method]:
    """Where an extrapolated tour begins and ends: somewhere else on it."""
    if method.acceleration:
        tour = closed_walk(space.network, range(space.network.size))
        for client in sorted({tour[0], tour[len(tour) // 3], tour[len(tour) // 2]}):
            yield replace(method, start=space.network.clients[client])


def _other_tokens(space: Space, method: MTCD, tours: int | None) -> Iterator[Method]:
    """More or fewer tokens; in clusters, with as many ``tours`` between syncs as before."""
    tokens, fewest, most = method.tokens, len(space.network.components), space.network.size
    if tokens is None:
        return
    for count in (tokens + 1, tokens - 1, tokens * 2, tokens // 2):
        if tours is None and count >= 1:
            yield replace(method, tokens=count)
        elif tours is not None and method.clusters == "auto" and fewest <= count <= most:
            other = replace(method, tokens=count)
            clusters = other.token_clusters(space.network, space.seed) or ()
            yield replace(other, hops=tours * longest_tour(space.network, clusters))
