"""The divergence rule, the same in every engine.

It imports nothing: the operator's commands know what has diverged, and load no numerics.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mtcd.methods.method import Method
    from mtcd.protocol.model import EpochLoss


DIVERGED = "diverged"
# a training whose objective is this many times that of the start has diverged ...
HOPELESS = 1e3
# ... and at the end it must not be above the start at all; mini-batches are noisy, and may be a
# little
WORST_END, WORST_NOISY_END = 1.0, 10.0
ROUNDING = 1e-6  # an end that is above by no more than this share is at the start


@dataclass(frozen=True)
class Divergence:
    """The rule for a training whose objective was ``start`` before the first update.

    ``worst_end``: at the end, the objective may be so many times that of the start; any number of
    times, if it is infinite. What is not finite has diverged at any time: an objective, or a
    parameter.
    """

    start: float
    worst_end: float

    def on_the_way(self, objective: float) -> bool:
        """Whether the training has diverged before its end."""
        # a model of noisy gradients is kept, whatever f is
        if math.isinf(self.worst_end):
            return not math.isfinite(objective)
        # Written so that NaN counts as diverged: no comparison with it holds.
        return not objective <= self._times(HOPELESS) or not math.isfinite(objective)

    def at_the_end(self, objective: float) -> bool:
        """Whether a training that ends with this objective has diverged."""
        most = self._times(self.worst_end) + ROUNDING * abs(self.start)
        return self.on_the_way(objective) or objective > most

    def _times(self, factor: float) -> float:
        """A multiple of the start, which may be negative with custom losses."""
        return self.start + (factor - 1) * abs(self.start)


def allowing(worst_end: float, start: float, end: float) -> float:
    """The multiple of this start that is allowed at the end, such that an objective of ``end`` is
    allowed too.

    >>> allowing(1.0, start=2.0, end=6.0), allowing(1.0, start=-2.0, end=6.0), allowing(1.0, start=2.0, end=1.0)
    (3.0, 5.0, 1.0)
    """
    above = end - start
    if above <= 0:
        return worst_end
    # No multiple of 0 is above it: any end is allowed.
    if not start:
        return math.inf
    return worst_end * (1.0 + above / abs(start))


def looks_hopeless(seen: EpochLoss | None) -> bool:
    """Whether a split network has diverged on the way, in any engine, by what one party of a
    federation sees.

    The objective on all samples takes the networks of all parties, so it is left for the end.
    """
    return seen is not None and Divergence(seen.start, WORST_NOISY_END).on_the_way(seen.loss)


def worst_end_of(method: Method, linear: bool) -> float:
    """The allowed multiple of the start at the end: mini-batches and networks are noisy.

    A model of gradients with noise is kept in any case: the budget of its privacy is spent, and
    whether f, which is measured without noise, has grown too much would tell more than the budget
    counts.
    """
    if method.conditions.noisy:
        return math.inf
    if linear and method.batch is None:
        return WORST_END
    return WORST_NOISY_END
