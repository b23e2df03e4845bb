"""Rules that end a training.

The same objects are asked in one process, about every measurement (``observer.py``), and at a party
of a federation, about what it reports to the monitor (``mtcd.federation.node.watch``). A party has
no ledger of all parties, so a limit on the cost is one on iterations there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from mtcd.protocol.codec.extensions import Extension


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
