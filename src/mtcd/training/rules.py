"""Rules that end a training.

The same objects are asked in one process, about every measurement (``observer.py``), and at a party
of a federation, about what it reports to the monitor (``mtcd.federation.node.watch``). A party has
no ledger of all parties, so a limit on the cost is one on iterations there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from mtcd.protocol.codec.extensions import Extension

if TYPE_CHECKING:
    from mtcd.methods.method import Method
    from mtcd.protocol.model import EpochLoss


class Keeper(Protocol):
    """Keeps what rules remember, by the names of their slots: a token, which takes it along, or the
    party at which all reports are made."""

    slots: Mapping[str, Any]

    def put(self, name: str, value: Any) -> None:
        """Keep this value, in place of an earlier one."""


class Kept:
    """A keeper in one process."""

    def __init__(self, slots: Mapping[str, Any] | None = None) -> None:
        self.slots: Mapping[str, Any] = slots or {}

    def put(self, name: str, value: Any) -> None:
        """Keep this value, in place of an earlier one."""
        self.slots = {**self.slots, name: value}


class TrainingFacts(NamedTuple):
    """What a rule may know of a training.

    Parameters
    ----------
    iteration : int
        Hops per token.
    value : callable
        The value in a column of the history, or None if it is not known at this moment. It is
        called only where a rule needs it, because f takes a while.
    keeper : Keeper
        What rules have remembered.
    """

    iteration: int
    value: Callable[[str], float | None]
    keeper: Keeper


class StopRule(Protocol):
    """A condition that ends a training: asked at iterations that it chooses, on one process or at
    the party of a federation that sees the token."""

    @property
    def extension(self) -> Extension | None:
        """The slot of a lone token in which it remembers something, if it does."""

    def next_check(self, iteration: int) -> float:
        """The next iteration at which it must be asked."""

    def reached(self, now: TrainingFacts) -> str | None:
        """The status of the training, if it ends at this moment."""


@dataclass(frozen=True)
class Limit:
    """Ends a training with ``status``, once the value in ``column`` is at least ``most``."""

    status: str
    column: str
    most: float
    extension = None

    def next_check(self, iteration: int) -> float:
        """At the limit, if it is one on iterations."""
        if self.column != "iteration":
            return math.inf
        return self.most

    def reached(self, now: TrainingFacts) -> str | None:
        """The status, at and after the limit."""
        value = now.value(self.column)
        if value is None or value < self.most:
            return None
        return self.status


@dataclass(frozen=True)
class Gap:
    """Ends a training that is within this relative gap of the optimum."""

    gap: float
    extension = None

    def next_check(self, iteration: int) -> float:
        """Whenever there is a measurement."""
        return math.inf

    def reached(self, now: TrainingFacts) -> str | None:
        """'converged', within the gap."""
        gap = now.value("gap")
        if gap is None or gap > self.gap:
            return None
        return "converged"


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
