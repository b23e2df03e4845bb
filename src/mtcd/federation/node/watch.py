"""The progress of a run at one party: stop and divergence rules, measurements for logs and the
operator.

The plateau rule is applied here too, at a party that reports to the monitor, and what it remembers
survives crashes. Without a server each window may end at another client, so the token carries it: a
token that is regenerated continues with the values of its own history. With a server, the server
keeps it, in the same commit as the sync.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from time import monotonic, time
from typing import Any

import numpy as np

from mtcd.federation.node.log import Log
from mtcd.methods.method import Method
from mtcd.network.topology import Network
from mtcd.protocol.codec.extensions import extrapolates
from mtcd.protocol.ledger.costs import UNIT, Costs, Sizes
from mtcd.protocol.model import EpochLoss
from mtcd.protocol.token import Token
from mtcd.training.divergence import DIVERGED, Divergence, looks_hopeless
from mtcd.training.pace import Growing, Pace
from mtcd.training.plateau import Plateau, PlateauRule
from mtcd.training.rules import Keeper, Kept, TrainingFacts
from mtcd.training.stop import Stop

MEASURE_SECONDS = 0.5
LOG_SECONDS = 5.0
Report = Callable[[Any, str | None], str | None]


class Watch:
    """Watches the reports of a party to its monitor, and the tokens that visit it."""

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
        """Reads the objective off an aggregate of all samples, and the divergence rule; None if
        unknown here."""
        self._finite = finite
        """Whether the parameters that this party holds are finite."""
        # Growing: a check of the loss on all samples must not cost more than the training.
        self._seen = seen
        self._check_pace = pace or Growing()
        """The loss from which divergence of a split network is detected on the way, and the pace of
        the checks."""
        self.iteration, self.syncs, self.objective = 0, 0, math.nan
        self.gap_part: float | None = None
        self.final = False
        """Whether the objective is that of the end."""
        self.began = time()
        """The time of the agreement, also after a restart."""
        timeline = method.timeline()
        self.per_sync = timeline.hops_per_sync
        self._most_hops: int | None = getattr(method, "hops", None)
        cost = method.prices(network, tokens).iteration(costs, sizes)
        self.limits = stop.rules_in_iterations(
            timeline.epoch(samples), self.per_sync, cost, opening_cost
        )
        # a limit on iterations needs not be asked before; one on time may be reached at any report
        first = [rule.next_check(0) for rule in self.limits]
        self._asked_from = 0.0 if math.inf in first else min(first, default=math.inf)
        self._plateau: PlateauRule | None = None
        if isinstance(stop.plateau, Plateau) and problem is not None and rule is not None:
            self._plateau = PlateauRule(stop.plateau, timeline.epoch(samples), rule.start)
        self._plateau_objective: Callable[[Any], float | None] = self._objective
        self._epoch = timeline.epoch(samples)
        self._tokens: dict[int, tuple[int, int, float]] = {}
        self._pace, self._due, self._measured, self._logged = Growing(), 0.0, 0.0, 0.0
        self._next_check = 0.0
        self.now: Callable[[], float] = monotonic
        """The clock of the loop."""
        self.report: Report | None = None
        """Called with each report to the monitor, and the status if it ends the run; returns the
        status."""

    def limit(self, payload: Any, keeper: Keeper | None = None) -> str | None:
        """The status if this report ends the run, or None. ``keeper``: of what the plateau rule
        remembers."""
        hop = reached(payload)
        if hop is None:
            return None

        self.iteration, self.syncs = hop, getattr(payload, "t", 0)
        # A token carries what the rule remembers; with a server, that keeps it.
        kept = keeper
        if isinstance(payload, Token):
            kept = payload
        now = TrainingFacts(hop, partial(self._value, payload, hop), kept or Kept())
        status = None
        # The penalty of a diverged model is the first number that shows it, and costs nothing to
        # look at.
        if not math.isfinite(getattr(payload, "penalty", 0.0)):
            status = DIVERGED
        if status is None and hop >= self._asked_from:
            status = self._reached(now)
        if status is None and hop >= self._next_check:
            status = self._diverged_on_the_way(payload, hop)
        if status is None and self._plateau is not None and keeper is not None:
            status = self._plateau.reached(now)

        if self.report is not None:
            status = self.report(payload, status)
        return status

    def _diverged_on_the_way(self, payload: Any, hop: int) -> str | None:
        self._next_check = self._check_pace.next(hop, near=False)
        if self.rule is not None:
            objective = self._objective(payload)
            if objective is not None and self.rule.on_the_way(objective):
                return DIVERGED
        if looks_hopeless(self._seen()):
            return DIVERGED
        return None

    def _value(self, payload: Any, hop: int, column: str) -> float | None:
        """What is known here of a report, by column of the history."""
        if column == "iteration":
            return hop
        if column == "seconds":
            return time() - self.began
        if column == "objective":
            return self._plateau_objective(payload)
        return None

    def follow(self, objective: Callable[[Any], float | None], start: float) -> None:
        """Apply the plateau rule to an objective that no aggregate tells: the key holder knows it,
        and logs it never.

        ``start``: f before the first update, or more.
        """
        if isinstance(self.stop.plateau, Plateau):
            self._plateau = PlateauRule(self.stop.plateau, self._epoch, start)
            self._plateau_objective = objective

    def judge(self, payload: Any, status: str) -> str:
        """The status of an end at this report: diverged, if the objective is known here and shows
        it."""
        f = self._objective(payload)
        known = self.rule is not None and f is not None and self.rule.at_the_end(f)
        if known or not _is_finite(payload) or not self._finite():
            return DIVERGED
        return status

    def shows_divergence(self, payload: Any) -> bool:
        """Whether a payload of the server at the start of an iteration shows that training has
        diverged."""
        if self.rule is None or self.problem is None:
            return False

        # Z^t, before any update; accelerations mix aggregates, and check f themselves
        if isinstance(payload, Token):
            starts = self._most_hops is not None and payload.hop == 0
            is_full = starts and not extrapolates(payload.slots)
        else:
            is_full = payload.opens_round
        if not is_full:
            return False
        with np.errstate(all="ignore"):
            return self.rule.on_the_way(
                self.problem.read_off(payload.aggregate, getattr(payload, "penalty", 0.0))
            )

    def _objective(self, payload: Any) -> float | None:
        aggregate = getattr(payload, "aggregate", None)
        if self.problem is None or aggregate is None:
            return None
        with np.errstate(all="ignore"):
            return float(self.problem.read_off(aggregate, payload.penalty))

    def _reached(self, now: TrainingFacts) -> str | None:
        for rule in self.limits:
            status = rule.reached(now)
            if status is not None:
                return status
        return None

    def visited(self, token: Token) -> None:
        """Count a visit. Hops of the first pass, and speculative ones while the server is down, are
        no iterations."""
        hop = max(token.hop, 0)
        self._tokens[token.index] = token.t, hop, self.now()
        self.syncs = token.t
        if self._most_hops is not None:
            hop = min(hop, self._most_hops)
        self.iteration = max(self.iteration, token.t * self.per_sync + hop)

    def requested(self, t: int) -> None:
        """Count a request of the server for an upload after ``t`` syncs or rounds."""
        self.syncs = t
        # Never back: a request that is repeated after a restart counts an older sync.
        self.iteration = max(self.iteration, t * self.per_sync)

    def tokens(self) -> list[dict[str, Any]]:
        """The tokens that have visited this party, and the seconds since then."""
        return [
            {"token": index, "sync": t, "hop": hop, "seconds_ago": round(self.now() - when, 3)}
            for index, (t, hop, when) in sorted(self._tokens.items())
        ]

    def look(
        self,
        payload: Any,
        problem: Any = None,
        gap_part: Callable[[], float | None] = lambda: None,
        ended: bool = False,
    ) -> None:
        """Measure the objective and log the progress, both at intervals.

        Parameters
        ----------
        payload
            A token, or a report to the monitor.
        problem
            Reads the objective off its aggregate, which is one of all samples; None: nothing is
            measured.
        gap_part
            This party's part of the gap, where it can tell.
        ended
            Whether the training has ended: then it is measured in any case.
        """
        now = self.now()
        is_due = ended or now - self._measured >= MEASURE_SECONDS
        if problem is not None and is_due:
            self._measured, self.final = now, ended
            with np.errstate(all="ignore"):
                self.objective = float(problem.read_off(payload.aggregate, payload.penalty))
                self.gap_part = gap_part()

        if self.iteration >= self._due and now - self._logged >= LOG_SECONDS:
            self._logged, self._due = now, self._pace.next(self.iteration, near=False)
            self._log_progress()

    def _log_progress(self) -> None:
        objective = ""
        if not math.isnan(self.objective):
            objective = f", objective {self.objective:.6g}"
        self.log.say(
            "progress",
            f"{self.iteration} iterations, {self.syncs} syncs{objective}.",
            **self.facts(),
        )

    def seconds(self) -> float:
        """The seconds since the agreement."""
        return round(time() - self.began, 3)

    def facts(self) -> dict[str, Any]:
        """The measurements, for logs and the operator."""
        # JSON has no NaN and no infinity.
        objective, part = None, None
        if math.isfinite(self.objective):
            objective = self.objective
        if self.gap_part is not None and math.isfinite(self.gap_part):
            part = self.gap_part
        return {
            "iteration": self.iteration,
            "syncs": self.syncs,
            "objective": objective,
            "gap_part": part,
        }


def _is_finite(payload: Any) -> bool:
    """Whether the arrays of a payload are finite. Before the end, sending checks it."""
    values = [getattr(payload, name, None) for name in ("aggregate", "parameters")]
    return all(math.isfinite(np.sum(one)) for one in values if isinstance(one, np.ndarray))


def reached(payload: Any) -> int | None:
    """The iteration, as histories count it, of a report to the monitor."""
    for name in ("hop", "iteration"):
        if hasattr(payload, name):
            return int(getattr(payload, name))
    return None
