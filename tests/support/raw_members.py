"""Members of a federation that do as they like: links in threads, and connections by hand."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import Any

from mtcd.federation.connections.wire import OPENING_HEAD_BYTES, Opening, frame_head, opening_bytes
from mtcd.federation.credentials.bundle import read_bundle
from mtcd.federation.names import parse_address
from mtcd.federation.node.counters import Counters
from mtcd.federation.node.link import IncomingRequest, Link
from mtcd.federation.node.loop import Loop

SECONDS = 10.0


class Member:
    """The links of one member, with a loop in a thread; what it hears and sees is kept.

    ``answer`` gets the requests; without it they are answered with ``here``.
    """

    def __init__(
        self, folder: Path, answer: Callable[[IncomingRequest], None] | None = None
    ) -> None:
        self.loop = Loop()
        self.seen: list[tuple[str, bool]] = []
        """Peers that came up or went down."""
        self.heard: list[tuple[str, str, bytes]] = []
        """Senders, kinds and bodies of requests."""
        self._answer = answer
        bundle = read_bundle(folder)
        self.counters = Counters(bundle.config.peers)
        self.link = Link(bundle, self.loop, self._asked, self._changed, self.counters)
        self.told: list[str] = []
        self.link.tell = lambda kind, sentence: self.told.append(sentence)
        self._thread = Thread(target=self.loop.run, daemon=True)
        self._thread.start()

    def _asked(self, request: IncomingRequest) -> None:
        self.heard.append((request.sender, request.kind, request.body))
        if self._answer is None:
            request.reply(b"here")
        else:
            self._answer(request)

    def _changed(self, peer: str, up: bool) -> None:
        self.seen.append((peer, up))

    def ask(self, to: str, body: bytes = b"", kind: str = "x") -> list[bytes | None]:
        """Send a request; a list to which its answer is added."""
        answers: list[bytes | None] = []
        self.loop.call(lambda: self.link.post(to, kind, body, answers.append))
        return answers

    @property
    def refused(self) -> dict[str, int]:
        """The connections that it has refused, by reason."""
        return {
            reason: count for reason, count in self.counters.refused_connections.items() if count
        }

    def close(self) -> None:
        self.link.close()
        self.loop.stop()
        self._thread.join(SECONDS)

    def __enter__(self) -> Member:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()


class ByHand:
    """A connection to a member, by the standard library alone, with the certificate in a folder."""

    def __init__(self, address: str, folder: Path, certified: bool = True) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.load_verify_locations(folder / "ca.pem")
        if certified:
            context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
        place = parse_address(address)
        self.plain = socket.create_connection((place.host, place.port), SECONDS)
        self.tls = context.wrap_socket(self.plain)

    def say(self, sender: str, receiver: str, federation: str = "clinics") -> None:
        """Send the opening."""
        self.tls.sendall(Opening(federation, sender, receiver).encode())

    def hear(self) -> bool:
        """Wait for the opening of the other end; whether there is one."""
        try:
            head = self.tls.recv(OPENING_HEAD_BYTES)
            return bool(head) and bool(self.tls.recv(opening_bytes(head)))
        except OSError:
            return False

    def send(self, what: int, kind: str, number: int, body: bytes = b"") -> None:
        """Send a frame."""
        self.tls.sendall(frame_head(what, kind, number, len(body)) + body)

    def is_cut_off(self) -> bool:
        """Wait until the other end closes; whether it does, before the time is over."""
        try:
            while self.tls.recv(65536):
                pass
        except TimeoutError:
            return False
        except OSError:
            return True
        return True

    def close(self) -> None:
        self.tls.close()

    def __enter__(self) -> ByHand:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()
