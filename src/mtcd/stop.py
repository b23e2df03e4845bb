"""When to stop: the first limit that is reached."""

from __future__ import annotations

import math
from dataclasses import dataclass

from mtcd.checks import check_number, check_whole
from mtcd.errors import ConfigError
from mtcd.history import Measurement

FOR_EVER = 10_000_000


@dataclass(frozen=True)
class Stop:
    """Stop at a relative ``gap`` (f* is then computed first), or after so many ``iterations`` (hops per
    token), ``seconds`` of training, or so much communication ``cost``.

    A gap alone gives up after ten million iterations. A training ends at the first moment, at or after
    the limit, when the parties hold one model.
    """

    gap: float | None = None
    iterations: int | None = None
    seconds: float | None = None
    cost: float | None = None

    def __post_init__(self) -> None:
        limits = {name: getattr(self, name) for name in ("gap", "iterations", "seconds", "cost")}
        if self.iterations is not None:
            check_whole("stop.iterations", self.iterations, least=0)
        for name in ("gap", "seconds", "cost"):
            if limits[name] is not None:
                check_number(f"stop.{name}", limits[name])
        if all(value is None for value in limits.values()):
            raise ConfigError("stop: give at least one of gap, iterations, seconds, cost.")
        if self.iterations is self.seconds is self.cost is None:
            object.__setattr__(self, "iterations", FOR_EVER)  # a gap may never be reached

    def reached(self, now: Measurement) -> str | None:
        """Which limit has been reached: the status of the run, or None."""
        if self.gap is not None and now.gap is not None and now.gap <= self.gap:
            return "converged"
        for name, value in (("iterations", now.iteration), ("seconds", now.seconds), ("cost", now.cost)):
            limit = getattr(self, name)
            if limit is not None and value >= limit:
                return name
        return None

    def nearly(self, now: Measurement) -> bool:
        """Whether the gap asked for is close."""
        return self.gap is not None and now.gap is not None and now.gap <= 1.05 * self.gap

    def fraction(self, now: Measurement, first_gap: float | None) -> float:
        """How far along the nearest limit is, for a progress bar: 0 to 1."""
        parts = [0.0]
        for name, value in (("iterations", now.iteration), ("seconds", now.seconds), ("cost", now.cost)):
            limit = getattr(self, name)
            parts.append(value / limit if limit else 0.0)
        if self.gap and now.gap and first_gap and now.gap > 0 and first_gap > self.gap:
            parts.append(math.log(first_gap / now.gap) / math.log(first_gap / self.gap))
        return min(max(parts), 1.0)
