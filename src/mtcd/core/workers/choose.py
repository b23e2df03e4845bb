"""The choice of workers: processes on this machine, or the workers of a feature, as on Ray."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from mtcd.core import features
from mtcd.core.checks import check_whole
from mtcd.core.errors import ConfigError
from mtcd.core.workers.pool import Workers
from mtcd.core.workers.processes import ProcessWorkers

CLUSTERS = "mtcd.workers"
"""The group in which a feature names its workers, by the key of :class:`Backend`."""


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
            check_whole("workers", self.workers)
        if self.ray is not None and not (isinstance(self.ray, str) and self.ray.strip()):
            raise ConfigError(
                f"ray is 'local', 'auto' or the address of a cluster, but is {self.ray!r}."
            )


def open_workers(backend: Backend) -> Workers[Any]:
    """The workers, as a context manager.

    Parameters
    ----------
    backend
        Where the jobs run.

    Returns
    -------
    Workers
        None of them has been started.

    Raises
    ------
    ConfigError
        If the workers of a cluster are asked for, and nothing here has any.
    """
    if backend.ray is None:
        return ProcessWorkers(backend.workers or os.cpu_count() or 1)

    # Loaded only when it is asked for: importing Ray takes seconds.
    homes = features.parts(CLUSTERS)
    if "ray" not in homes:
        raise ConfigError("ray: this installation has no workers on Ray: leave it out.")

    make: Any = features.load(homes["ray"])
    workers: Workers[Any] = make(backend.ray, backend.workers)
    return workers
