"""One thread that does all the thinking of a party: what arrives, what answers, what falls due, one after the other.

Callbacks of the network only put something into the queue, so nothing in a party needs a lock.
"""

from __future__ import annotations

import heapq
import itertools
import os
from collections.abc import Callable
from functools import partial
from queue import Empty, SimpleQueue
from threading import Thread
from time import monotonic, sleep
from typing import TypeVar

from mtcd.errors import MtcdError

T = TypeVar("T")
Act = Callable[[], None]
LONGEST_WAIT = 1.0  # so that signals are noticed
MOMENT = 0.0003  # seconds
_let_others = getattr(os, "sched_yield", partial(sleep, 0))


class Loop:
    """Runs acts in the order in which they come, and those that wait for a time of the ``clock`` when it has come."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self.now = clock
        """The time in seconds."""
        self._queue: SimpleQueue[Act] = SimpleQueue()
        self._timers: list[tuple[float, int, Act]] = []
        self._count = itertools.count()
        self._stopped = self._brisk = False

    def call(self, act: Act) -> None:
        """From any thread: do this next."""
        self._queue.put(act)

    def later(self, seconds: float, act: Act) -> None:
        """From the loop's own thread: do this in so many seconds."""
        heapq.heappush(self._timers, (self.now() + seconds, next(self._count), act))

    def work(
        self, job: Callable[[], T], then: Callable[[T], None], failed: Callable[[MtcdError], None] | None = None
    ) -> None:
        """Do something long in a thread of its own, so that the loop goes on answering; ``then`` runs in the loop.

        Without ``failed``, an error of the job ends the loop.
        """

        def run() -> None:
            try:
                found = job()
            except BaseException as error:  # raised again in the loop
                known = failed if isinstance(error, MtcdError) else None
                self.call(partial(known or _raise, error))  # type: ignore[arg-type]
            else:
                self.call(lambda: then(found))

        Thread(target=run, daemon=True).start()

    def stop(self) -> None:
        """From any thread: leave ``run`` after what is being done now."""
        self._stopped = True
        self._queue.put(lambda: None)

    def run(self) -> None:
        """Until stopped. An error of an act ends it."""
        while not self._stopped:
            self._next()()
            while self._timers and self._timers[0][0] <= self.now() and not self._stopped:
                heapq.heappop(self._timers)[2]()

    def _next(self) -> Act:
        """What is to be done next, when it has come. Who was last kept waiting for a moment only, first waits awake:
        to fall asleep and be woken up takes longer than many a hop.
        """
        began = self.now()
        if self._brisk:
            while self._queue.empty() and self.now() - began < MOMENT:
                _let_others()
        try:
            act = self._queue.get(timeout=self._until_next())
        except Empty:
            act = _nothing
        self._brisk = self.now() - began < MOMENT
        return act

    def _until_next(self) -> float:
        return min(max(self._timers[0][0] - self.now(), 0.0), LONGEST_WAIT) if self._timers else LONGEST_WAIT


def _nothing() -> None:
    pass


def _raise(error: BaseException) -> None:
    raise error
