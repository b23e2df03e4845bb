"""An operator that watches a run learns its end from every party before the links close.

The operator cannot be called: it asks. A party that was asked for its status repeatedly stays after
the end until it is asked once more, and so has told how the run ended for it; not longer than such
an operator takes to ask again.
"""

from __future__ import annotations

from collections.abc import Callable

from mtcd.federation.node.loop import Loop

LONGEST_INTERVAL = 15.0
"""Seconds between two requests: who asks less often does not watch, and nobody waits for the next
one."""
SLACK_SECONDS = 2.0
ANSWER_SECONDS = 0.2  # for the answer to be sent


class Watched:
    """The requests of the operator for the status of one party."""

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self._last: float | None = None
        self._interval: float | None = None
        self._then: Callable[[], None] | None = None

    def asked(self) -> None:
        """The operator asks, and is answered."""
        now = self.loop.now()
        self._interval = None if self._last is None else now - self._last
        self._last = now
        if self._then is not None:
            self.loop.later(ANSWER_SECONDS, self._leave)

    @property
    def silence_seconds(self) -> float:
        """For how many seconds the next request is worth waiting for; 0 if nobody watches."""
        if self._last is None or self._interval is None or self._interval > LONGEST_INTERVAL:
            return 0.0
        expected = self._last + 2 * self._interval + SLACK_SECONDS
        return max(0.0, expected - self.loop.now())

    def leave(self, then: Callable[[], None]) -> None:
        """Call ``then`` when an operator that watches has asked once more, or does not ask
        again."""
        self._then = then
        if self.silence_seconds:
            self.loop.later(self.silence_seconds, self._leave)
        else:
            self._leave()

    def _leave(self) -> None:
        then, self._then = self._then, None
        if then is not None:
            then()
