"""Waiting for something, in tests."""

import time
from collections.abc import Callable
from typing import Any


def until(done: Callable[[], Any], seconds: float = 10.0) -> bool:
    """Whether it is so before too long."""
    end = time.monotonic() + seconds
    while not done() and time.monotonic() < end:
        time.sleep(0.02)
    return bool(done())
