"""Carries frames over all open connections of a member, in a thread.

It notices what is lost: a connection that is closed, over which nothing comes for longer than the
lease, or whose certificate expires. While a member has not handled what has arrived, nothing more
is read from its sender, so a fast sender fills no memory; one that asks but reads no answers is cut
off.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from selectors import EVENT_READ, EVENT_WRITE
from threading import Thread
from time import monotonic, time

from mtcd.core.errors import WireError
from mtcd.federation.connections.connection import Connection
from mtcd.federation.connections.refusals import CERTIFICATE, FRAME
from mtcd.federation.connections.wakeable import WakeableSelector
from mtcd.federation.connections.wire import ALIVE, Frame

RECEIVED_BYTES = 256 * 1024  # at a time
LARGE_BYTES = 32 * 1024
LONGEST_TICK_SECONDS = 1.0
CLOSING_SECONDS = 1.0  # to send what waits, and for the other ends to close too
UNREAD_MESSAGES = 4  # of the largest size, of which the other end reads nothing: it is cut off


class Carrier:
    """All open connections, by the name of the member.

    Parameters
    ----------
    lease_seconds
        After so long without a byte, a connection counts as lost. Each end says something at
        least twice as often.
    longest
        The most bytes of a message.
    opened, lost
        Get a connection. Like all callbacks here, they run in the thread of the carrier.
    arrived
        Gets a connection and a frame; the receiver calls ``connection.handled(frame)`` afterwards.
    refused
        Gets the reason, the name of a member, and a text: why its connection was cut off.
    receiving
        Gets whether much is being decrypted, so that other threads leave the interpreter to this
        one.
    """

    def __init__(
        self,
        lease_seconds: float,
        longest: int,
        opened: Callable[[Connection], None],
        lost: Callable[[Connection], None],
        arrived: Callable[[Connection, Frame], None],
        refused: Callable[[str, str, str], None],
        receiving: Callable[[bool], None],
    ) -> None:
        self._lease, self._longest = lease_seconds, longest
        self._opened, self._lost = opened, lost
        self._arrived, self._refused = arrived, refused
        self._receiving = receiving
        self._selector = WakeableSelector()
        self._connections: dict[str, Connection] = {}
        self._buffer = memoryview(bytearray(RECEIVED_BYTES))
        self._close_at: float | None = None
        self._thread = Thread(target=self._run, name="mtcd connections", daemon=True)

    def start(self) -> None:
        """Start the thread that sends and receives; connections may be added before."""
        self._thread.start()

    def add(self, connection: Connection) -> None:
        """Carry a connection from now on, in place of an earlier one to the same member; from any
        thread."""
        self._selector.call(lambda: self._add(connection))

    def close(self) -> None:
        """Send what waits, close all connections, and wait for it; not for long."""
        self._selector.call(self._begin_to_close)
        self._thread.join(2 * CLOSING_SECONDS)

    # In the thread

    def _run(self) -> None:
        tick = min(self._lease / 4, LONGEST_TICK_SECONDS)
        next_tick = last = monotonic()
        # After close it goes on as long as there is something to send, and no longer.
        while self._close_at is None or (self._connections and monotonic() < self._close_at):
            until = next_tick if self._close_at is None else min(next_tick, self._close_at)
            for connection, events in self._selector.wait(until - monotonic()):
                if events & EVENT_WRITE:
                    self._send_on(connection)
                if events & EVENT_READ:
                    self._receive(connection)

            now = monotonic()
            if now >= next_tick:
                # a process that was held itself does not know who was silent meanwhile
                self._look_around(now, was_held=now - last > self._lease / 2)
                next_tick = now + tick
            last = now

        for connection in list(self._connections.values()):
            self._remove(connection)
        self._selector.close()

    def _add(self, connection: Connection) -> None:
        if self._close_at is not None:
            connection.close()
            return
        # The peer has opened a new one: over the old one nothing more will come.
        before = self._connections.get(connection.peer)
        if before is not None:
            self._remove(before)
        # Before it is in the table: from then on any thread may send over it.
        connection.attend = self._needs_attention
        self._connections[connection.peer] = connection
        self._opened(connection)
        self._watch(connection)
        self._guarded(connection, connection.read)  # what came together with the opening

    def _needs_attention(self, connection: Connection) -> None:
        self._selector.call(lambda: self._attend(connection))

    def _attend(self, connection: Connection) -> None:
        if self._connections.get(connection.peer) is not connection:
            return
        if connection.ended and self._close_at is None:
            self._remove(connection)
        else:
            self._watch(connection)

    def _watch(self, connection: Connection) -> None:
        events = EVENT_WRITE if connection.blocked and not connection.ended else 0
        if not connection.is_full:
            events |= EVENT_READ
        if connection.paused and not connection.is_full:
            connection.heard = monotonic()  # while nothing was read, nothing could be heard
        connection.paused = connection.is_full
        if events:
            self._selector.watch(connection.tls.plain, events, connection)
        # Selectors wait for something or not at all: without events a socket is forgotten.
        else:
            self._selector.forget(connection.tls.plain)

    def _send_on(self, connection: Connection) -> None:
        connection.send_on()
        if connection.ended:
            self._remove(connection)
        elif not connection.blocked:
            self._watch(connection)
            if self._close_at is not None:
                self._end(connection)

    def _receive(self, connection: Connection) -> None:
        # Removed by an earlier event of this round.
        if self._connections.get(connection.peer) is not connection:
            return
        try:
            count = connection.tls.plain.recv_into(self._buffer)
        except BlockingIOError:
            return
        except OSError:
            count = 0
        if count == 0:
            self._remove(connection)
        elif not connection.ended:
            # Only for much: to take the interpreter from the loop costs more than a small frame.
            if count > LARGE_BYTES:
                self._receiving(True)
            self._guarded(connection, lambda: connection.receive(self._buffer[:count]))
            if count > LARGE_BYTES:
                self._receiving(False)

    def _guarded(self, connection: Connection, read: Callable[[], list[Frame]]) -> None:
        """Pass on the frames that arrive; a peer that sends something else is cut off."""
        try:
            for frame in read():
                if frame.what == ALIVE:
                    connection.handled(frame)
                else:
                    self._arrived(connection, frame)
        except WireError as error:
            # What is no frame comes from a defect or an attack: nothing behind it can be trusted.
            self._cut_off(connection, FRAME, str(error))
        except (OSError, ssl.SSLError):  # it has ended
            self._remove(connection)
        else:
            if connection.is_over:
                self._remove(connection)
            elif connection.is_full:
                self._watch(connection)

    def _look_around(self, now: float, was_held: bool) -> None:
        date = time()
        for connection in list(self._connections.values()):
            silent = now - connection.heard > self._lease
            # Certificates are looked at for as long as a connection stands, not only when it is
            # opened.
            if connection.until < date:
                self._cut_off(connection, CERTIFICATE, "the certificate of either end has expired")
            elif connection.unsent_bytes > UNREAD_MESSAGES * self._longest:
                self._cut_off(connection, FRAME, "it does not read what is sent to it")
            elif silent and not connection.paused and not was_held:
                self._remove(connection)
            else:
                if was_held:
                    connection.heard = now
                # Well before half of the lease is over: a process that is busy may be late.
                if now - connection.spoke > self._lease / 8:
                    connection.send(ALIVE, "", 0, b"")

    def _cut_off(self, connection: Connection, reason: str, why: str) -> None:
        self._refused(reason, connection.peer, why)
        self._remove(connection)

    def _remove(self, connection: Connection) -> None:
        self._selector.forget(connection.tls.plain)
        connection.close()
        # A newer connection of this peer may stand in its place.
        if self._connections.get(connection.peer) is connection:
            del self._connections[connection.peer]
            self._lost(connection)

    # Closing

    def _begin_to_close(self) -> None:
        self._close_at = monotonic() + CLOSING_SECONDS
        for connection in list(self._connections.values()):
            if not connection.blocked:
                self._end(connection)

    def _end(self, connection: Connection) -> None:
        """Tell the other end, and wait until it closes: else it might not get what was sent last."""
        connection.say_end()
        try:
            connection.tls.plain.shutdown(1)
        except OSError:
            self._remove(connection)
        else:
            self._selector.watch(connection.tls.plain, EVENT_READ, connection)
