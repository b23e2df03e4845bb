"""From the gaps that a pilot measured to the iteration at which it reaches the target.

Measured, if it got there. If not, the logarithm of the gap goes on falling as it did of late: over
the later half of the iterations, over the last quarter, and with the slowing between its quarters
kept up. The middle one of the three is the forecast, and all three the range. The lowest gap so far
counts, as extrapolation makes steps, and the slope is the median over pairs of points, which a few
of them do not change.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mtcd.core.arrays import Array

POINTS = 48  # of a curve, for the slopes
FEWEST = 4  # measurements, to say anything
FURTHEST = 1000.0  # times the iterations so far: no forecast beyond that
CLOSE, FAIR = 1.2, 2.0  # ranges that are called 'within 20%' and 'within 2x'
# how far one can see: in decades of the gap, as a part of those that are done. Slow tails show
# late.
NEAR, NOT_BEYOND = 0.5, 1.0

REACHED, STALLED, DIVERGED, UNKNOWN, ROUGH = (
    "reached",
    "stalls",
    "diverges",
    "too early to say",
    "rough",
)
WITHIN_20, WITHIN_2 = "within 20%", "within 2x"


@dataclass(frozen=True)
class Forecast:
    """Iterations to the target, infinite where it is never reached; and how sure that is."""

    iterations: float
    low: float
    high: float
    sure: str

    @property
    def arrives(self) -> bool:
        """Whether the forecast reaches the target."""
        return math.isfinite(self.iterations)

    @property
    def latest(self) -> float:
        """The most iterations that it may take; where no bound is known, the forecast."""
        if math.isfinite(self.high):
            return self.high
        return self.iterations

    def until_target(self, rate: float) -> float:
        """What ``rate`` per iteration comes to at the target; infinite if that is never reached."""
        if not self.arrives:
            return math.inf  # also where the rate is 0, which infinitely many iterations make NaN
        return rate * self.iterations


def forecast(
    iterations: Sequence[float],
    gaps: Sequence[float],
    target: float,
    diverged: bool = False,
    jumps: bool = False,
) -> Forecast:
    """When the gap gets to ``target``. A method that ``jumps``, by extrapolation, may do so at any
    time, or not again.

    >>> forecast(range(101), [0.9**t for t in range(101)], 1e-6)
    Forecast(iterations=131.1..., low=131.1..., high=131.1..., sure='within 20%')
    >>> forecast(range(41), [0.9**t for t in range(41)], 1e-6)  # not yet half way
    Forecast(iterations=131.1..., low=130.0..., high=inf, sure='rough')
    """
    if diverged:
        return _never(DIVERGED)
    at, gap = np.asarray(iterations, dtype=float), np.asarray(gaps, dtype=float)

    there = np.flatnonzero(gap <= target)
    if len(there):
        reached = float(at[there[0]])
        return Forecast(reached, reached, reached, REACHED)
    if len(at) < FEWEST or at[-1] <= 0:
        return _never(UNKNOWN)

    # the lowest so far: extrapolation raises the gap for some hops before it lowers it
    found = _extrapolate(at, np.minimum.accumulate(np.log(gap)), math.log(target))
    if jumps and found.sure == WITHIN_20:
        return _either_way(found, float(at[-1]))
    return found


def _never(why: str) -> Forecast:
    return Forecast(math.inf, math.inf, math.inf, why)


def _either_way(found: Forecast, now: float) -> Forecast:
    """Twice as many iterations to go, or half as many."""
    return Forecast(
        found.iterations, now + (found.low - now) / 2, now + (found.high - now) * 2, WITHIN_2
    )


def _extrapolate(at: Array, height: Array, goal: float) -> Forecast:
    now, to_go = float(at[-1]), float(height[-1]) - goal

    # late slopes only: the beginning falls faster than the end on most problems
    half, quarter, before = (
        _slope(at, height, a * now, b * now) for a, b in ((0.5, 1), (0.75, 1), (0.5, 0.75))
    )
    if to_go > FURTHEST * now * max(half, quarter):
        return _never(STALLED)

    ends = [
        now + _straight(to_go, half),
        now + _straight(to_go, quarter),
        now + _slowing(to_go, before, quarter, now / 4),
    ]
    best, low, high = float(np.median(ends)), min(ends), max(ends)
    if math.isinf(best):
        return _never(STALLED)

    # decades to go, as a part of those that are done; the floor keeps a flat curve from 0 / 0
    beyond = to_go / max(float(height[0] - height[-1]), to_go / FURTHEST)
    if beyond > NOT_BEYOND:
        return Forecast(best, low, math.inf, ROUGH)
    return Forecast(best, low, high, _confidence(max(high / best, best / low), beyond))


def _confidence(spread: float, beyond: float) -> str:
    """How sure a forecast is whose three ends differ by a factor of ``spread``."""
    if spread <= CLOSE and beyond <= NEAR:
        return WITHIN_20
    if spread <= FAIR:
        return WITHIN_2
    return ROUGH


def _straight(to_go: float, slope: float) -> float:
    """Iterations to go if the slope stays as it is."""
    if slope <= 0:
        return math.inf
    return to_go / slope


def _slope(at: Array, height: Array, start: float, end: float) -> float:
    """How much lower per iteration, between these iterations: the median over pairs of points."""
    x = np.linspace(start, end, POINTS)
    y = np.interp(x, at, height)
    # pairs at least a quarter of the way apart: the slope of close points is mostly noise
    near, far = np.triu_indices(POINTS, k=POINTS // 4)
    return float(np.median((y[near] - y[far]) / (x[far] - x[near])))


def _slowing(to_go: float, before: float, slope: float, length: float) -> float:
    """Iterations to go if the slope changes in every ``length`` of them by the same factor as in
    the last."""
    if slope <= 0:
        return math.inf
    if slope >= before:  # it does not slow down
        return to_go / slope

    factor = slope / before
    steps = to_go / (slope * length)  # without slowing
    # sum of factor, factor^2, ... reaches this many steps
    left = 1.0 - steps * (1.0 - factor) / factor
    if left <= 0:
        return math.inf  # the whole series stays above the target
    return length * math.log(left) / math.log(factor)
