"""One thread that does all the thinking of a party: what arrives, what answers, what falls due, one after the other.

Callbacks of the network only put something into the queue, so nothing in a party needs a lock.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from queue import Empty, SimpleQueue
from time import monotonic

Act = Callable[[], None]
LONGEST_WAIT = 1.0  # so that signals are noticed


class Loop:
    """Runs acts in the order in which they come, and those that wait for a time when it has come."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[Act] = SimpleQueue()
        self._timers: list[tuple[float, int, Act]] = []
        self._count = itertools.count()
        self._stopped = False

    def call(self, act: Act) -> None:
        """From any thread: do this next."""
        self._queue.put(act)

    def later(self, seconds: float, act: Act) -> None:
        """From the loop's own thread: do this in so many seconds."""
        heapq.heappush(self._timers, (monotonic() + seconds, next(self._count), act))

    def stop(self) -> None:
        """From any thread: leave ``run`` after what is being done now."""
        self._stopped = True
        self._queue.put(lambda: None)

    def run(self) -> None:
        """Until stopped. An error of an act ends it."""
        while not self._stopped:
            try:
                act = self._queue.get(timeout=self._until_next())
            except Empty:
                act = _nothing
            act()
            while self._timers and self._timers[0][0] <= monotonic() and not self._stopped:
                heapq.heappop(self._timers)[2]()

    def _until_next(self) -> float:
        return min(max(self._timers[0][0] - monotonic(), 0.0), LONGEST_WAIT) if self._timers else LONGEST_WAIT


def _nothing() -> None:
    pass
