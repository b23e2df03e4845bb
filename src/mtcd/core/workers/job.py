"""A job: what a worker runs. It is sent to the worker, reports its progress, and returns plain
values."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from mtcd.core.errors import MtcdError

Tell = Callable[[float], None]
"""Reports the progress of a job, from 0 to 1."""


class Job(Protocol):
    """A job holds settings, not data: the worker reads or makes the data itself."""

    def run(self, tell: Tell) -> Any:
        """Do the work. The result is not a float, which would be progress."""


@dataclass(frozen=True)
class Failed:
    """A job that could not be done, and why. ``lost``: the worker died, so another attempt may
    succeed."""

    why: str
    lost: bool = False


News = Any
"""A report of a worker: the progress of a job (a float from 0 to 1), its result, or
:class:`Failed`."""


def outcome(job: Job, tell: Tell) -> News:
    """The result of a job, or why it failed."""
    try:
        return job.run(tell)
    except (MtcdError, OSError) as error:
        return Failed(str(error))
    except MemoryError:
        return Failed("memory ran out: use fewer workers, samples or features.")
    except Exception:
        return Failed(f"this is a defect of the library:\n{traceback.format_exc()}")
