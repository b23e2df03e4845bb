"""Two ends of one connection in this process, over a pair of sockets, with certificates of a
federation; no thread carries them."""

from __future__ import annotations

import socket
from pathlib import Path

from mtcd.federation.connections.connection import Connection
from mtcd.federation.connections.tls import TlsSocket, calling_context, listening_context
from mtcd.federation.connections.wire import Frame

LONGEST = 300_000
"""The most bytes of a body."""


class Ends:
    """A calling and a listening end, after the handshake."""

    def __init__(self, bundles: Path, until: float = 2.0**40) -> None:
        self.sockets = socket.socketpair()
        for one in self.sockets:
            one.setblocking(False)

        calling = TlsSocket(self.sockets[0], calling_context(bundles / "b"), "127.0.0.1")
        listening = TlsSocket(self.sockets[1], listening_context(bundles / "a"), None)
        ends = (calling, listening)
        shaken = [False, False]
        while not all(shaken):
            for place, end in enumerate(ends):
                shaken[place] = end.shake_hands()
                end.flush()
                arrived = received(self.sockets[1 - place])
                if arrived:
                    ends[1 - place].feed(arrived)

        self.b = Connection("a", calling, until, LONGEST)
        self.a = Connection("b", listening, until, LONGEST)
        self.attended: list[Connection] = []
        self.a.attend = self.b.attend = self.attended.append

    def read(self, one: Connection) -> list[Frame]:
        """What has arrived at an end."""
        arrived = received(one.tls.plain)
        return one.receive(memoryview(arrived))

    def close(self) -> None:
        for one in self.sockets:
            one.close()


def received(sock: socket.socket) -> bytes:
    """All that a socket has at the moment."""
    found = b""
    while True:
        try:
            part = sock.recv(2**20)
        except BlockingIOError:
            return found
        if not part:
            return found
        found += part
