"""The event loop of a party: one thread runs all callbacks for messages, answers and timers in
sequence.

Network callbacks only put actions into its queue, so the state of a party needs no lock.
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

from mtcd.core.errors import MtcdError

T = TypeVar("T")
Action = Callable[[], None]
LONGEST_WAIT_SECONDS = 1.0  # so that signals are handled
SPIN_SECONDS = 0.0003
_yield_cpu = getattr(os, "sched_yield", partial(sleep, 0))


class Loop:
    """Runs actions in order of arrival, and timers when they are due by the ``clock``."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self.now = clock
        """The time in seconds."""
        self._queue: SimpleQueue[Action] = SimpleQueue()
        self._timers: list[tuple[float, int, Action]] = []
        self._count = itertools.count()
        self._stopped = self._spins = False
        self.may_spin = True
        """Whether another thread of this process has nothing urgent to do: set from there."""
        self.turned = self.now()
        """The time of the last turn: at which the loop looked for the next action."""

    def call(self, act: Action) -> None:
        """Queue an action, from any thread."""
        self._queue.put(act)

    def later(self, seconds: float, act: Action) -> None:
        """Run an action after a delay; only from the loop's own thread."""
        # The count keeps actions of one moment in order, and is compared before them.
        heapq.heappush(self._timers, (self.now() + seconds, next(self._count), act))

    def drop_timers(self) -> None:
        """Forget the actions that wait for their time; only from the loop's own thread."""
        self._timers.clear()

    def work(
        self,
        job: Callable[[], T],
        then: Callable[[T], None],
        failed: Callable[[MtcdError], None] | None = None,
    ) -> None:
        """Run a long job in a thread of its own, so that the loop stays responsive; ``then`` runs
        in the loop.

        Without ``failed``, an error of the job ends the loop.
        """

        def run() -> None:
            try:
                found = job()
            # An interrupt too: it came while this thread ran.
            except BaseException as error:  # raised again in the loop
                known = failed if isinstance(error, MtcdError) else None
                self.call(partial(known or _raise, error))  # type: ignore[arg-type]
            else:
                self.call(lambda: then(found))

        # A daemon: a party that ends does not wait for a job that nobody needs.
        Thread(target=run, daemon=True).start()

    def stop(self) -> None:
        """Let ``run`` return after the current action; from any thread."""
        self._stopped = True
        # Wakes a loop that waits.
        self._queue.put(lambda: None)

    def run(self) -> None:
        """Run until stopped, or until an action raises an error."""
        while not self._stopped:
            self.turned = began = self.now()
            # if the last wait was short, spin first: a wake-up takes longer than a hop
            if self._spins:
                while self.may_spin and self._queue.empty() and self.now() - began < SPIN_SECONDS:
                    _yield_cpu()

            wait = LONGEST_WAIT_SECONDS
            if self._timers:
                due, _, _ = self._timers[0]
                wait = min(max(due - self.now(), 0.0), LONGEST_WAIT_SECONDS)
            try:
                act = self._queue.get(timeout=wait)
            except Empty:
                act = _nothing
            self._spins = self.now() - began < SPIN_SECONDS

            act()
            # After every action: a busy queue must not hold up what is due.
            while self._timers and self._timers[0][0] <= self.now() and not self._stopped:
                heapq.heappop(self._timers)[2]()


def _nothing() -> None:
    pass


def _raise(error: BaseException) -> None:
    raise error
