"""One training of a sweep as a job of a worker, and the store of finished ones."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mtcd.config.one_training import Unfinished, identity, train_one
from mtcd.config.schema import Config
from mtcd.core.files import write_whole
from mtcd.protocol.ledger.ledger import LINKS
from mtcd.training.run import Run

FORMAT = 1  # count up when a training gives other numbers, or is kept in another form
DRAWN = ("iteration", "cost", "seconds", "objective", "gap")
POINTS = 200  # of a curve
Record = dict[str, Any]
"""A finished training in plain values: ``row`` is its row of the table, ``curve`` what is drawn of
it."""


@dataclass(frozen=True)
class SweepJob:
    """Train by the config."""

    config: Config
    unfinished: Unfinished

    def run(self, tell: Callable[[float], None] = lambda fraction: None) -> Record:
        """The record to keep."""
        _, run = train_one(self.config, tell, self.unfinished)
        return {"row": row_of(run), "curve": _curve(run)}


def row_of(run: Run) -> dict[str, Any]:
    """The outcome of a training in one flat row; null where a number is not known or not finite."""
    last, account = run.final, run.costs.account
    row: dict[str, Any] = {"status": run.status, "reason": run.message, "stepsize": run.stepsize}
    for name, value in last.row().items():
        if not name.startswith(("messages_", "floats_")):
            row[name] = value

    sent = {"messages": last.messages, "bytes": run.ledger.bytes(account)}
    for what, counts in sent.items():
        row |= {what: sum(counts.values())} | {f"{what}_{link}": counts[link] for link in LINKS}
    return {name: _plain(value) for name, value in row.items()}


def _curve(run: Run) -> dict[str, list[float | None]]:
    """At most so many measurements, the first and the last among them."""
    rows = run.history.rows
    # every step-th, and in any case the end, which tables show
    step = max(1, math.ceil(len(rows) / POINTS))
    shown = [*rows[:-1:step], rows[-1]]
    return {name: [_plain(getattr(row, name)) for row in shown] for name in DRAWN}


def _plain(value: Any) -> Any:
    """A number or text that JSON has."""
    # of numpy, which JSON does not know
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


@dataclass(frozen=True)
class Finished:
    """The folder of finished trainings, a JSON file each."""

    folder: Path

    def path(self, config: Config) -> Path:
        """Where the training with this config belongs."""
        return self.folder / f"{identity(config, FORMAT)}.json"

    def load(self, config: Config) -> Record | None:
        """The record of a finished training; a damaged file counts as missing."""
        try:
            record: Record = json.loads(self.path(config).read_text(encoding="utf-8"))
            has_curve = set(DRAWN) <= set(record["curve"])
            if has_curve and isinstance(record["row"]["status"], str):
                return record
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            pass  # it is trained again, as if it were not there
        return None

    def save(self, config: Config, record: Record) -> None:
        """Keep it: written whole, or not at all."""
        write_whole(self.path(config), json.dumps(record, allow_nan=False))
