"""The columns of a measurement that callbacks look at: numbers of the training, and metrics."""

from __future__ import annotations

from mtcd.core.errors import ConfigError
from mtcd.models.metrics import METRICS
from mtcd.protocol.model import MOST_MEASURED
from mtcd.training.history import PARTS, PLAIN, Measurement


def numbers(row: Measurement) -> dict[str, float]:
    """The numbers of a measurement by column, without those that are not known."""
    return {name: value for name, value in row.row().items() if value is not None}


def value_of(row: Measurement, column: str) -> float | None:
    """The value in a column; None if it was not measured at this moment."""
    return numbers(row).get(column)


def higher_is_better(column: str) -> bool:
    """Whether a larger number in this column is better."""
    # asked at every measurement, and looking for metrics in plugins takes a while
    if column in PLAIN:
        return False
    name = column
    part, _, metric = column.partition("_")
    if part in PARTS and metric:
        name = metric
    return name in METRICS and METRICS[name].higher_is_better


class Best:
    """The best value in a column so far. An improvement is larger than the share ``by`` of the best
    value before."""

    def __init__(self, column: str, by: float = 0.0, value: float | None = None) -> None:
        self.column, self.by, self.higher = column, by, higher_is_better(column)
        self.value = value

    def improves(self, value: float) -> bool:
        """Whether this value is an improvement; it is the best then."""
        best = self.value
        if best is not None:
            gained = best - value
            if self.higher:
                gained = value - best
            if not gained > self.by * abs(best):  # of NaN nothing is larger
                return False

        self.value = value
        return True


def check_column(column: str, rows: int, row: Measurement) -> None:
    """Reject a column that the first measurement does not have."""
    # At the first measurement: a wrong name ends the training at once, not after hours of patience.
    if rows == 0 and value_of(row, column) is None:
        # seconds are left out: what depends on the clock should decide nothing
        known = ", ".join(sorted({*numbers(row)} - {"seconds"}))
        raise ConfigError(
            f"There is no column {column!r} in the history of this training. It has {known}."
        )


def has_begun(first: Measurement, row: Measurement) -> bool:
    """Whether the model has changed since the first measurement: parties with trees measure their
    gains before they grow the first tree, and rules that end a training must not end it there.
    """
    # Few hops are enough to measure all gains; beyond them a model that stays as it is has stopped.
    return row.iteration >= MOST_MEASURED or row.objective != first.objective
