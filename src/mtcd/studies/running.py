"""Runs the trainings of a sweep on workers: those that were finished before are read, the others
trained and kept."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any

from mtcd.config.one_training import Unfinished
from mtcd.core.workers import Backend, Failed, QueueStatus, Workers, open_workers
from mtcd.studies.grid import Point
from mtcd.studies.work import Finished, Record, SweepJob

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
