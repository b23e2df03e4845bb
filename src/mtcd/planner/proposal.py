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
        compute, wire = (
            pilot.compute_rate * forecast.iterations,
            pilot.wire_rate * forecast.iterations,
        )
        return Proposal(
            method=pilot.method,
            own=pilot.own,
            forecast=forecast,
            gap=min((row.gap for row in pilot.rows if row.gap is not None), default=None),
            messages=pilot.messages(),
            floats=pilot.floats(),
            costs=pilot.task.costs,
            cost=pilot.cost_rate * forecast.iterations if forecast.arrives else math.inf,
            compute_seconds=compute if forecast.arrives else math.inf,
            wall_seconds=None
            if pilot.task.links is None
            else wire + compute
            if forecast.arrives
            else math.inf,
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
        return self.cost if self.wall_seconds is None else self.wall_seconds

    def cost_at(self, ratio: float) -> float:
        """The cost at the target, with another ``ratio``."""
        if not self.arrives:
            return math.inf
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
        given = self.method.gradient_steps and not self.method.chooses_steps
        return f"{said}, η={resolved_stepsize(self.method):.2g}" if given else said

    def summary(self) -> dict[str, Any]:
        """Plain values; null where the target is never reached."""
        low, high = self.range_of(self.objective)
        return {
            "method": self.label(),
            "kind": self.method.kind,
            "own": self.own,
            "cost": _finite(self.cost),
            "low": _finite(low),
            "high": _finite(high),
            "sure": self.forecast.sure,
            "iterations": _finite(self.forecast.iterations),
            "messages": {link: _finite(count) for link, count in self.messages.items()}
            if self.arrives
            else None,
            "floats": {link: _finite(count) for link, count in self.floats.items()}
            if self.arrives
            else None,
            "compute_seconds": _finite(self.compute_seconds),
            "wall_seconds": None if self.wall_seconds is None else _finite(self.wall_seconds),
            "gap": self.gap,
        }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
