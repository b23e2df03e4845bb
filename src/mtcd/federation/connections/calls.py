"""The peers that a member calls: when each is called next, and at which addresses."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from random import uniform
from threading import Thread
from time import monotonic

from mtcd.federation.names import Address

FIRST_DELAY_SECONDS, LONGEST_DELAY_SECONDS = 0.05, 0.5
STABLE_SECONDS = 2.0  # after so long, a connection that is lost is called again at once


@dataclass
class Call:
    """One peer to be called."""

    peer: str
    place: Address
    due: float = 0.0
    delay: float = FIRST_DELAY_SECONDS
    is_busy: bool = False
    """Whether it is being called, or is connected."""
    is_open: bool = False
    """Whether it is connected."""
    addresses: list[tuple[int, tuple[object, ...]]] = field(default_factory=list)
    """What is still to be tried: families and addresses of sockets."""

    since: float = 0.0
    """When the last connection was opened."""

    def opened(self) -> None:
        """Note that the connection stands."""
        self.addresses, self.is_busy, self.is_open = [], True, True
        self.since = monotonic()

    def lost(self) -> None:
        """Call again: at once, unless the connection did not last."""
        if monotonic() - self.since > STABLE_SECONDS:
            self.delay = FIRST_DELAY_SECONDS
        self.wait()

    def wait(self) -> None:
        """Call again later, and later each time. Not all at the same moment."""
        self.is_busy = self.is_open = False
        # Spread over a fifth: after a cut all parties would call at the same moments.
        self.due = monotonic() + self.delay * uniform(0.8, 1.0)
        self.delay = min(2 * self.delay, LONGEST_DELAY_SECONDS)

    def resolve(self, found: Callable[[], None]) -> None:
        """Look the addresses up, and call ``found``: at once for a number, from a thread for a
        name, which may take long."""
        self.is_busy = True
        if self.place.ip is not None:
            self._look_up()
            found()
            return

        def run() -> None:
            self._look_up()
            found()

        Thread(target=run, daemon=True).start()

    def _look_up(self) -> None:
        try:
            # A name is looked up again for each call: its host may have moved.
            listed = socket.getaddrinfo(self.place.host, self.place.port, type=socket.SOCK_STREAM)
        except OSError:
            listed = []
        self.addresses = [(int(family), where) for family, _, _, _, where in dict.fromkeys(listed)]
