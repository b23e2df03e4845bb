"""The training of a curve as a job of a worker: the record of it that is stored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from mtcd.config.one_training import Unfinished, train_one
from mtcd.config.schema import Config
from mtcd.core.errors import DataError
from mtcd.training.history import LEARNT, PLAIN, Measurement
from mtcd_experiments.schema import Measure
from mtcd_experiments.store import COLUMNS, Record, measure_of


@dataclass(frozen=True)
class CurveJob:
    """Train by the config."""

    config: Config
    unfinished: Unfinished = field(default_factory=Unfinished)

    def run(self, tell: Callable[[float], None] = lambda fraction: None) -> Record:
        """The record to store."""
        setup, run = train_one(self.config, tell, self.unfinished)
        return {
            "config": setup.config.model_dump(mode="json", exclude_none=True),
            "status": run.status,
            "message": run.message,
            "stepsize": run.stepsize if run.stepsize is None else float(run.stepsize),
            "seconds": run.final.seconds,
            "notes": list(setup.data.notes),
            "columns": _columns(run.history.rows, measure_of(self.config)),
        }


def _columns(rows: Sequence[Measurement], measure: Measure) -> dict[str, list[float]]:
    """The measurements in columns, without any that are not finite."""
    names = COLUMNS[measure]
    # None becomes nan
    table = np.array([[_flat(row)[name] for name in names] for row in rows], dtype=float)
    finite = table[np.isfinite(table).all(axis=1)]
    if measure == "accuracy" and not len(finite):
        raise DataError(
            "no test accuracy was measured: the figure needs classes, and data with a test part."
        )
    return {name: finite[:, j].tolist() for j, name in enumerate(names)}


def _flat(row: Measurement) -> dict[str, float | None]:
    """All that can be kept of a measurement; uplinks and downlinks are links with the server."""
    links = {
        f"{prefix}{link}": float(sum(sent[one] for one in kinds))
        for prefix, sent in (("", row.messages), ("floats_", row.floats))
        for link, kinds in (
            ("client_client", ["client_client"]),
            ("client_server", ["uplink", "downlink"]),
        )
    }
    return (
        {name: getattr(row, name) for name in PLAIN}
        | {name: getattr(row, name) for name in LEARNT}
        | links
    )
