"""A clock that counts its readings, for plans that are the same on a fast, a slow and a busy
machine."""

import itertools
from collections.abc import Callable

import pytest

CLOCKED = ("pilots", "planning", "halving", "refine", "screening", "hosted_pilots")
TICK = 50e-6  # about what a hop takes


def use_clock(monkeypatch: pytest.MonkeyPatch, clock: Callable[[], float]) -> None:
    for module in ("training.observer", *(f"planner.{name}" for name in CLOCKED)):
        monkeypatch.setattr(f"mtcd.{module}.perf_counter", clock)


@pytest.fixture
def counted_time(monkeypatch: pytest.MonkeyPatch) -> Callable[[], float]:
    """Each reading of the clock takes a tick, and nothing else takes time."""
    readings = itertools.count()

    def clock() -> float:
        return TICK * next(readings)

    use_clock(monkeypatch, clock)
    return clock
