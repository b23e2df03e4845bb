"""A clock that counts its readings, for plans that are the same on a fast, a slow and a busy
machine."""

import itertools
from collections.abc import Callable

import pytest

TICK = 50e-6  # about what a hop takes


def use_clock(monkeypatch: pytest.MonkeyPatch, clock: Callable[[], float]) -> None:
    for module in ("budget", "planning"):
        monkeypatch.setattr(f"mtcd.planner.{module}.process_time", clock)


@pytest.fixture
def counted_time(monkeypatch: pytest.MonkeyPatch) -> Callable[[], float]:
    """Each reading of the clock takes a tick, and nothing else takes time."""
    readings = itertools.count()

    def clock() -> float:
        return TICK * next(readings)

    use_clock(monkeypatch, clock)
    return clock
