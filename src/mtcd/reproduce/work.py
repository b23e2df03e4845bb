"""Worker processes that train, one BLAS thread each. Each holds a pipe to this process: configs in, news out."""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from time import monotonic
from typing import Generic, TypeVar

import numpy as np

from mtcd.config.build import build
from mtcd.config.schema import Config
from mtcd.errors import DataError, MtcdError
from mtcd.history import LEARNT, PLAIN, Measurement
from mtcd.own_code import running_code
from mtcd.reproduce.schema import Measure
from mtcd.reproduce.store import COLUMNS, Record, measure_of
from mtcd.reproduce.unfinished import Unfinished

T = TypeVar("T")
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
PATIENCE = 0.3  # seconds between two reports of how far a training is


@dataclass(frozen=True)
class Failed:
    """A training that could not be done, and why."""

    why: str


News = float | Record | Failed
"""A report of a worker: the progress of a training (0 to 1), its record at the end, or the reason of a failure."""


class Workers(Generic[T]):
    """Up to ``jobs`` processes, started as they are needed and stopped at the end. ``T`` names a training."""

    def __init__(self, jobs: int, unfinished: Unfinished | None = None) -> None:
        self.jobs, self.unfinished = jobs, unfinished or Unfinished()
        self._idle: list[tuple[BaseProcess, Connection]] = []
        self._busy: dict[Connection, tuple[BaseProcess, T]] = {}

    def __enter__(self) -> Workers[T]:
        return self

    def __exit__(self, *raised: object) -> None:
        """Stop them all at once: what they were training is lost, what they had reported is not."""
        begun = (*self._idle, *self._busy.values())
        processes = [process for process, _ in begun if process.pid is not None]  # an interrupt may have come before
        for process in processes:
            process.terminate()
        for process in processes:
            process.join(timeout=2)
            if process.is_alive():
                process.kill()
                process.join()

    @property
    def free(self) -> int:
        """How many more trainings can be given out."""
        return self.jobs - len(self._busy)

    def give(self, name: T, config: Config) -> None:
        """Have this trained."""
        process, pipe = self._idle.pop() if self._idle else _start()
        self._busy[pipe] = process, name
        with suppress(OSError):  # it has died: its news will say so
            pipe.send((config, self.unfinished))

    def news(self, timeout: float) -> Iterator[tuple[T, News]]:
        """The reports since the last call, or within this time."""
        for pipe in wait(list(self._busy), timeout):
            assert isinstance(pipe, Connection)
            process, name = self._busy[pipe]
            try:
                said: News = pipe.recv()
            except (EOFError, OSError):
                del self._busy[pipe]
                yield name, Failed(_death(process))
                continue
            if not isinstance(said, float):
                del self._busy[pipe]
                self._idle.append((process, pipe))
            yield name, said


def _start() -> tuple[BaseProcess, Connection]:
    context = get_context("spawn")  # a forked child would inherit the threads' locks
    here, there = context.Pipe()
    process = context.Process(target=_work, args=(there,), daemon=True)
    with _one_thread(), _deaf_to_interrupts():
        process.start()
    there.close()  # so that its death can be heard
    return process, here


@contextmanager
def _one_thread() -> Iterator[None]:
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
def _deaf_to_interrupts() -> Iterator[None]:
    """Processes started now never see Ctrl-C, which a terminal sends to all: this process stops them.

    It is held back, not ignored: one that comes meanwhile is heard afterwards.
    """
    resource_tracker.ensure_running()  # starting it would let the signal through
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _death(process: BaseProcess) -> str:
    process.join(timeout=2)
    code = process.exitcode or 0
    how = f"killed by signal {-code}" if code < 0 else f"ended with code {code}"
    return f"its process was {how}; if memory ran out, use fewer --jobs."


def _work(pipe: Connection) -> None:
    """The main loop of a worker, until the other end of the pipe is closed."""

    def tell(news: News) -> None:
        try:
            pipe.send(news)
        except OSError:
            raise SystemExit from None

    while True:
        try:
            config, unfinished = pipe.recv()
        except (EOFError, OSError):
            return
        tell(_outcome(config, tell, unfinished))


def _outcome(config: Config, tell: Callable[[News], None], unfinished: Unfinished) -> News:
    try:
        with running_code(config.code):  # as in the process that sent the config
            return train_record(config, tell, unfinished)
    except (MtcdError, OSError) as error:
        return Failed(str(error))
    except MemoryError:
        return Failed("memory ran out: use fewer --jobs, samples or features.")
    except Exception:
        return Failed(f"this is a defect of the library:\n{traceback.format_exc()}")


def train_record(
    config: Config, tell: Callable[[float], None] = lambda fraction: None, unfinished: Unfinished | None = None
) -> Record:
    """Train by the config, and return the record to store."""
    reported = monotonic()

    def watch(now: Measurement, fraction: float) -> None:
        nonlocal reported
        if monotonic() - reported >= PATIENCE:
            reported = monotonic()
            tell(float(fraction))

    setup = build(config)
    with (unfinished or Unfinished()).folder(config) as (folder, resume):
        run = setup.train(watch, folder, resume)
    return {
        "config": setup.config.model_dump(mode="json", exclude_none=True),
        "status": run.status,
        "message": run.message,
        "stepsize": run.stepsize if run.stepsize is None else float(run.stepsize),
        "seconds": run.final.seconds,
        "notes": list(setup.data.notes),
        "columns": _columns(run.history.rows, measure_of(config)),
    }


def _columns(rows: Sequence[Measurement], measure: Measure) -> dict[str, list[float]]:
    """The measurements in columns, without any that are not finite."""
    names = COLUMNS[measure]
    table = np.array([[_flat(row)[name] for name in names] for row in rows], dtype=float)  # None becomes nan
    finite = table[np.isfinite(table).all(axis=1)]
    if measure == "accuracy" and not len(finite):
        raise DataError("no test accuracy was measured: the figure needs classes, and data with a test part.")
    return {name: finite[:, j].tolist() for j, name in enumerate(names)}


def _flat(row: Measurement) -> dict[str, float | None]:
    """All that can be kept of a measurement; uplinks and downlinks are links with the server."""
    links = {
        f"{prefix}{link}": float(sum(sent[one] for one in kinds))
        for prefix, sent in (("", row.messages), ("floats_", row.floats))
        for link, kinds in (("client_client", ["client_client"]), ("client_server", ["uplink", "downlink"]))
    }
    return {name: getattr(row, name) for name in PLAIN} | {name: getattr(row, name) for name in LEARNT} | links
