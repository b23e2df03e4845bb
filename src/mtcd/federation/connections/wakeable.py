"""A selector that another thread can wake."""

from __future__ import annotations

import selectors
import socket
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any


class WakeableSelector:
    """Waits for sockets, and runs what other threads ask for.

    Examples
    --------
    >>> selector, heard = WakeableSelector(), []
    >>> selector.call(lambda: heard.append("called"))
    >>> selector.wait(1.0), heard
    ([], ['called'])
    >>> selector.close()
    """

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._inside, self._outside = socket.socketpair()
        for end in (self._inside, self._outside):
            end.setblocking(False)
        self._calls: deque[Callable[[], None]] = deque()
        self._selector.register(self._inside, selectors.EVENT_READ, None)

    def call(self, act: Callable[[], None]) -> None:
        """Run something in the thread that waits; from any thread."""
        # First the call, then the byte that wakes: the other way round the thread could miss it.
        self._calls.append(act)
        with suppress(OSError):  # it is full, and so wakes it already; or all has ended
            self._outside.send(b".")

    def wait(self, seconds: float) -> list[tuple[Any, int]]:
        """Wait for sockets at most so long; what they were watched with, and what they are ready
        for."""
        ready = self._selector.select(max(seconds, 0.0))
        found = [(key.data, events) for key, events in ready if key.data is not None]
        # One of them is the waking socket: emptied, or it would wake for ever.
        if len(found) < len(ready):
            with suppress(OSError):
                self._inside.recv(4096)
        while self._calls:
            self._calls.popleft()()
        return found

    def watch(self, sock: socket.socket, events: int, data: Any) -> None:
        """Watch a socket, for these events from now on."""
        # Mostly watched already: the exception is the rarer way.
        try:
            self._selector.modify(sock, events, data)
        except KeyError:
            self._selector.register(sock, events, data)

    def forget(self, sock: socket.socket) -> None:
        """Watch a socket no more."""
        with suppress(KeyError, ValueError, OSError):
            self._selector.unregister(sock)

    def close(self) -> None:
        """Close what it has open, but no socket that it watched."""
        self._selector.close()
        self._inside.close()
        self._outside.close()
