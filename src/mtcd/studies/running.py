"""Runs the trainings of a sweep on workers: those that were finished before are read, the others
trained and kept."""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

from mtcd.config.one_training import Unfinished, identity, train_one
from mtcd.config.schema import Config
from mtcd.core.files import write_whole
from mtcd.core.workers import Backend, Failed, QueueStatus, Workers, open_workers
from mtcd.protocol.ledger.ledger import LINKS
from mtcd.studies.grid import Point
from mtcd.training.run import Run

PATIENCE = 0.25  # seconds between two looks at the workers
ATTEMPTS = 2  # at a training whose worker dies
FAILED = "failed"


Progress = Callable[[QueueStatus], None]


class Running:
    """The trainings of a sweep, by their number in the grid."""

    def __init__(self, points: Sequence[Point], finished: Finished) -> None:
        self.points, self.finished = points, finished
        self.records: dict[int, Record] = {}
        self.kept = 0
        """How many were finished before."""
        self._waiting: deque[int] = deque()
        self._began: dict[int, float] = {}
        self._fraction: dict[int, float] = {}
        self._seconds: list[float] = []
        self._attempts: dict[int, int] = {}
        for number, point in enumerate(points):
            self._sort(number, point)

    def _sort(self, number: int, point: Point) -> None:
        """Put a training where it belongs: refused, finished before, or to be done."""
        if point.config is None:
            self.records[number] = failure(str(point.refused))
            return

        record = self.finished.load(point.config)
        if record is None:
            self._waiting.append(number)
        else:
            self.records[number] = record
            self.kept += 1

    def run(self, backend: Backend, progress: Progress) -> None:
        """Train all that is left."""
        if not self._waiting:
            return

        unfinished = Unfinished(self.finished.folder / "unfinished")
        with open_workers(backend) as workers:
            while self._waiting or self._began:
                self._give(workers, unfinished)
                progress(self.status(workers.jobs))
                for number, news in workers.news(PATIENCE):
                    self._hear(number, news)
            progress(self.status(workers.jobs))

    def _give(self, workers: Workers[int], unfinished: Unfinished) -> None:
        # no more than there are workers: one that waits at a worker cannot be given to another
        while self._waiting and workers.free:
            number = self._waiting.popleft()
            config = self.points[number].config
            assert config is not None
            self._began[number] = monotonic()
            self._attempts[number] = self._attempts.get(number, 0) + 1
            workers.give(number, SweepJob(config, unfinished))

    def _hear(self, number: int, news: Any) -> None:
        if isinstance(news, float):
            self._fraction[number] = news
            return

        began = self._began.pop(number)
        self._fraction.pop(number, None)
        if isinstance(news, Failed):
            # a worker may die of what others do to the machine: the training itself may be fine
            if news.lost and self._attempts[number] < ATTEMPTS:
                self._waiting.append(number)
            else:
                self.records[number] = failure(news.why)
            return

        # on disk first: what is in the records of an interrupted sweep is lost
        config = self.points[number].config
        assert config is not None
        self.finished.save(config, news)
        self.records[number] = news
        self._seconds.append(monotonic() - began)

    def status(self, workers: int) -> QueueStatus:
        """How far everything is."""
        running = tuple(self.points[number].label for number in self._began)
        return QueueStatus(len(self.records), len(self.points), running, self._left(workers))

    def _left(self, workers: int) -> float | None:
        # before the first has ended, anything would be a guess
        if not self._seconds:
            return None

        mean = sum(self._seconds) / len(self._seconds)
        under_way = [1.0 - self._fraction.get(number, 0.0) for number in self._began]
        open_work = len(self._waiting) + sum(under_way)
        return mean * open_work / workers


def failure(why: str) -> Record:
    """The record of a training that could not be done. It is not kept: the next sweep tries
    again."""
    return {"row": {"status": FAILED, "reason": why}, "curve": None}


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
