"""The interface of workers, for those who give them jobs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from types import TracebackType
from typing import Generic, Self, TypeVar

from mtcd.core.workers.job import Job, News

T = TypeVar("T")


class Workers(ABC, Generic[T]):
    """Up to ``jobs`` workers, started when they are needed and stopped at the end. ``T`` names a
    job.

    Workers are numbered from 0. A job that continues an earlier one, whose state its worker keeps,
    names that worker.
    """

    jobs: int

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def free(self) -> int:
        """How many more jobs can be given out."""
        return len(self.idle)

    @property
    @abstractmethod
    def idle(self) -> list[int]:
        """The workers without a job."""

    @abstractmethod
    def give(self, name: T, job: Job, worker: int | None = None) -> None:
        """Have an idle worker do this; any of them unless one is named."""

    @abstractmethod
    def news(self, timeout: float) -> Iterator[tuple[T, News]]:
        """The reports since the last call, or within so many seconds."""

    @abstractmethod
    def stop(self) -> None:
        """Stop all workers at once: unfinished jobs are lost, reported results are not."""
