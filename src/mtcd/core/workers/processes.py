"""Workers as processes on this machine, one BLAS thread each, and the choice between them and the
workers of a feature, as on Ray. Each process has a pipe to this one: jobs in, news out."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar

from mtcd.core import features
from mtcd.core.checks import check_whole
from mtcd.core.errors import ConfigError
from mtcd.core.workers.pool import Failed, Job, News, Workers, outcome

T = TypeVar("T")
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


class ProcessWorkers(Workers[T]):
    """Processes; one that dies is replaced when its number is next given a job."""

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs
        self._started: dict[int, tuple[BaseProcess, Connection]] = {}
        self._busy: dict[int, T] = {}

    @property
    def idle(self) -> list[int]:
        return [worker for worker in range(self.jobs) if worker not in self._busy]

    def give(self, name: T, job: Job, worker: int | None = None) -> None:
        if worker is None:
            # One that runs already, if possible: starting a process takes a second.
            worker = min(self.idle, key=lambda one: one not in self._started)
        if worker not in self._started:
            self._started[worker] = _start()

        self._busy[worker] = name
        _, pipe = self._started[worker]
        with suppress(OSError):  # it has died: its news will say so
            pipe.send(job)

    def news(self, timeout: float) -> Iterator[tuple[T, News]]:
        pipes = {self._started[worker][1]: worker for worker in self._busy}
        for pipe in wait(pipes, timeout):
            assert isinstance(pipe, Connection)
            worker = pipes[pipe]
            try:
                said: News = pipe.recv()
            except (EOFError, OSError):
                process, _ = self._started.pop(worker)
                said = Failed(_death(process), lost=True)

            name = self._busy[worker]
            if not isinstance(said, float):  # anything but progress ends the job
                del self._busy[worker]
            yield name, said

    def stop(self) -> None:
        # Those that run have a pipe; jobs that none has reported on are in ``_busy`` all the same.
        # An interrupt may have come before a process was started: that one has no pid.
        processes = [process for process, _ in self._started.values() if process.pid is not None]
        # All are told first; waiting for each in turn would take as long as all of them together.
        for process in processes:
            process.terminate()

        # Waiting only now lets all of them end at the same time.
        for process in processes:
            process.join(timeout=2)
            if process.is_alive():
                process.kill()
                process.join()


def _start() -> tuple[BaseProcess, Connection]:
    """A new process, and this end of its pipe."""
    # A forked child would inherit the locks of threads that it does not have.
    context = get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_work, args=(there,), daemon=True)
    with _one_thread(), _interrupts_blocked():
        process.start()

    # With this copy open, the pipe would not end when the process dies.
    there.close()
    return process, here


@contextmanager
def _one_thread() -> Iterator[None]:
    # Before the process starts: the library reads its number of threads when it is loaded.
    """Processes started now use one BLAS thread: with more, workers get in each other's way."""
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Processes started now never see Ctrl-C, which a terminal sends to all: this process stops
    them.

    The signal is blocked, not ignored: one that arrives meanwhile is delivered afterwards.
    """
    # Started below, the tracker would unblock the signal.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _death(process: BaseProcess) -> str:
    """Why a process ended, as users read it."""
    process.join(timeout=2)
    code = process.exitcode or 0
    how = f"ended with code {code}"
    if code < 0:
        how = f"killed by signal {-code}"
    return f"its process was {how}; if memory ran out, use fewer workers."


def _work(pipe: Connection) -> None:
    """The main loop of a worker, until the other end of the pipe is closed."""

    def tell(news: News) -> None:
        try:
            pipe.send(news)
        except OSError:  # nobody listens any more
            raise SystemExit from None

    while True:
        try:
            job: Job = pipe.recv()
        except (EOFError, OSError):
            return
        tell(outcome(job, tell))


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
