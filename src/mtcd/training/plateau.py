"""The plateau rule: a training ends when a value has stopped improving."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from mtcd.core.checks import check_number, check_whole
from mtcd.protocol.codec.extensions import Extension, declare
from mtcd.protocol.codec.payloads import Count, Nested, Number
from mtcd.protocol.codec.stored import stored
from mtcd.training.history import Best, Measurement, check_column, value_of
from mtcd.training.rules import Keeper, Kept, TrainingFacts

PLATEAU = "plateau"
"""The status of a training that the rule has ended."""


@stored
@dataclass(frozen=True, slots=True)
class Windows:
    """What the rule remembers: how many windows have ended, and the best value so far."""

    ended: Count
    best: Number


WINDOWS = declare(Extension(6, "windows", Nested(Windows), always=False))
"""The slot of a lone token in a federation that may end on a plateau: each window may end at
another party. Like the penalty, it is not counted as sent."""


@dataclass(frozen=True)
class Plateau:
    """Reached when ``patience`` epochs have not improved the best value of the column ``on`` by
    more than the share ``min_improvement`` of it.

    Values are compared at the ends of windows of ``patience`` epochs, which are always measured. So
    the end does not depend on the clock or on how often the training is measured. An epoch is that
    of ``Stop.epochs``.
    """

    on: str = "objective"
    patience: int = 10
    min_improvement: float = 1e-4

    def __post_init__(self) -> None:
        check_whole("stop.plateau.patience", self.patience)
        check_number("stop.plateau.min_improvement", self.min_improvement)

    def next(self, iteration: int, epoch: int) -> int:
        """The end of the current window, where there must be a measurement."""
        return (iteration // (self.patience * epoch) + 1) * self.patience * epoch

    def is_due(self, seen: Windows | None, iteration: int, epoch: int) -> bool:
        """Whether a window has ended at this iteration, or since the last one that was seen."""
        # Since the last one that was seen: a lone token may have been elsewhere at its end.
        return seen is None or iteration // (self.patience * epoch) > seen.ended

    def end_window(
        self, seen: Windows | None, iteration: int, value: float, epoch: int
    ) -> tuple[Windows, bool]:
        """What to remember after this value at the end of a window, and whether the plateau is
        reached."""
        before = None
        if seen is not None:
            before = seen.best
        best = Best(self.on, self.min_improvement, before)
        improved = best.improves(value)
        assert best.value is not None
        return Windows(iteration // (self.patience * epoch), best.value), not improved


class PlateauRule:
    """The rule during one training.

    Parameters
    ----------
    rule : Plateau
        Its settings.
    epoch : int
        The iterations of an epoch.
    start : float, optional
        The value before the first update, where no moment has it: at a party of a federation.
    """

    extension = WINDOWS

    def __init__(self, rule: Plateau, epoch: int, start: float | None = None) -> None:
        self.rule, self.epoch = rule, epoch
        self._first: Windows | None = None
        if start is not None:
            self._first = Windows(0, start)

    def next_check(self, iteration: int) -> float:
        """The end of the current window."""
        return self.rule.next(iteration, self.epoch)

    def reached(self, now: TrainingFacts) -> str | None:
        """The status, if a window has ended without an improvement."""
        seen = now.keeper.slots.get(WINDOWS.name, self._first)
        if not self.rule.is_due(seen, now.iteration, self.epoch):
            return None
        # Not known at this moment, such as a metric: the window ends at the next that is.
        value = now.value(self.rule.on)
        if value is None:
            return None
        windows, ended = self.rule.end_window(seen, now.iteration, value, self.epoch)
        now.keeper.put(WINDOWS.name, windows)
        if ended:
            return PLATEAU
        return None


class PlateauHistory:
    """The rule on a history that grows. Every earlier measurement is looked at once; the last may be
    asked about again."""

    def __init__(self, rule: Plateau, epoch: int) -> None:
        self.settings = rule
        self._rule = PlateauRule(rule, epoch)
        self._kept = Kept()
        self._counted = 0

    def reached(self, earlier: Sequence[Measurement], row: Measurement) -> str | None:
        """The status, if this measurement, after the earlier ones, ends a window without an
        improvement."""
        check_column(self.settings.on, len(earlier), row)
        # rows of a training that is resumed, or those since the last call
        for one in earlier[self._counted :]:
            self._rule.reached(moment_of(one, self._kept))
        self._counted = len(earlier)
        # On a copy of what is kept: this measurement may be taken back, or asked about again.
        return self._rule.reached(moment_of(row, Kept(self._kept.slots)))


def moment_of(row: Measurement, keeper: Keeper) -> TrainingFacts:
    """A measurement as rules see it."""
    return TrainingFacts(row.iteration, partial(value_of, row), keeper)
