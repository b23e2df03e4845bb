"""An open connection to a member: its thread sends without waiting, another one receives."""

from __future__ import annotations

import ssl
from collections import deque
from collections.abc import Callable
from threading import Lock
from time import monotonic

from mtcd.federation.connections.tls import TlsSocket
from mtcd.federation.connections.wire import Frame, FrameReader, frame_head

PIECE_BYTES = 64 * 1024  # that are encrypted at a time: the other end decrypts meanwhile
SMALL_BYTES = 15 * 1024  # head and body then fit into one record of TLS
FRAME_COST_BYTES = 500  # of a frame in memory, besides its body
MOST_UNSENT_TLS_BYTES = 2**20


class Connection:
    """A connection to one member, whose certificate was checked.

    Parameters
    ----------
    peer
        The name of the member.
    tls
        The socket, after the handshake and the openings.
    until
        When the certificate of either end expires, in seconds since 1970.
    longest
        The most bytes of a body.
    """

    def __init__(self, peer: str, tls: TlsSocket, until: float, longest: int) -> None:
        self.peer, self.tls, self.until = peer, tls, until
        self.attend: Callable[[Connection], None] = _leave
        """Called, from any thread, if the carrier has to look after this connection: what is to be
        sent waits for the socket, there is room again for what arrives, or the connection is
        lost."""
        self._reader = FrameReader(longest)
        self._longest = longest
        self._lock = Lock()  # TLS is for one thread at a time
        self._unsent: deque[bytes | memoryview] = deque()
        self.unsent_bytes = 0
        """Of messages that wait for the socket."""
        self.unread_bytes = 0
        """Of frames that have arrived, and were not handled yet."""
        self.ended = False
        """Whether nothing can be sent any more."""
        self.blocked = False
        """Whether something waits for the socket."""
        self.is_over = False
        """Whether nothing more can be read: it is not encrypted as agreed."""
        self.paused = False
        """Whether nothing is read for now; for the carrier."""
        self.began = self.heard = self.spoke = monotonic()
        """When it was opened; when the last bytes came, and when the last were sent."""

    # Sending, from any thread

    def send(self, what: int, kind: str, number: int, body: bytes | bytearray) -> None:
        """Send a frame: now as far as the socket takes it, and the rest when it takes more."""
        head = frame_head(what, kind, number, len(body))
        with self._lock:
            if self.ended:
                return
            # One record of TLS for head and body: the other end need not wait for a second one.
            if len(body) <= SMALL_BYTES:
                self._unsent.append(head + body)
            else:
                whole = memoryview(body)
                self._unsent.append(head)
                for start in range(0, len(body), PIECE_BYTES):
                    self._unsent.append(whole[start : start + PIECE_BYTES])
            self.unsent_bytes += len(head) + len(body)
            # The carrier was asked already, and watches the socket.
            waited = self.blocked
            self._send_on()
            needs_attention = self.ended or (self.blocked and not waited)
        # Outside of the lock: who attends may take it.
        if needs_attention:
            self.attend(self)

    def send_on(self) -> None:
        """Send more, as the socket takes more."""
        with self._lock:
            self._send_on()

    def _send_on(self) -> None:
        try:
            self.blocked = self.blocked and not self.tls.flush()
            # Only when all that was encrypted has left is more encrypted: little waits twice.
            while self._unsent and not self.blocked:
                piece = self._unsent.popleft()
                self.tls.write(piece)
                self.unsent_bytes -= len(piece)
                self.blocked = not self.tls.flush()
                self.spoke = monotonic()
        except (OSError, ssl.SSLError):
            self.ended = self.blocked = True

    def say_end(self) -> None:
        """Send that nothing more comes; what was not sent is given up."""
        with self._lock:
            if not self.ended:
                self.ended = True
                try:
                    self.tls.say_end()
                    self.tls.flush()
                except (OSError, ssl.SSLError):
                    pass

    def close(self) -> None:
        """Close the socket, between two uses of it."""
        with self._lock:
            self.ended = True
            self.tls.plain.close()

    # Receiving, in the thread of the carrier

    def receive(self, received: memoryview) -> list[Frame]:
        """Decrypt what the socket has received; the frames that are complete.

        Raises
        ------
        WireError
            It is no frame, or one that is too long.
        ssl.SSLError
            The other end makes this one say more than it reads.
        """
        self.heard = monotonic()
        with self._lock:
            self.tls.feed(received)
        return self.read()

    def read(self) -> list[Frame]:
        """The frames that are complete, of all that was received."""
        frames = []
        reader = self._reader
        with self._lock:  # for all of it, not for each record
            try:
                while count := self.tls.read_into(reader.target):
                    frame = reader.advance(count)
                    if frame is not None:
                        frames.append(frame)
                        self.unread_bytes += FRAME_COST_BYTES + len(frame.body)
            except ssl.SSLError:
                self.is_over = True  # what came before it counts
                return frames

        self._flush_replies()
        return frames

    def _flush_replies(self) -> None:
        """TLS may have something to say itself, such as a new key; never much."""
        if self.tls.encrypted_bytes and not self.blocked:
            with self._lock:
                self.blocked = True
                self._send_on()
            if self.blocked:
                self.attend(self)
        # A peer could ask for new keys for ever, and never read them.
        if self.tls.encrypted_bytes > PIECE_BYTES + MOST_UNSENT_TLS_BYTES:
            raise ssl.SSLError("the other end asks for more than it reads")

    def handled(self, frame: Frame) -> None:
        """Note that a frame is done with; from any thread."""
        with self._lock:
            before = self.unread_bytes
            self.unread_bytes -= FRAME_COST_BYTES + len(frame.body)
            has_room = before > self._longest >= self.unread_bytes
        if has_room:
            self.attend(self)

    @property
    def is_full(self) -> bool:
        """Whether so much has arrived and was not handled that nothing more is read."""
        return self.unread_bytes > self._longest


def _leave(connection: Connection) -> None:
    """Nobody carries the connection yet, and will look at it then."""
