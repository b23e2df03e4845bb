"""Connections that were refused: counted by reason, and told a few times a second at most."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from time import monotonic

CLOSED, TLS, CERTIFICATE, NAME = "closed", "tls", "certificate", "name"
DEADLINE, LIMIT, RESOURCES, FRAME = "deadline", "limit", "resources", "frame"
REASONS = (CLOSED, TLS, CERTIFICATE, NAME, DEADLINE, LIMIT, RESOURCES, FRAME)
"""Why a connection is refused: a fixed set, whatever strangers send."""
INTERVAL_SECONDS = 1.0


@dataclass
class Refused:
    """Connections that were refused for one reason since it was told last."""

    count: int = 0
    address: str = ""
    """Where the last one came from."""
    why: str = ""


class Refusals:
    """Collects refusals from several threads, and passes them on together.

    Parameters
    ----------
    tell
        Gets the refusals by reason. Called by whoever calls ``add`` or ``pass_on``.
    """

    def __init__(self, tell: Callable[[dict[str, Refused]], None]) -> None:
        self._tell = tell
        self._lock = Lock()
        self._new: dict[str, Refused] = {}
        self._told = -INTERVAL_SECONDS

    def add(self, reason: str, address: str, why: str) -> None:
        """Count a refusal, one of ``REASONS``; it is told now, or with others a little later."""
        with self._lock:
            one = self._new.setdefault(reason, Refused())
            one.count += 1
            one.address, one.why = address, why
        self.pass_on()

    def pass_on(self, now: bool = False) -> None:
        """Tell what is new, if that was not done within the last second; else only if ``now``."""
        with self._lock:
            moment = monotonic()
            if not self._new or (not now and moment - self._told < INTERVAL_SECONDS):
                return
            # Taken under the lock, told outside of it: who is told may refuse something.
            new, self._new, self._told = self._new, {}, moment
        self._tell(new)
