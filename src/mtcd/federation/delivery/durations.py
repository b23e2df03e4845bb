"""How long commits took, by upper bound.

Apart from the journal: who only reads counts, as the command for the status does, imports no NumPy.
"""

from __future__ import annotations

from bisect import bisect_left

COMMIT_BOUNDS_SECONDS = (
    0.0001,
    0.00025,
    0.0005,
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
)


class Durations:
    """How many events took how long: counts by upper bound, the last without one, and the sum."""

    def __init__(self, bounds: tuple[float, ...] = COMMIT_BOUNDS_SECONDS) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.seconds = 0.0

    def add(self, seconds: float) -> None:
        """Count a commit that took so many seconds."""
        self.counts[bisect_left(self.bounds, seconds)] += 1
        self.seconds += seconds
