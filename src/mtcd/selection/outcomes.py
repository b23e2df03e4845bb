"""The outcome of several trainings as a table: a row for each."""

from __future__ import annotations

import csv
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtcd.data.dataset import VerticalDataset
from mtcd.data.vertical import VerticalData
from mtcd.errors import DivergedError, NotInstalledError
from mtcd.files import whole_file
from mtcd.metrics import chosen_metrics
from mtcd.run import Run

if TYPE_CHECKING:
    import polars as pl

AnyData = VerticalData | VerticalDataset


class Outcomes(ABC):
    """Several trainings, with a row of numbers for each."""

    @abstractmethod
    def rows(self) -> list[dict[str, Any]]:
        """A row for each training, with the same keys."""

    def to_polars(self) -> pl.DataFrame:
        """The rows as a frame of polars."""
        import polars as pl

        return pl.DataFrame(self.rows())

    def to_pandas(self) -> Any:
        """The rows as a frame of pandas."""
        try:
            import pandas as pd  # type: ignore[import-untyped]
        except ModuleNotFoundError:
            raise NotInstalledError("to_pandas needs pandas (pip install pandas); to_polars needs nothing.") from None
        return pd.DataFrame(self.rows())

    def write(self, path: str | Path) -> None:
        """The rows as CSV; numbers are written so that they read back exactly."""
        write_rows(Path(path), self.rows())


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """A CSV file of rows with the same keys: all of it, or nothing."""
    with whole_file(path) as writing, writing.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def final_metrics(run: Run, data: AnyData, names: Sequence[str] | None) -> dict[str, float]:
    """The metrics of a trained model on its training samples, and on its test set if there is one; NaN if not defined.

    They go by names such as 'test_auc'; ``names`` as in :func:`mtcd.train`.
    """
    found: dict[str, float] = {}
    for part, samples in (("train", data), ("test", data.test)):
        if samples is not None:
            outputs = run.outputs(samples)
            metrics = chosen_metrics(names, len(outputs.classes), outputs.has_probabilities)
            found |= {f"{part}_{name}": value for name, value in metrics.of(outputs).items()}
    return found


def check_trained(run: Run, which: str) -> Run:
    """The run; an error that says ``which`` it is if it diverged."""
    if run.model is None:
        raise DivergedError(f"{which}: {run.message}")
    return run
