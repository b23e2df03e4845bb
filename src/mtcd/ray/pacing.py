"""When the parties are held: at the observations that the observer wants, and in between for
snapshots."""

from __future__ import annotations

from time import perf_counter

SNAPSHOT_SHARE = 50.0  # taking snapshots takes no more than 1/50 of the time


class Pacing:
    """The next observation, the next snapshot, and the iterations per second, from which the latter
    follows."""

    def __init__(self, snapshot_seconds: float) -> None:
        self.due: float = 0
        """The iteration from which the observer wants the next observation."""
        self.last = -1
        """The iteration of the latest observation that was yielded."""
        self._least = self._spacing = snapshot_seconds
        self._snapshot_due = 0.0
        self._rate: float | None = None
        self._released: tuple[float, int] | None = None

    @property
    def wanted(self) -> float:
        """The iteration of the next observation; after a fault, none is reported twice."""
        return max(self.due, self.last + 1)

    def hold_from(self, hop: int) -> float:
        """The iteration at which the parties are held next: that of the observer, or earlier for a
        snapshot."""
        if self._rate is None:
            # nothing is known of the pace yet: soon, and then twice as late every time
            return min(self.wanted, 2 * hop + 10)
        return min(self.wanted, hop + max(1, int(self._rate * self._spacing)))

    def released(self, hop: int | None) -> None:
        """The parties continue from this iteration; None if it is not known."""
        self._released = None
        if hop is not None:
            self._released = perf_counter(), hop

    def reached(self, hop: int) -> None:
        """The parties have come to this iteration."""
        # not from held to held: snapshots and measurements are no part of the pace
        if self._released is not None and hop > self._released[1]:
            began, before = self._released
            self._rate = (hop - before) / max(perf_counter() - began, 1e-6)

    @property
    def snapshot_due(self) -> bool:
        """Whether it is time for a snapshot."""
        return perf_counter() >= self._snapshot_due

    def snapshot_took(self, seconds: float) -> None:
        """A snapshot was taken."""
        self._spacing = max(self._least, SNAPSHOT_SHARE * seconds)
        self._snapshot_due = perf_counter() + self._spacing
