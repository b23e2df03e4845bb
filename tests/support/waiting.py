"""Waiting for something, and how long it may compute, in tests. Nothing here depends on how busy
the machine is."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

# seconds that a test waits at most for what takes a moment, so that one that fails ends at all
PATIENCE = 300.0


def until(done: Callable[[], Any]) -> bool:
    """Wait until it is so; False if it never is."""
    end = time.monotonic() + PATIENCE
    while not (found := bool(done())) and time.monotonic() < end:
        time.sleep(0.02)
    return found


@contextmanager
def computing_at_most(seconds: float) -> Iterator[None]:
    """Fail if the block takes more processor time of this process; other processes do not count."""
    began = time.process_time()
    yield
    assert time.process_time() - began < seconds
