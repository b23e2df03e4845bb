"""The measurements of a training: one row each."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mtcd.arrays import Array
from mtcd.ledger.ledger import LINKS, Totals

PLAIN = ("iteration", "hops", "syncs", "objective", "gap", "cost")
LEARNT = ("epoch", "accuracy", "test_accuracy")


@dataclass(frozen=True, slots=True)
class Measurement:
    """The state of a training at one moment.

    ``iteration`` counts hops per token, ``hops`` those of all tokens together. ``gap`` is (f - f*)/|f*|,
    None where f* was not asked for. ``seconds`` is time spent training, not measuring. ``epoch`` counts passes
    over the samples, ``accuracy`` is that on them and ``test_accuracy`` that on others; None where not known.
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

    def row(self) -> dict[str, Any]:
        """One flat row, as in history.csv."""
        row: dict[str, Any] = {name: getattr(self, name) for name in PLAIN}
        for what in ("messages", "floats"):
            row |= {f"{what}_{link}": getattr(self, what)[link] for link in LINKS}
        return row | {"seconds": self.seconds} | {name: getattr(self, name) for name in LEARNT}

    @staticmethod
    def from_row(row: dict[str, str]) -> Measurement:
        """The inverse of ``row``, from text; older files have no columns about learning."""
        totals = [{link: int(row[f"{what}_{link}"]) for link in LINKS} for what in ("messages", "floats")]
        return Measurement(
            int(row["iteration"]),
            int(row["hops"]),
            int(row["syncs"]),
            float(row["objective"]),
            float(row["gap"]) if row["gap"] else None,
            float(row["cost"]),
            totals[0],
            totals[1],
            float(row["seconds"]),
            *(float(row[name]) if row.get(name) else None for name in LEARNT),
        )


@dataclass(frozen=True)
class History:
    """All measurements of a run, in order.

    ``history["gap"]`` is a column as an array; iterating gives the measurements.
    """

    rows: Sequence[Measurement]

    def __repr__(self) -> str:
        if not self.rows:
            return "History(no measurements)"
        first, last = self.rows[0], self.rows[-1]
        gap = "" if last.gap is None else f", gap {last.gap:.3g}"
        return (
            f"History({len(self.rows):,} measurements, to iteration {last.iteration:,}: "
            f"objective {first.objective:.6g} to {last.objective:.6g}{gap})"
        )

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Measurement]:
        return iter(self.rows)

    def __getitem__(self, column: str) -> Array:
        values = [row.row()[column] for row in self.rows]
        return np.array([np.nan if value is None else value for value in values], dtype=float)

    def write(self, path: Path) -> None:
        """As CSV; numbers are written so that they read back exactly."""
        rows = [row.row() for row in self.rows]
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)

    @staticmethod
    def read(path: Path) -> History:
        """From CSV."""
        with path.open(newline="") as file:
            rows = [Measurement.from_row(row) for row in csv.DictReader(file)]
        if not rows:
            raise ValueError(f"{path} is empty")
        return History(rows)
