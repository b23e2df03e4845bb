"""How far a run is, as one party sees it: when it ends, and what to tell those who ask."""

from __future__ import annotations

import math
from collections.abc import Callable
from time import monotonic, time
from typing import Any

import numpy as np

from mtcd.divergence import DIVERGED, Divergence, looks_hopeless
from mtcd.federation.node.log import Log
from mtcd.ledger.costs import UNIT, Costs, Sizes
from mtcd.methods.method import Method
from mtcd.methods.svfl import Shared
from mtcd.network.topology import Network
from mtcd.pace import Growing, Pace
from mtcd.protocol.model import EpochLoss
from mtcd.protocol.token import Token
from mtcd.stop import Stop

MEASURE_EVERY = 0.5  # seconds
SAY_EVERY = 5.0
Report = Callable[[Any, str | None], str | None]


class Watch:
    """Sees what a party tells its monitor, and tokens that come by."""

    def __init__(
        self,
        stop: Stop,
        method: Method,
        network: Network,
        costs: Costs,
        tokens: int,
        samples: int,
        log: Log,
        problem: Any = None,
        rule: Divergence | None = None,
        sizes: Sizes = UNIT,
        opening_cost: float = 0.0,
        finite: Callable[[], bool] = lambda: True,
        seen: Callable[[], EpochLoss | None] = lambda: None,
        pace: Pace | None = None,
    ) -> None:
        self.log, self.stop = log, stop
        self.problem, self.rule = problem, rule
        """What reads the objective off an aggregate of all samples, and what has diverged; None if not known here."""
        self._finite = finite
        """Whether the parameters that this party holds are finite."""
        self._seen, self._looking = seen, pace or Growing()
        """What shows on the way whether a split network diverges, and when to look, as one process does."""
        self.iteration, self.syncs, self.objective = 0, 0, math.nan
        self.gap_part: float | None = None
        self.final = False
        """Whether the objective is that of the end."""
        self.began = time()
        """When the run was agreed on, also if this process started later."""
        self.per_sync = method.hops_per_sync
        self._most_hops: int | None = getattr(method, "hops", None)
        cost = method.iteration_cost(network, tokens, costs, sizes)
        limits = [stop.iterations, None if stop.epochs is None else stop.epochs * method.epoch(samples)]
        self.limits = {
            name: limit for name, limit in zip(("iterations", "epochs"), limits, strict=True) if limit is not None
        }
        if stop.cost is not None and cost > 0:
            left = max(0.0, stop.cost - opening_cost)
            self.limits["cost"] = math.ceil(left / cost) * self.per_sync
        self._tokens: dict[int, tuple[int, int, float]] = {}
        self._pace, self._due, self._measured, self._said = Growing(), 0.0, 0.0, 0.0
        self._look_at = 0.0
        self.now: Callable[[], float] = monotonic
        """The clock of the loop."""
        self.report: Report | None = None
        """Called with what the monitor is told, and the status if that ends the run; returns the status."""

    def limit(self, payload: Any) -> str | None:
        """The status with which the run ends here, or None."""
        hop = reached(payload)
        if hop is None:
            return None
        status = self._limit(payload, hop)
        return status if self.report is None else self.report(payload, status)

    def _limit(self, payload: Any, hop: int) -> str | None:
        self.iteration, self.syncs = hop, getattr(payload, "t", 0)
        if not math.isfinite(getattr(payload, "penalty", 0.0)):
            return DIVERGED
        status = self._reached(hop)
        if status is None and hop >= self._look_at:
            self._look_at = self._looking.next(hop, near=False)
            known = self.rule is not None and (f := self._objective(payload)) is not None and self.rule.on_the_way(f)
            if known or looks_hopeless(self._seen()):
                return DIVERGED
        return status

    def judge(self, payload: Any, status: str) -> str:
        """The status of an end at this moment: where the objective can be told, it may have diverged."""
        f = self._objective(payload)
        known = self.rule is not None and f is not None and self.rule.at_the_end(f)
        return DIVERGED if known or not _is_finite(payload) or not self._finite() else status

    def is_hopeless(self, payload: Any) -> bool:
        """Whether what the server sends out at the start of an iteration shows that training has diverged."""
        if self.rule is None or self.problem is None or not self._tells_all(payload):
            return False
        with np.errstate(all="ignore"):
            return self.rule.on_the_way(self.problem.read_off(payload.aggregate, getattr(payload, "penalty", 0.0)))

    def _tells_all(self, payload: Any) -> bool:
        """Z^t: before anything is done with it. What accelerates mixes it anew, and looks at f itself."""
        if isinstance(payload, Token):
            return self._most_hops is not None and payload.hop == 0 and not payload.instruction.weights
        return isinstance(payload, Shared)

    def _objective(self, payload: Any) -> float | None:
        aggregate = getattr(payload, "aggregate", None)
        if self.problem is None or aggregate is None:
            return None
        with np.errstate(all="ignore"):
            return float(self.problem.read_off(aggregate, payload.penalty))

    def _reached(self, hop: int) -> str | None:
        for name, limit in self.limits.items():
            if hop >= limit:
                return name
        if self.stop.seconds is not None and time() - self.began >= self.stop.seconds:
            return "seconds"
        return None

    def visited(self, token: Token) -> None:
        """A token is here. Hops of its first pass, and those it makes while the server is gone, are no iterations."""
        hop = max(token.hop, 0)
        self._tokens[token.index] = token.t, hop, self.now()
        self.syncs = token.t
        hop = hop if self._most_hops is None else min(hop, self._most_hops)
        self.iteration = max(self.iteration, token.t * self.per_sync + hop)

    def called(self, t: int) -> None:
        """The server asks for what follows so many syncs or rounds."""
        self.syncs = t
        self.iteration = max(self.iteration, t * self.per_sync)

    def tokens(self) -> list[dict[str, Any]]:
        """The tokens that have been here, and how long ago."""
        return [
            {"token": index, "sync": t, "hop": hop, "seconds_ago": round(self.now() - when, 3)}
            for index, (t, hop, when) in sorted(self._tokens.items())
        ]

    def look(
        self, problem: Any, aggregate: Any, penalty: float, gap_part: Callable[[], float | None], ended: bool
    ) -> None:
        """Measure the objective, now and then and at the end, where an aggregate of all samples comes by."""
        now = self.now()
        if problem is None or (now - self._measured < MEASURE_EVERY and not ended):
            return
        self._measured, self.final = now, ended
        with np.errstate(all="ignore"):
            self.objective = float(problem.read_off(aggregate, penalty))
            self.gap_part = gap_part()

    def say(self) -> None:
        """Tell people how far it is, now and then."""
        now = self.now()
        if self.iteration < self._due or now - self._said < SAY_EVERY:
            return
        self._said, self._due = now, self._pace.next(self.iteration, near=False)
        told = "" if math.isnan(self.objective) else f", objective {self.objective:.6g}"
        self.log.say("progress", f"{self.iteration} iterations, {self.syncs} syncs{told}.", **self.facts())

    def seconds(self) -> float:
        """Since the run was agreed on."""
        return round(time() - self.began, 3)

    def facts(self) -> dict[str, Any]:
        """For logs and the operator."""
        objective = self.objective if math.isfinite(self.objective) else None
        part = self.gap_part if self.gap_part is not None and math.isfinite(self.gap_part) else None
        return {"iteration": self.iteration, "syncs": self.syncs, "objective": objective, "gap_part": part}


def _is_finite(payload: Any) -> bool:
    """Looked at where it ends. Before, it is noticed when it is sent."""
    values = [getattr(payload, name, None) for name in ("aggregate", "parameters")]
    return all(math.isfinite(np.sum(one)) for one in values if isinstance(one, np.ndarray))


def reached(payload: Any) -> int | None:
    """The iteration, as histories count them, that a party tells its monitor."""
    for name in ("hop", "iteration"):
        if hasattr(payload, name):
            return int(getattr(payload, name))
    return None
