"""The outcome of several trainings as a table: a row for each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mtcd.core.errors import ConfigError, DivergedError
from mtcd.core.files import write_whole
from mtcd.core.rows import Rows
from mtcd.data.dataset import VerticalDataset
from mtcd.data.vertical import VerticalData
from mtcd.models.metrics import chosen_metrics
from mtcd.training.run import Run

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

AnyData = VerticalData | VerticalDataset


class Outcomes(ABC):
    """Several trainings, with a row of numbers for each."""

    @abstractmethod
    def rows(self) -> Rows:
        """A row for each training."""

    def to_polars(self) -> pl.DataFrame:
        """The rows as a data frame of polars."""
        return self.rows().to_polars()

    def to_pandas(self) -> pd.DataFrame:
        """The rows as a data frame of pandas."""
        return self.rows().to_pandas()

    def write(self, path: str | Path) -> None:
        """The rows as CSV; numbers are written so that they read back exactly."""
        write_rows(Path(path), self.rows())


def names_in(out: Path) -> list[str]:
    """What is in a folder that is to be written; none if it is not there yet, an error if it is a
    file."""
    if not out.exists():
        return []
    if not out.is_dir():
        raise ConfigError(f"{out} is a file: choose another folder.")
    return [found.name for found in out.iterdir()]


def write_rows(path: Path, rows: Rows) -> None:
    """A CSV file of the rows: all of it, or nothing."""
    write_whole(path, rows.to_csv())


def final_metrics(run: Run, data: AnyData, names: Sequence[str] | None) -> dict[str, float]:
    """The metrics of a trained model on its training samples, and on its test set if there is one;
    NaN if not defined.

    They go by names such as 'test_auc'; ``names`` as in :func:`mtcd.train`.
    """
    found: dict[str, float] = {}
    for part, samples in (("train", data), ("test", data.test)):
        if samples is not None:
            # computed once: metrics share the outputs
            outputs = run.outputs(samples)
            metrics = chosen_metrics(names, len(outputs.classes), outputs.has_probabilities)
            found |= {f"{part}_{name}": value for name, value in metrics.of(outputs).items()}
    return found


def check_trained(run: Run, which: str) -> Run:
    """The run; an error that says ``which`` it is if it diverged."""
    if run.model is None:
        raise DivergedError(f"{which}: {run.message}")
    return run
