"""The choice of workers: processes on this machine, or actors on a Ray cluster."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from mtcd.core.checks import check_whole
from mtcd.core.errors import ConfigError
from mtcd.core.optional import find
from mtcd.core.workers.pool import Workers
from mtcd.core.workers.processes import ProcessWorkers


@dataclass(frozen=True)
class Backend:
    """Where jobs run.

    Parameters
    ----------
    workers
        How many at the same time; without it, one for each CPU of this machine or of the Ray
        cluster.
    ray
        None for processes, 'local' to start Ray on this machine, 'auto' or an address to join a
        cluster.

    Raises
    ------
    ConfigError
        If there is less than one worker, or the address is empty.

    Examples
    --------
    >>> Backend(workers=0)
    Traceback (most recent call last):
    mtcd.core.errors.ConfigError: workers must be 1 or more, but is 0.
    """

    workers: int | None = None
    ray: str | None = None

    def __post_init__(self) -> None:
        if self.workers is not None:
            check_whole("workers", self.workers, least=1)
        if self.ray is not None and not (isinstance(self.ray, str) and self.ray.strip()):
            raise ConfigError(
                f"ray is 'local', 'auto' or the address of a cluster, but is {self.ray!r}."
            )


def open_workers(backend: Backend) -> Workers[Any]:
    """The workers, as a context manager."""
    if backend.ray is None:
        return ProcessWorkers(backend.workers or os.cpu_count() or 1)

    workers: Workers[Any] = find("mtcd.ray.workers").RayWorkers(backend.ray, backend.workers)
    return workers
