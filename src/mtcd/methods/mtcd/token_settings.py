"""The settings of MTCD and STCD, checked, and what follows from them alone: step sizes, costs, a
description."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Self

from mtcd.core.checks import check_whole
from mtcd.core.errors import ConfigError, did_you_mean
from mtcd.methods.method import NOT_IN_CONFIG, Stepsize, check_connected
from mtcd.methods.mtcd.combine import RULES, Combine
from mtcd.methods.mtcd.features import ACCELERATIONS, AccelerationKind, TokenFeature
from mtcd.methods.mtcd.plan import TokenMethod
from mtcd.methods.mtcd.roaming import Start
from mtcd.methods.mtcd.schedule import Schedule
from mtcd.methods.prices import Prices, Timeline
from mtcd.methods.server_sum import PLAIN_SUM, ServerSum
from mtcd.network.changes import in_pieces
from mtcd.network.topology import Network
from mtcd.protocol.ledger.costs import Costs, Sizes
from mtcd.protocol.model import Problem
from mtcd.protocol.transports.registry import DEFAULT
from mtcd.theory.stepsize import (
    Smoothness,
    StepsizeRule,
    StepsizeRules,
    descent_limit,
    theorem_limit,
)

GRADIENT, MAJORISE = "gradient", "majorise"
Clusters = Literal["auto"] | Sequence[Sequence[str | int]] | None


@dataclass(frozen=True)
class TokenSettings(TokenMethod):
    """See ``MTCD``."""

    tokens: int | None = None
    hops: int | None = 16
    local_updates: int = 1
    stepsize: Stepsize = "auto"
    batch: int | None = None
    combine: str | None = None
    walk: str = "lazy"
    clusters: Clusters = None
    start: Start = None
    acceleration: str | None = None
    depth: int | None = None
    schedule: Schedule | None = None
    fusion_updates: int | None = None
    fusion_client: str | int | None = field(default=None, metadata=NOT_IN_CONFIG)
    first_pass: bool = field(default=True, repr=False, metadata=NOT_IN_CONFIG)
    adaptive: bool = field(default=False, metadata=NOT_IN_CONFIG)
    features: tuple[TokenFeature, ...] = field(
        default=(), kw_only=True, repr=False, metadata=NOT_IN_CONFIG
    )
    transport: str = field(default=DEFAULT, kw_only=True)
    local_solver: str = field(default=GRADIENT, kw_only=True)
    aggregation: ServerSum = field(default=PLAIN_SUM, kw_only=True, metadata=NOT_IN_CONFIG)

    warm_starts = True

    def __post_init__(self) -> None:
        self._check_local_settings()
        for name, value in (
            ("tokens", self.tokens),
            ("hops", self.hops),
            ("fusion_updates", self.fusion_updates),
        ):
            if value is not None:
                check_whole(f"method.{name}", value)
        if not isinstance(self.first_pass, bool):
            raise ConfigError(f"method.first_pass is true or false, but is {self.first_pass!r}.")
        if self._rule.server_chooses and (self.batch is not None or self.hops is None):
            raise ConfigError(
                f"method.combine: {self.combine_rule} needs mtcd and the full batch, to compute f "
                f"from the tokens: "
                "leave batch out, or choose another rule."
            )
        if not _are_clusters(self.clusters):
            raise ConfigError(
                f"method.clusters is 'auto' or a list of lists of clients, but is "
                f"{self.clusters!r}."
            )
        if self.local_solver not in (GRADIENT, MAJORISE):
            hint = did_you_mean(str(self.local_solver), (GRADIENT, MAJORISE))
            raise ConfigError(f"method.local_solver: unknown solver {self.local_solver!r}: {hint}")
        if self.local_solver == MAJORISE and self.batch is not None:
            raise ConfigError(
                "method.local_solver: majorise needs the full batch: leave batch out."
            )
        self._check_acceleration()
        if self.hops is None and (
            self.tokens not in (None, 1) or self.clusters is not None or self.batch is not None
        ):
            raise ConfigError(
                "stcd has one token, no clusters and the full batch: use mtcd for anything else."
            )
        if self.hops is None and self.schedule is not None:
            raise ConfigError(
                "method.schedule changes the step size from sync to sync: stcd has none."
            )

        if self.transport != DEFAULT and (self._accelerated or self._rule.server_chooses):
            raise ConfigError(
                f"method.transport: {self.transport} changes tokens on their way, but acceleration "
                f"and combine: "
                f"optimal compute with differences of tokens. Leave these out, or set transport: "
                f"{DEFAULT}."
            )

        self.aggregation.check(self)

    def _check_acceleration(self) -> None:
        if self.depth is not None:
            check_whole("method.depth", self.depth)
        kind = self._accelerated
        if self.adaptive and not (kind and kind.adapts):
            raise ConfigError(
                "method.adaptive is for acceleration: conjugate, which chooses its own step sizes."
            )
        if kind is not None:
            kind.check_settings(self)

    @property
    def kind(self) -> str:
        """'stcd' for the setting without a server."""
        return "stcd" if self.hops is None else "mtcd"

    @property
    def has_server(self) -> bool:  # type: ignore[override]
        """False for STCD."""
        return self.hops is not None

    @property
    def sums_uploads(self) -> bool:  # type: ignore[override]
        """False for STCD, which has no server."""
        return self.has_server

    @property
    def combine_rule(self) -> str:
        """The rule in use: ``combine``, or by default 'cluster' with clusters and 'average'
        without."""
        return self.combine or ("average" if self.clusters is None else "cluster")

    @property
    def one_token_per_client(self) -> bool:
        """Whether no client is visited by two tokens between two syncs, and its copy counts with
        weight 1."""
        return self._rule.one_visitor or (
            self.tokens in (None, 1) and not self._rule.server_chooses
        )

    @property
    def _rule(self) -> type[Combine]:
        return RULES[self.combine_rule]

    @property
    def _accelerated(self) -> type[AccelerationKind] | None:
        return None if self.acceleration is None else ACCELERATIONS[self.acceleration]

    def describe(self) -> str:
        walk = "" if self.walk == "lazy" else f", {self.walk}"
        walk += f", {self.acceleration}" if self.acceleration else ""
        walk += "" if self.local_solver == GRADIENT else f", {self.local_solver}"
        if self._accelerated and self._accelerated.uses_depth and not self.chooses_steps:
            walk += f" (M={self._accelerated.most_starts(self)})"
        Q = "auto" if self.chooses_steps else self.local_updates
        if self.hops is None:
            return f"STCD, Q={Q}{walk}"
        everywhere = self.clusters is None and not self._rule.one_visitor
        given = (
            None if self.clusters is None or isinstance(self.clusters, str) else len(self.clusters)
        )
        tokens = self.tokens or given or (1 if everywhere else "auto")
        batch = "" if self.batch is None else f", B={self.batch}"
        return f"MTCD, Γ={tokens}, S={self.hops}, Q={Q}{batch}, {self.combine_rule}{walk}"

    @property
    def chooses_steps(self) -> bool:  # type: ignore[override]
        """Whether the acceleration chooses step sizes and local updates, now or once 'auto' is
        resolved."""
        return self.adaptive or (
            self.stepsize == "auto" and self._accelerated is not None and self._accelerated.adapts
        )

    def timeline(self) -> Timeline:
        return Timeline(self.batch, self.hops or 1)

    def with_stepsize(self, stepsize: float) -> Self:
        return replace(self, stepsize=stepsize, adaptive=self.chooses_steps)

    def stepsize_rules(self, smoothness: Smoothness) -> StepsizeRules:
        return TokenStepsizes(self, smoothness)

    def prices(self, network: Network, tokens: int = 1) -> Prices:
        if self.hops is None:
            return Prices(hops=1)

        def opening(costs: Costs, sizes: Sizes) -> float:
            return self.aggregation.opening_cost(network, costs)

        uplinks = tokens if self.batch is None else network.size
        return Prices(uplinks, tokens, self.hops * tokens, opening)

    def check(self, network: Network, problem: Problem | None = None) -> None:
        super().check(network, problem)
        if self.hops is None:
            check_connected(network, "stcd")

    def notes(self, network: Network) -> tuple[str, ...]:
        apart = in_pieces(network) if self.hops is None and network.changes else []
        note = f"{'; '.join(apart)}: the token stays in its component until the others can be reached again."
        return (*super().notes(network), *((note[0].upper() + note[1:],) if apart else ()))


class TokenStepsizes(StepsizeRules):
    """The step sizes of MTCD and STCD on one problem."""

    def __init__(self, method: TokenSettings, smoothness: Smoothness) -> None:
        self._method, self._smoothness = method, smoothness

    @property
    def limit(self) -> StepsizeRule:
        method, rule = self._method, RULES[self._method.combine_rule]
        if method.hops is None or (rule.never_raises and not rule.covered):
            return descent_limit(self._smoothness)

        beyond = []
        if not rule.covered and method.tokens != 1:
            beyond.append(f"combine: {method.combine_rule}")
        if method.acceleration:
            beyond.append("acceleration")
        Q, batch = method.local_updates, method.batch
        return theorem_limit(self._smoothness, method.hops, Q, batch, beyond)

    @property
    def auto(self) -> StepsizeRule:
        method, rule = self._method, RULES[self._method.combine_rule]
        if method.chooses_steps and method.acceleration is not None:
            return ACCELERATIONS[method.acceleration].first_stepsize(self._smoothness)

        # With the full batch no visit raises f, and then no sync does either: the steps may be
        # larger than those for which the theorems prove a rate.
        if method.batch is None and ((rule.never_raises and rule.covered) or method.tokens == 1):
            return descent_limit(self._smoothness, averaged=method.tokens not in (None, 1))
        return self.limit


def _are_clusters(given: object) -> bool:
    if given is None or isinstance(given, str):
        return given in (None, "auto")
    return isinstance(given, Sequence) and all(
        isinstance(g, Sequence) and not isinstance(g, str) for g in given
    )
