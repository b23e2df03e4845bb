"""The measurements of a training: one row each."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mtcd.core.arrays import Array
from mtcd.core.errors import ConfigError
from mtcd.core.mappings import attributes, without_none
from mtcd.core.rows import Rows
from mtcd.models.metrics import METRICS
from mtcd.protocol.ledger.ledger import LINKS, Totals
from mtcd.protocol.model import MOST_MEASURED

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


PLAIN = ("iteration", "hops", "syncs", "objective", "gap", "cost")
LEARNT = ("epoch", "accuracy", "test_accuracy")
PARTS = ("train", "test")
"""The samples that metrics are of: their names begin with it, as in 'test_auc'."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """The state of a training at one moment.

    Parameters
    ----------
    iteration : int
        Hops per token.
    hops : int
        Hops of all tokens together.
    syncs : int
        Syncs at the server.
    objective : float
        f, of the model that the parties hold.
    gap : float or None
        (f - f*)/|f*|; None where f* was not asked for.
    cost : float
        The communication cost so far.
    messages : tuple of int
        Messages by kind of link.
    floats : tuple of int
        Numbers sent, by kind of link.
    seconds : float
        Time spent training, not measuring.
    epoch : float, optional
        Passes over the samples.
    accuracy : float, optional
        The accuracy on the training samples, where known.
    test_accuracy : float, optional
        The accuracy on other samples, where known.
    metrics : mapping from str to float
        Metrics on the training samples ('train_auc') and on others ('test_auc'). A name is left out
        where its value was not computed at this moment, or is not defined.

    Examples
    --------
    >>> import mtcd
    >>> data = mtcd.synthetic("ridge", samples=50, features=8, clients=4)
    >>> run = mtcd.train(data, mtcd.Glm("ridge", l2=1.0), "path", mtcd.STCD(), mtcd.Stop(iterations=3))
    >>> run.final.iteration, run.final.hops, run.final.syncs
    (3, 3, 0)
    """

    iteration: int
    hops: int
    syncs: int
    objective: float
    gap: float | None
    cost: float
    messages: Totals
    floats: Totals
    seconds: float
    epoch: float | None = None
    accuracy: float | None = None
    test_accuracy: float | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)

    def row(self) -> dict[str, Any]:
        """One flat row, as in history.csv."""
        row: dict[str, Any] = attributes(self, PLAIN)
        for what in ("messages", "floats"):
            # flat columns, which any program reads
            row |= {f"{what}_{link}": getattr(self, what)[link] for link in LINKS}
        row |= {"seconds": self.seconds} | attributes(self, LEARNT)
        return row | dict(self.metrics)

    @staticmethod
    def from_row(row: dict[str, str]) -> Measurement:
        """The inverse of ``row``, from text; older files have no columns about learning, or no
        metrics."""
        # whole numbers stay exact, as floats would not beyond 2^53
        messages = {link: int(row[f"messages_{link}"]) for link in LINKS}
        floats = {link: int(row[f"floats_{link}"]) for link in LINKS}
        known = {name: float(row[name]) for name in ("gap", *LEARNT) if row.get(name)}
        gap = known.pop("gap", None)
        return Measurement(
            int(row["iteration"]),
            int(row["hops"]),
            int(row["syncs"]),
            float(row["objective"]),
            gap,
            float(row["cost"]),
            messages,
            floats,
            float(row["seconds"]),
            **known,
            metrics=_metrics(row),
        )


def _metrics(row: Mapping[str, str]) -> dict[str, float]:
    """The metrics of a row. The accuracy on test samples is one of them if that on training samples
    is."""
    found = {}
    for name, value in row.items():
        if name.partition("_")[0] in PARTS and value:
            found[name] = float(value)
    if "train_accuracy" not in found:
        found.pop("test_accuracy", None)  # it is the column of that name, as of split networks
    return found


@dataclass(frozen=True)
class History:
    """All measurements of a run, in order.

    ``history["gap"]`` is a column as an array; iterating gives the measurements.

    Parameters
    ----------
    rows : sequence of Measurement
        The measurements.

    Examples
    --------
    >>> import mtcd
    >>> data = mtcd.synthetic("ridge", samples=50, features=8, clients=4)
    >>> run = mtcd.train(data, mtcd.Glm("ridge", l2=1.0), "path", mtcd.STCD(), mtcd.Stop(iterations=3))
    >>> run.history["iteration"].tolist()
    [0.0, 1.0, 2.0, 3.0]
    >>> bool(run.history["objective"][-1] < run.history["objective"][0])
    True
    """

    rows: Sequence[Measurement]

    def __repr__(self) -> str:
        if not self.rows:
            return "History(no measurements)"
        first, last = self.rows[0], self.rows[-1]
        gap = ""
        if last.gap is not None:
            gap = f", gap {last.gap:.3g}"
        return (
            f"History({len(self.rows):,} measurements, to iteration {last.iteration:,}: "
            f"objective {first.objective:.6g} to {last.objective:.6g}{gap})"
        )

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Measurement]:
        return iter(self.rows)

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of all metrics of the run, such as 'train_auc'."""
        return tuple(dict.fromkeys(name for row in self.rows for name in row.metrics))

    def __getitem__(self, column: str) -> Array:
        rows = self.to_rows()
        # Without rows no column is known to be wrong.
        if rows and column not in rows.columns:
            raise KeyError(column)
        # a metric is not in every row; None becomes NaN
        return np.array([row.get(column) for row in rows], dtype=float)

    def to_rows(self) -> Rows:
        """A flat row for each measurement, as in history.csv."""
        return Rows(row.row() for row in self.rows)

    def to_polars(self) -> pl.DataFrame:
        """A data frame of polars, a row for each measurement."""
        return self.to_rows().to_polars()

    def to_pandas(self) -> pd.DataFrame:
        """A data frame of pandas, a row for each measurement."""
        return self.to_rows().to_pandas()

    def write(self, path: Path) -> None:
        """As CSV; numbers are written so that they read back exactly."""
        path.write_bytes(self.to_rows().to_csv().encode())

    @staticmethod
    def read(path: Path) -> History:
        """The history in a CSV file, as ``write`` leaves it."""
        with path.open(newline="") as file:
            rows = [Measurement.from_row(row) for row in csv.DictReader(file)]
        if not rows:
            raise ValueError(f"{path} is empty")
        return History(rows)


def numbers(row: Measurement) -> dict[str, float]:
    """The numbers of a measurement by column, without those that are not known."""
    return without_none(row.row())


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
