"""The step sizes of MTCD and STCD: which of the theorems' limits holds for which settings, and how they
change from epoch to epoch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mtcd.core.checks import check_number, check_whole
from mtcd.core.errors import check_known
from mtcd.methods.mtcd.combine import RULES
from mtcd.methods.mtcd.features import ACCELERATIONS
from mtcd.protocol.batches import Batches
from mtcd.theory.stepsize import (
    Smoothness,
    StepsizeRule,
    StepsizeRules,
    descent_limit,
    theorem_limit,
)

if TYPE_CHECKING:
    from mtcd.methods.mtcd.mtcd import MTCD


class TokenStepsizes(StepsizeRules):
    """The step sizes of MTCD and STCD on one problem."""

    def __init__(self, method: MTCD, smoothness: Smoothness) -> None:
        self._method, self._smoothness = method, smoothness

    @property
    def limit(self) -> StepsizeRule:
        method, rule = self._method, RULES[self._method.combine_rule]
        # Without a server no sync adds changes up: what holds is that no single step raises f.
        if method.hops is None or (rule.never_raises and not rule.covered):
            return descent_limit(self._smoothness)

        # Named in the rule's text: where a theorem does not cover all settings, the user is told
        # which.
        beyond = []
        if not rule.covered and method.tokens != 1:
            beyond.append(f"combine: {method.combine_rule}")
        if method.acceleration:
            beyond.append("acceleration")
        Q, batch = method.local_updates, method.batch
        return theorem_limit(self._smoothness, method.hops, Q, batch, beyond)

    @property
    def auto(self) -> StepsizeRule:
        method, rule = self._method, RULES[self._method.combine_rule]
        if method.chooses_steps and method.acceleration is not None:
            return ACCELERATIONS[method.acceleration].first_stepsize(self._smoothness)

        # With the full batch no visit raises f, and then no sync does either: the steps may be
        # larger than those for which the theorems prove a rate.
        if method.batch is None and ((rule.never_raises and rule.covered) or method.tokens == 1):
            return descent_limit(self._smoothness, averaged=method.tokens not in (None, 1))
        return self.limit


KINDS = ("step", "exponential", "cosine")


@dataclass(frozen=True)
class Schedule:
    """The factor of the step size by epoch, a pass over all samples.

    With the full batch every iteration is an epoch.

    Parameters
    ----------
    kind : 'step', 'exponential' or 'cosine', default 'step'
        'step': multiply by ``factor`` after every ``every`` epochs (the paper halves every 20).
        'exponential': by ``factor`` per ``every`` epochs, continuously. 'cosine': from 1 to
        ``factor`` in ``every`` epochs, then constant.
    every : int, default 20
        The epochs of a step.
    factor : float, default 0.5
        What a step multiplies by.
    warmup : int, default 0
        Epochs at the start in which the step size increases in equal steps.

    Examples
    --------
    >>> Schedule(every=20).at(45)
    0.25
    """

    kind: str = "step"
    every: int = 20
    factor: float = 0.5
    warmup: int = 0

    def __post_init__(self) -> None:
        check_known(self.kind, KINDS, f"method.schedule.kind: nothing is called {self.kind!r};")
        check_whole("method.schedule.every", self.every)
        check_whole("method.schedule.warmup", self.warmup, least=0)
        # A cosine may go down to 0; the other kinds would stay there for ever.
        above = None if self.kind == "cosine" else 0
        check_number("method.schedule.factor", self.factor, above=above)

    def at(self, epoch: int) -> float:
        """The factor in this epoch, counted from 0."""
        # Warm-up multiplies: after it, the schedule is where it would be without.
        return self._kind_at(epoch) * min(1.0, (epoch + 1) / (self.warmup + 1))

    def _kind_at(self, epoch: int) -> float:
        if self.kind == "step":
            return self.factor ** (epoch // self.every)
        if self.kind == "exponential":
            return float(self.factor ** (epoch / self.every))
        down = (1 + math.cos(math.pi * min(epoch / self.every, 1.0))) / 2
        return self.factor + (1 - self.factor) * down


def scheduled(stepsize: float, schedule: Schedule | None, t: int, batches: Batches) -> float:
    """The step size of iteration t."""
    if schedule is None:
        return stepsize
    return stepsize * schedule.at(t // batches.per_epoch)
