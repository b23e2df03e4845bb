"""A store of finished trainings, one JSON file each, so that nothing is trained twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from mtcd.config.one_training import identity
from mtcd.config.schema import Config
from mtcd.core.arrays import Array
from mtcd.core.errors import MtcdError
from mtcd.core.files import write_whole
from mtcd_experiments.results import TrainedCurve
from mtcd_experiments.schema import Measure

FORMAT = 2  # count up when a training gives other numbers, or is kept in another form
LINKS = ("client_client", "client_server")
SENT = (*LINKS, *(f"floats_{link}" for link in LINKS))  # messages, and floats, by kind of link
COLUMNS: dict[Measure, tuple[str, ...]] = {
    "gap": ("iteration", "gap", *SENT),
    "accuracy": ("iteration", "epoch", "test_accuracy", "accuracy", "objective", *SENT),
}

Record = dict[str, Any]
"""A training in plain values: config, status, message, stepsize, seconds, notes, columns."""


class Store:
    """The folder of kept trainings. With ``fresh``, those from before are not looked at."""

    def __init__(self, folder: Path, fresh: bool = False) -> None:
        self.folder, self.fresh = folder, fresh
        self._saved: set[Path] = set()

    def path(self, config: Config) -> Path:
        """Where the training with this config belongs, whichever figures show it: another config,
        another file."""
        return self.folder / f"{identity(config, FORMAT)}.json"

    def load(self, path: Path) -> TrainedCurve | None:
        """The stored training; a damaged file counts as missing."""
        if self.fresh and path not in self._saved:
            return None
        try:
            return as_trained(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None

    def save(self, path: Path, record: Record) -> TrainedCurve:
        """Keep the outcome of a training, so that it is not trained again."""
        trained = as_trained(record)
        try:
            write_whole(path, json.dumps(record, allow_nan=False))
        except MtcdError as error:
            hint = "Make room or choose another --out; what was kept before is still there."
            raise MtcdError(f"A training could not be kept: {error} {hint}") from None
        self._saved.add(path)
        return trained


def measure_of(config: Config) -> Measure:
    """The stored columns of a training: the gap, if it is trained up to one."""
    if config.stop.gap is None:
        return "accuracy"
    return "gap"


def as_trained(record: Record) -> TrainedCurve:
    """A TrainedCurve from plain values; an error if they are not whole."""
    names = COLUMNS["accuracy"]
    if "gap" in record["columns"]:
        names = COLUMNS["gap"]
    columns = {name: np.array(record["columns"][name], dtype=float) for name in names}
    _check_whole(list(columns.values()))

    stepsize = record["stepsize"]
    if stepsize is not None:
        stepsize = float(stepsize)
    return TrainedCurve(
        seed=int(record["config"]["seed"]),
        status=str(record["status"]),
        stepsize=stepsize,
        seconds=float(record["seconds"]),
        columns=columns,
        notes=tuple(str(note) for note in record["notes"]),
    )


def _check_whole(columns: list[Array]) -> None:
    """Reject columns of different lengths, empty ones, and numbers that are none."""
    lengths = {column.shape for column in columns}
    if len(lengths) != 1 or lengths <= {(0,), ()}:
        raise ValueError("the columns are not whole")
    if not all(np.isfinite(column).all() for column in columns):
        raise ValueError("the columns are not whole")
