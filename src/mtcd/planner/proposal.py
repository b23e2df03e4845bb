"""A candidate in reports: its settings, and its expected cost."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from mtcd.methods.method import Method, resolved_stepsize
from mtcd.planner.forecast import REACHED, Forecast
from mtcd.planner.pilots import Pilot
from mtcd.protocol.ledger.costs import Costs


@dataclass(frozen=True, eq=False)
class Proposal:
    """The expected cost at the target, from a pilot. Infinite if the target is never reached."""

    method: Method
    own: bool
    forecast: Forecast
    gap: float | None
    """The lowest that the pilot measured."""
    messages: dict[str, float]
    """By kind of link."""
    floats: dict[str, float]
    """The numbers in them."""
    costs: Costs
    cost: float
    compute_seconds: float
    wall_seconds: float | None
    """Wire and computing together; None without links."""
    status: str | None

    @staticmethod
    def of(pilot: Pilot) -> Proposal:
        """From what was measured."""
        forecast = pilot.forecast
        compute = forecast.until_target(pilot.compute_rate)
        wall = None
        if pilot.task.links is not None:
            wall = forecast.until_target(pilot.wall_rate)

        return Proposal(
            method=pilot.method,
            own=pilot.own,
            forecast=forecast,
            gap=pilot.lowest_gap,
            messages=pilot.messages(),
            floats=pilot.floats(),
            costs=pilot.task.costs,
            cost=forecast.until_target(pilot.cost_rate),
            compute_seconds=compute,
            wall_seconds=wall,
            status=pilot.status,
        )

    @property
    def arrives(self) -> bool:
        """Whether it is expected to reach the target."""
        return self.forecast.arrives

    @property
    def reached(self) -> bool:
        """Whether the pilot did."""
        return self.forecast.sure == REACHED

    @property
    def objective(self) -> float:
        """What the planner minimises: the cost, or with links the time."""
        if self.wall_seconds is None:
            return self.cost
        return self.wall_seconds

    def cost_at(self, ratio: float) -> float:
        """The cost at the target, with another ``ratio``."""
        if not self.arrives:
            return math.inf
        # what is sent does not depend on prices: the same messages at another price
        return replace(self.costs, ratio=ratio).of(self.costs.priced(self.messages, self.floats))

    def range_of(self, value: float) -> tuple[float, float]:
        """The least and the most that it may be, if it is proportional to the iterations."""
        if not self.arrives:
            return math.inf, math.inf
        at = self.forecast
        if not at.iterations:  # the start is at the target
            return value, value
        return value * at.low / at.iterations, value * at.high / at.iterations

    def label(self) -> str:
        """Settings in a few words, with the step size."""
        said = self.method.describe()
        if not self.method.gradient_steps or self.method.chooses_steps:
            return said  # no step size that anybody set
        return f"{said}, η={resolved_stepsize(self.method):.2g}"

    def summary(self) -> dict[str, Any]:
        """Plain values; null where the target is never reached."""
        # JSON knows no infinity: it is null there
        low, high = self.range_of(self.objective)
        return {
            "method": self.label(),
            "kind": self.method.kind,
            "own": self.own,
            "cost": finite_or_none(self.cost),
            "low": finite_or_none(low),
            "high": finite_or_none(high),
            "sure": self.forecast.sure,
            "iterations": finite_or_none(self.forecast.iterations),
            "messages": self._at_target(self.messages),
            "floats": self._at_target(self.floats),
            "compute_seconds": finite_or_none(self.compute_seconds),
            "wall_seconds": finite_or_none(self.wall_seconds),
            "gap": self.gap,
        }

    def _at_target(self, by_link: dict[str, float]) -> dict[str, float | None] | None:
        """Counts at the target. Where that is never reached, they are those of the pilot so far,
        which nobody should take for a prediction."""
        if not self.arrives:
            return None
        return {link: finite_or_none(count) for link, count in by_link.items()}


def finite_or_none(value: float | None) -> float | None:
    """The value for JSON, which has neither infinity nor NaN."""
    if value is None or not math.isfinite(value):
        return None
    return value
