"""Candidates: methods with settings, for the given model, data and network.

Those of MTCD and STCD stand here; what other methods propose is registered by their features
(:class:`mtcd.methods.planned.Planned`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any, cast

from mtcd.core import features
from mtcd.core.errors import ConfigError
from mtcd.methods.method import Method, resolved_stepsize
from mtcd.methods.mtcd.checks import GRADIENT, NEWTON, SOLVERS
from mtcd.methods.mtcd.combine import RULES
from mtcd.methods.mtcd.features import ACCELERATIONS
from mtcd.methods.mtcd.mtcd import MTCD, STCD
from mtcd.methods.mtcd.planned import BLOCKS
from mtcd.methods.planned import (
    CANDIDATES,
    MOST_UPDATES,
    Planned,
    PlanSetting,
    other_transports,
    planned,
)
from mtcd.network.clusters import Cluster
from mtcd.network.topology import Network
from mtcd.network.tours import closed_walk
from mtcd.network.walks import WALKS

CROSSING_TOKENS = (2, 4, 8)
CROSSING_HOPS = (1, 4)  # times the number of clients
CROSSING_UPDATES = 20
MOST_TOKENS = 64
LONGER = 10  # times the local updates, where any number of them takes two products


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
        for name in self.accelerations:
            yield from ACCELERATIONS[name].tried(name, STCD(1, step, walk="tour"), self)

        walks = [name for name, walk in WALKS.usable().items() if walk.planned == "candidate"]
        for Q in self.local_updates:
            for walk in walks:
                yield STCD(Q, step, walk=walk)

    @property
    def token_counts(self) -> list[int]:
        """Numbers of clusters to try: doubling, from the number of connected components on; and a
        cluster for each client."""
        count, most = max(2, len(self.network.components)), self.network.size
        counts: list[int] = []
        # one number in any case, even where there are more components than MOST_TOKENS
        while count <= most and (not counts or count <= MOST_TOKENS):
            counts.append(count)
            count *= 2
        if counts and most <= MOST_TOKENS and most not in counts:
            counts.append(most)

        return counts or [1]

    def _clustered(self) -> Iterator[Method]:
        """A token per cluster, touring it: found clusters, and those of the config."""
        kinds: list[MTCD] = [MTCD(tokens, 1, clusters="auto") for tokens in self.token_counts]
        if isinstance(self.own, MTCD) and not isinstance(self.own.clusters, str | None):
            kinds.append(MTCD(None, 1, clusters=self.own.clusters))

        for kind in kinds:
            # a roam that ends in the middle of a tour would leave out clients of its cluster
            tour = longest_tour(self.network, kind.token_clusters(self.network, self.seed) or ())
            step = self.alone
            touring = replace(kind, hops=tour, walk="tour", stepsize=step, batch=self.batch)
            # none with mini-batches, whose tokens differ from tour to tour even where the models do
            # not
            if self.batch is None:
                for name in self.accelerations:
                    yield from ACCELERATIONS[name].tried(name, touring, self)
            for name in self._rules("clustered"):
                yield from RULES[name].tried(replace(touring, combine=name), self)

    def _crossing(self) -> Iterator[Method]:
        """Tokens that may go anywhere."""
        K = self.network.size
        walk = "lazy"
        if self.network.connected:
            walk = "tour"

        rules = self._rules("crossing")
        for rule, tokens, times in product(rules, CROSSING_TOKENS, CROSSING_HOPS):
            for part in self.parts_alone:
                step = part * self.alone
                yield MTCD(tokens, times * K, CROSSING_UPDATES, step, self.batch, rule, walk)


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
        yield from _other_solvers(space, method)
        if method.hops is None:
            yield from _other_walks(method)
            yield from _other_homes(space, method)
        else:
            yield from _other_roams(space, method, method.hops)
        # it chooses its steps by itself, or solves whole blocks
        if method.adaptive or method.local_solver == NEWTON:
            if space.bytes_count:
                yield from other_transports(method)
            return

    yield from planned(method).changed(space, method)


def _steps_of(solver: str, method: MTCD) -> int:
    """The local updates of a method with another solver, which may take a product for each."""
    if solver == NEWTON:
        return 1
    if solver == GRADIENT:
        return min(method.local_updates, MOST_UPDATES)
    return method.local_updates


def _with(method: MTCD, **changes: Any) -> Iterator[MTCD]:
    """The method with these settings; none if its acceleration or rule refuses them."""
    with suppress(ConfigError):
        yield replace(method, **changes)


def _other_memory(method: MTCD) -> Iterator[Method]:
    """More or fewer tours that an acceleration remembers."""
    if not method.acceleration:
        return

    most = ACCELERATIONS[method.acceleration].most_starts(method)
    for depth in (2 * most, most + 2, most // 2):
        if depth >= 1:
            yield from _with(method, depth=depth)


def _other_solvers(space: Space, method: MTCD) -> Iterator[Method]:
    """Another local solver, and longer or shorter visits where their length costs nothing."""
    # on a bound of f: a quadratic is its own, and the prox of l1 takes single steps
    if method.batch is not None or space.nonsmooth:
        return

    if not space.quadratic:
        for solver in SOLVERS:
            if solver != method.local_solver:
                yield from _with(
                    method, local_solver=solver, local_updates=_steps_of(solver, method)
                )
    if method.adaptive or method.local_solver == NEWTON:
        return
    if space.quadratic or method.local_solver != GRADIENT:
        for Q in (LONGER * method.local_updates, method.local_updates // LONGER):
            if 1 <= Q <= BLOCKS[-1]:
                yield replace(method, local_updates=Q)


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
