"""A connection before it is one: from the socket to the certificate and the opening of the other
end.

Nothing waits here. Whoever watches the sockets calls ``go_on`` when there is something to do.
"""

from __future__ import annotations

import errno
import os
import socket
import ssl
from contextlib import suppress
from time import monotonic

from mtcd.core.errors import WireError
from mtcd.federation.connections.refusals import CERTIFICATE, CLOSED, NAME, TLS, group_of
from mtcd.federation.connections.tls import ShownCertificate, TlsSocket, is_about_certificates
from mtcd.federation.connections.wire import (
    OPENING_HEAD_BYTES,
    Opening,
    decode_opening,
    opening_bytes,
)

RECEIVED_BYTES = 16 * 1024  # at a time
MOST_BYTES = 64 * 1024  # that an end may send until it is known


class RefusedError(Exception):
    """A connection that is refused, with one of the reasons in ``refusals``."""

    def __init__(self, reason: str, why: str) -> None:
        super().__init__(why)
        self.reason = reason


class Handshake:
    """One connection that comes about.

    Parameters
    ----------
    plain
        A socket that does not block.
    context
        The TLS context of this end.
    host
        The host that is called; None for an accepted connection.
    address
        The number of the other end.
    federation, me
        For the openings.
    names
        By the name on a certificate, the member that is expected with it.
    revoked
        The serial numbers of revoked certificates.
    """

    def __init__(
        self,
        plain: socket.socket,
        context: ssl.SSLContext,
        host: str | None,
        address: str,
        federation: str,
        me: str,
        names: dict[str, str],
        revoked: frozenset[int],
    ) -> None:
        self.tls = TlsSocket(plain, context, host)
        self.calls = host is not None
        self.is_connecting = self.calls
        """Whether TCP has not connected yet."""
        self.address, self.group = address, group_of(address)
        self.has_spoken = False
        self.began = monotonic()
        self._federation, self._me, self._names = federation, me, names
        self._revoked = revoked
        self._left = MOST_BYTES
        self.peer = ""
        """The member at the other end, once its certificate is known."""
        self.identity: ShownCertificate | None = None
        self._head, self._content = bytearray(OPENING_HEAD_BYTES), bytearray()
        self._target = memoryview(self._head)

    def go_on(self) -> bool:
        """Do what can be done now; whether the connection is complete.

        Raises
        ------
        RefusedError
            It never will be. While ``is_connecting``: the host does not accept connections.
        """
        try:
            return self._go_on()
        except ssl.SSLError as error:
            # Before this end closes: an honest end learns from the alert what was wrong.
            self._say_why()
            reason = TLS
            if is_about_certificates(error):
                reason = CERTIFICATE
            raise RefusedError(reason, _words(error)) from None
        except WireError as error:
            raise RefusedError(TLS, str(error)) from None
        except OSError:
            raise RefusedError(CLOSED, "the other end closed the connection") from None

    def _go_on(self) -> bool:
        if self.is_connecting:
            failed = self.tls.plain.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if failed:
                raise OSError(failed, os.strerror(failed))
            self.is_connecting = False
        else:
            self._receive()
        if self.identity is None:
            shaken = self.tls.shake_hands()
            self._flush()
            if not shaken:
                return False
            self.identity = self.tls.identity()
            self.peer = self._member(self.identity)
            # Who calls speaks first: who is called shows nothing to an end that has no certificate.
            if self.calls:
                self._speak()
        if not self._has_opening():
            return False
        if not self.calls:
            self._speak()
        return True

    def _receive(self) -> None:
        try:
            received = self.tls.plain.recv(RECEIVED_BYTES)
        except BlockingIOError:
            return
        if not received:
            raise ConnectionResetError(errno.ECONNRESET, "closed")
        self.has_spoken = True
        self._left -= len(received)
        # Once it is known, the limit of frames holds in its place.
        if self._left < 0 and self.identity is None:
            raise RefusedError(TLS, "the handshake is too long")
        self.tls.feed(received)

    def _flush(self) -> None:
        if not self.tls.flush():
            raise RefusedError(TLS, "the other end does not read the handshake")

    def _say_why(self) -> None:
        """Send the alert of TLS, which says to an honest end what was wrong."""
        with suppress(OSError):
            self.tls.flush()

    def _member(self, identity: ShownCertificate) -> str:
        # The authority signed it all the same: the list of the bundle is what takes it back.
        if identity.serial in self._revoked:
            raise RefusedError(CERTIFICATE, "the certificate was revoked")
        peer = self._names.get(identity.certificate)
        if peer is None:
            whose = identity.certificate[:64]
            expected = ""
            if self.calls:
                expected = f", not of {', '.join(self._names)}"
            raise RefusedError(NAME, f"the certificate is of {whose!r}{expected}")
        return peer

    def _speak(self) -> None:
        self.tls.write(Opening(self._federation, self._me, self.peer).encode())
        self._flush()

    def _has_opening(self) -> bool:
        """Whether the opening of the other end is there, and says what its certificate says."""
        while self._target or not self._content:
            if self._target:
                count = self.tls.read_into(self._target)
                if count == 0:
                    return False
                self._target = self._target[count:]
            elif not self._content:
                self._content = bytearray(opening_bytes(bytes(self._head)))
                self._target = memoryview(self._content)

        # What it says of itself must be what its certificate says, and meant for this member: a
        # connection that is forwarded to another one is refused.
        found = decode_opening(bytes(self._content))
        if found != Opening(self._federation, self.peer, self._me):
            raise RefusedError(
                NAME,
                f"{self.peer} speaks as {found.sender[:64]!r} of {found.federation[:64]!r} to "
                f"{found.receiver[:64]!r}",
            )
        return True


def _words(error: ssl.SSLError) -> str:
    """What was wrong, without places in the source of OpenSSL."""
    told = getattr(error, "verify_message", None) or error.reason or "the connection is not TLS"
    return str(told).replace("_", " ").lower()
