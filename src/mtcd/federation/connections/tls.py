"""TLS of a connection: contexts from a bundle, and a socket of which nothing ever waits.

Encryption works on buffers in memory, apart from the socket: what is encrypted is kept until the
socket takes it, and a large message passes with few calls of the system.
"""

from __future__ import annotations

import socket
import ssl
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from mtcd.core.errors import WireError
from mtcd.federation.transport import CA_FILE, CERTIFICATE_FILE, KEY_FILE

MISSING = "PEER_DID_NOT_RETURN_A_CERTIFICATE"


def listening_context(folder: Path) -> ssl.SSLContext:
    """For accepted connections: the other end must show a certificate of the authority."""
    context = _context(ssl.PROTOCOL_TLS_SERVER, folder)
    # Both ends show one: TLS asks clients for none by itself.
    context.verify_mode = ssl.CERT_REQUIRED
    context.num_tickets = 0  # no session is resumed
    return context


def calling_context(folder: Path) -> ssl.SSLContext:
    """For connections that are opened here: the certificate must be bound to the host called."""
    return _context(ssl.PROTOCOL_TLS_CLIENT, folder)


def _context(protocol: int, folder: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    # Nothing older: all members have this library, and so a recent TLS.
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_verify_locations(folder / CA_FILE)
    context.load_cert_chain(folder / CERTIFICATE_FILE, folder / KEY_FILE)
    return context


class ShownCertificate(NamedTuple):
    """Whose certificate the other end has shown."""

    certificate: str
    """The name on it."""
    serial: int
    until: float
    """When it expires, in seconds since 1970."""


def is_about_certificates(error: ssl.SSLError) -> bool:
    """Whether a handshake failed because there is no certificate, or not a good one."""
    return isinstance(error, ssl.SSLCertVerificationError) or error.reason == MISSING


class TlsSocket:
    """A socket that does not block, and the encryption over it.

    Parameters
    ----------
    plain
        A connected socket, or one that is being connected.
    context
        Of ``listening_context`` or ``calling_context``.
    host
        The host that was called; None for an accepted connection.
    """

    __slots__ = ("_encrypted", "_incoming", "_outgoing", "_tls", "plain", "write")

    def __init__(self, plain: socket.socket, context: ssl.SSLContext, host: str | None) -> None:
        self.plain = plain
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(
            self._incoming, self._outgoing, server_side=host is None, server_hostname=host
        )
        self._encrypted = memoryview(b"")
        self.write = self._tls.write
        """Encrypts bytes, which ``flush`` sends."""

    def feed(self, received: bytes | memoryview) -> None:
        """Take bytes that the socket has received."""
        self._incoming.write(received)

    def shake_hands(self) -> bool:
        """Go on with the handshake; whether it is complete. Raises ssl.SSLError if it fails."""
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        return True

    def identity(self) -> ShownCertificate:
        """Whose certificate the other end has shown, after the handshake."""
        shown = self._tls.getpeercert()
        if not shown:
            raise WireError("certificate", "is missing")
        # Exactly one: with two names it would be up to the reader whose certificate it is.
        subject = [pair for part in shown["subject"] for pair in part]
        names = [str(pair[1]) for pair in subject if pair[0] == "commonName"]
        if len(names) != 1:
            raise WireError("certificate", "does not have one name")
        until = float(ssl.cert_time_to_seconds(str(shown["notAfter"])))
        return ShownCertificate(names[0], int(str(shown["serialNumber"]), 16), until)

    def read_into(self, target: memoryview) -> int:
        """Decrypt what was fed, as far as the target has room; 0 if nothing is left.

        Raises
        ------
        ssl.SSLError
            What was fed is not encrypted as agreed.
        """
        read, room, done = self._tls.read, len(target), 0
        try:
            while done < room:
                count = int(read(room - done, target[done:]))  # a record, 16 KB at most
                if count == 0:  # the other end says that it ends
                    break
                done += count
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError:
            if not done:  # otherwise it is raised again the next time
                raise
        return done

    @property
    def encrypted_bytes(self) -> int:
        """How much is encrypted and not sent."""
        return len(self._encrypted) + self._outgoing.pending

    def flush(self) -> bool:
        """Send what is encrypted; whether all of it was sent."""
        # What is encrypted can only be sent as it is, in order: it is kept until all has left.
        while True:
            if not self._encrypted:
                if not self._outgoing.pending:
                    return True
                self._encrypted = memoryview(self._outgoing.read())
            try:
                sent = self.plain.send(self._encrypted)
            except BlockingIOError:
                return False
            self._encrypted = self._encrypted[sent:]

    def say_end(self) -> None:
        """Tell the other end, in TLS, that nothing more comes."""
        with suppress(ssl.SSLError):  # it does not wait for the answer
            self._tls.unwrap()
