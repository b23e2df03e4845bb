"""Strangers who open connections to a party that they have no right to: all the ways at once.

They ask for nothing and know nothing but the address. One of them, beside these, holds a
certificate of the right authority in which no expected name stands.
"""

from __future__ import annotations

import itertools
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from time import monotonic

from mtcd.federation.credentials.authority import Authority
from mtcd.federation.credentials.certificates import Issued, issue, make_authority

HELLO = bytes.fromhex("16030100c8010000c40303")  # how a ClientHello of TLS begins
SECONDS = 2.0  # that a stranger waits for anything
NOBODY = "nobody"


@dataclass
class Tally:
    """What the strangers have done."""

    tried: dict[str, int] = field(default_factory=dict)
    unreached: int = 0
    """Connections that the host did not accept in time."""


class Strangers:
    """Connections to one address: so many a second that fail, in turn in each way, and idle ones.

    An idle connection that is closed is opened again.
    """

    def __init__(
        self, bundles: Path, folder: Path, address: str, rate: int = 100, idle: int = 500
    ) -> None:
        host, _, port = address.rpartition(":")
        self.place, self.rate, self.idle = (host, int(port)), rate, idle
        self.tally = Tally()
        self._stop = Event()
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        authority = Authority.load(bundles).issued
        own = make_authority("strangers")
        self._ca = str(bundles / "a" / "ca.pem")
        # the context of the stranger is made once: what it costs is no part of the attack
        self._ways: dict[str, Callable[[socket.socket], None]] = {
            "closed": lambda plain: None,
            "garbage": _garbage,
            "half": _half,
            "no certificate": self._with(None),
            "another authority": self._with(self._written(issue(own, "a", None, 1), "foreign")),
            "unexpected name": self._with(self._written(issue(authority, NOBODY, None, 1), NOBODY)),
        }
        self._threads: list[Thread] = []

    def __enter__(self) -> Strangers:
        jobs = [self._fail] * max(self.rate // 20, 1) + ([self._hold] if self.idle else [])
        self._turns = itertools.cycle(self._ways.items())
        self._threads = [Thread(target=job, daemon=True) for job in jobs]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _written(self, made: Issued, name: str) -> tuple[str, str]:
        certificate, key = self._folder / f"{name}.pem", self._folder / f"{name}.key"
        certificate.write_bytes(made.certificate_pem)
        key.write_bytes(made.key_pem)
        return str(certificate), str(key)

    def _with(self, certificate: tuple[str, str] | None) -> Callable[[socket.socket], None]:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.load_verify_locations(self._ca)
        if certificate is not None:
            context.load_cert_chain(*certificate)

        def shake_hands(plain: socket.socket) -> None:
            with context.wrap_socket(plain) as secured:
                secured.recv(100)  # until the other end refuses

        return shake_hands

    def _fail(self) -> None:
        """One of several threads: together they open as many connections a second as were asked."""
        pause = max(self.rate // 20, 1) / self.rate
        due = monotonic()
        while not self._stop.is_set():
            name, way = next(self._turns)
            self.tally.tried[name] = self.tally.tried.get(name, 0) + 1
            try:
                with socket.create_connection(self.place, SECONDS) as plain:
                    plain.settimeout(SECONDS)
                    with suppress(OSError):
                        way(plain)
            except OSError:
                self.tally.unreached += 1
            due += pause
            self._stop.wait(max(due - monotonic(), 0.0))

    def _hold(self) -> None:
        held: list[socket.socket] = []
        while not self._stop.is_set():
            held = [one for one in held if _is_open(one)]
            while len(held) < self.idle and not self._stop.is_set():
                try:
                    held.append(socket.create_connection(self.place, SECONDS))
                except OSError:
                    self.tally.unreached += 1
                    break
            self._stop.wait(0.1)
        for one in held:
            one.close()


def _garbage(plain: socket.socket) -> None:
    plain.sendall(b"GET / HTTP/1.1\r\nHost: clinic\r\n\r\n" * 3)
    plain.recv(100)


def _half(plain: socket.socket) -> None:
    plain.sendall(HELLO)


def _is_open(one: socket.socket) -> bool:
    one.setblocking(False)
    try:
        if one.recv(1):
            return True
    except BlockingIOError:
        return True
    except OSError:
        pass
    one.close()
    return False


@contextmanager
def attack(bundles: Path, folder: Path, address: str, **settings: int) -> Iterator[Strangers]:
    """Strangers at work, for two seconds already."""
    with Strangers(bundles, folder, address, **settings) as strangers:
        strangers._stop.wait(2.0)
        yield strangers
