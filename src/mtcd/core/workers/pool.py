"""The interface of workers: jobs that they run, what they report, and how far a set of jobs is."""

from __future__ import annotations

import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, Protocol, Self, TypeVar

from mtcd.core.errors import MtcdError

T = TypeVar("T")

Tell = Callable[[float], None]
"""Reports the progress of a job, from 0 to 1."""

News = Any
"""A report of a worker: the progress of a job (a float from 0 to 1), its result, or
:class:`Failed`."""


class Job(Protocol):
    """What a worker runs: it is sent to the worker, reports its progress, and returns plain values.

    A job holds settings, not data: the worker reads or makes the data itself.
    """

    def run(self, tell: Tell) -> Any:
        """Do the work. The result is not a float, which would be progress."""


@dataclass(frozen=True)
class Failed:
    """A job that could not be done.

    Parameters
    ----------
    why
        The reason, as users read it.
    lost
        Whether the worker died, so that another attempt may succeed.
    """

    why: str
    lost: bool = False


@dataclass(frozen=True)
class QueueStatus:
    """How far a set of jobs is.

    Parameters
    ----------
    done, total
        Jobs that have ended, and all.
    running
        The names of those that run now.
    left
        Seconds until the end, as estimated; None while nothing is known.
    """

    done: int
    total: int
    running: tuple[str, ...]
    left: float | None


def outcome(job: Job, tell: Tell) -> News:
    """The result of a job, or why it failed."""
    try:
        return job.run(tell)
    except (MtcdError, OSError) as error:
        return Failed(str(error))
    # An expected end of a large job, and no defect of this library.
    except MemoryError:
        return Failed("memory ran out: use fewer workers, samples or features.")
    except Exception:
        # A worker outlives a job with a defect: the other jobs are still worth running.
        return Failed(f"this is a defect of the library:\n{traceback.format_exc()}")


class Workers(ABC, Generic[T]):
    """Up to ``jobs`` workers, started when they are needed and stopped at the end of the context.

    ``T`` is the type by which a job is named. Workers are numbered from 0. A job that continues an
    earlier one, whose state its worker keeps, names that worker.
    """

    jobs: int

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
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
