"""Runs pieces of work in forks of this process, several at a time, each with a limit of processor
time."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Generic, TypeVar

CANNOT_RUN = (3, 70)  # an error of pytest's own, and an exception outside of tests
T = TypeVar("T")


@dataclass
class Outcome:
    """How a fork ended."""

    status: str
    """passed, failed, or too long"""
    seconds: float
    said: str


@dataclass
class Task(Generic[T]):
    """What a fork does, given the number of its slot; its result is the exit code."""

    about: T
    act: Callable[[int], int]
    seconds: int
    """Of processor time."""


@dataclass
class _Running:
    task: Task[Any]
    slot: int
    log: IO[bytes]
    scratch: Path
    began: float


def run_all(tasks: Iterable[Task[T]], jobs: int) -> Iterator[tuple[T, Outcome]]:
    """The outcome of each as soon as it ends, so many at a time; they write their temporary files
    into a folder that is removed."""
    waiting, running, slots = iter(tasks), dict[int, _Running](), list(range(jobs))
    try:
        while True:
            while slots and (task := next(waiting, None)) is not None:
                child, started = _fork(task, slots.pop())
                running[child] = started
            if not running:
                return
            child, status, used = os.wait4(-1, 0)
            done = running.pop(child)
            slots.append(done.slot)
            yield done.task.about, _outcome(child, status, used.ru_utime + used.ru_stime, done)
    finally:
        for child in running:
            _end_group(child)


def _fork(task: Task[Any], slot: int) -> tuple[int, _Running]:
    log = tempfile.TemporaryFile()  # noqa: SIM115, closed when the fork has ended
    scratch = Path(tempfile.mkdtemp(prefix="mutants-"))
    sys.stdout.flush()
    child = os.fork()
    if child:
        return child, _Running(task, slot, log, scratch, time.monotonic())
    code = 70
    try:
        _enter(log.fileno(), task.seconds, scratch)
        code = int(task.act(slot))
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _enter(log: int, seconds: int, scratch: Path) -> None:
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    signal.alarm(10 * seconds)  # for one that waits instead of computing
    os.dup2(log, 1)
    os.dup2(log, 2)
    tempfile.tempdir = os.environ["TMPDIR"] = os.environ["PYTEST_DEBUG_TEMPROOT"] = str(scratch)


def _outcome(child: int, status: int, spent: float, done: _Running) -> Outcome:
    _end_group(child)
    shutil.rmtree(done.scratch, ignore_errors=True)
    with done.log as log:
        log.seek(0)
        said = log.read().decode(errors="replace")
    code = os.waitstatus_to_exitcode(status)
    if code in CANNOT_RUN:
        raise SystemExit(f"The tests could not be run:\n{said[-3000:]}")
    name = (
        "too long"
        if code in (-signal.SIGXCPU, -signal.SIGALRM)
        else "passed"
        if code == 0
        else "failed"
    )
    return Outcome(name, min(spent, time.monotonic() - done.began), said[-5000:])


def _end_group(leader: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
