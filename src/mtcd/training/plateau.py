"""The plateau rule: a training ends when a value has stopped improving."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mtcd.core.checks import check_number, check_whole
from mtcd.protocol.codec.extensions import Extension, declare
from mtcd.protocol.codec.payloads import Nested, stored
from mtcd.protocol.codec.types import Count, Number
from mtcd.training.columns import Best, check_column, value_of
from mtcd.training.history import Measurement

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
        check_whole("stop.plateau.patience", self.patience, least=1)
        check_number("stop.plateau.min_improvement", self.min_improvement)

    def next(self, iteration: int, epoch: int) -> int:
        """The end of the current window, where there must be a measurement."""
        return (iteration // (self.patience * epoch) + 1) * self.patience * epoch

    def after(
        self, seen: Windows | None, row: Measurement, epoch: int
    ) -> tuple[Windows | None, bool]:
        """What to remember after this measurement, and whether it ends a window without an
        improvement."""
        if not self.is_due(seen, row.iteration, epoch):
            return seen, False

        value = value_of(row, self.on)
        if value is None:  # a metric is not in every measurement
            return seen, False
        return self.end_window(seen, row.iteration, value, epoch)

    def is_due(self, seen: Windows | None, iteration: int, epoch: int) -> bool:
        """Whether a window has ended at this iteration, or since the last one that was seen."""
        return seen is None or iteration // (self.patience * epoch) > seen.ended

    def end_window(
        self, seen: Windows | None, iteration: int, value: float, epoch: int
    ) -> tuple[Windows, bool]:
        """What to remember after this value at the end of a window, and whether the plateau is
        reached."""
        before = None if seen is None else seen.best
        best = Best(self.on, self.min_improvement, before)
        improved = best.improves(value)
        assert best.value is not None
        return Windows(iteration // (self.patience * epoch), best.value), not improved


class PlateauHistory:
    """The rule on a history that grows: every measurement is looked at once."""

    def __init__(self, rule: Plateau, epoch: int) -> None:
        self.rule, self.epoch = rule, epoch
        self._seen: Windows | None = None
        self._counted = 0

    def reached(self, earlier: Sequence[Measurement], row: Measurement) -> bool:
        """Whether this measurement, after the earlier ones, ends a window without an
        improvement."""
        check_column(self.rule.on, len(earlier), row)
        for one in earlier[self._counted :]:
            self._seen, _ = self.rule.after(self._seen, one, self.epoch)
        self._counted = len(earlier)
        return self.rule.after(self._seen, row, self.epoch)[1]
