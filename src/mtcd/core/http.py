"""A small HTTP server in a thread of this process: for pages, documents and measurements that are
read, never written.

It answers GET and HEAD with what one function returns; a connection may be silent for some seconds
only, and there are not more than a few at the same time, so that nobody who reaches the port takes
up the process.
"""

from __future__ import annotations

import logging
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from email.message import Message
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from ipaddress import ip_address
from socketserver import TCPServer, ThreadingMixIn
from threading import BoundedSemaphore, Thread
from typing import Any, NamedTuple, Self
from urllib.parse import urlsplit

from mtcd.core.errors import ConfigError

LOOPBACK = ("127.0.0.1", "localhost", "::1")
MOST_CONNECTIONS = 64  # at the same time; further ones are closed at once
HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


class Answer(NamedTuple):
    """What is answered: the status, the type of the content and the content.

    >>> Answer(HTTPStatus.OK, "text/plain; charset=utf-8", b"running").status.phrase
    'OK'
    """

    status: HTTPStatus
    kind: str
    content: bytes


NOTHING = Answer(HTTPStatus.NOT_FOUND, "text/plain; charset=utf-8", b"There is nothing here.\n")
Answerer = Callable[[str, Message], Answer]
"""Answers a request, given its path and its headers: called in a thread of the server, several at
the same time."""


class Closing(ABC):
    """A context manager that closes at the end of the context."""

    @abstractmethod
    def close(self) -> None:
        """Stop serving; a second call does nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class WebServer(Closing):
    """Listens at an address and, from ``start`` on, answers. As a context manager, it closes.

    Parameters
    ----------
    address
        HOST:PORT; port 0 is a free one.
    answer
        What is answered.
    what
        What is served, for errors about the address.
    headers
        They go with every answer.

    Raises
    ------
    ConfigError
        If this is no address, or nothing can be served there.

    Examples
    --------
    >>> with WebServer("127.0.0.1:0", lambda path, headers: NOTHING, "the example") as server:
    ...     server.host, server.is_local
    ('127.0.0.1', True)
    """

    def __init__(
        self, address: str, answer: Answerer, what: str, headers: Mapping[str, str] | None = None
    ) -> None:
        self._server = _listening(address, what)
        # Set after the socket listens, but before any thread reads them: see ``start``.
        self._server.answer = answer
        self._server.headers = HEADERS | dict(headers or {})
        host, port = self._server.server_address[:2]
        self.host = str(host)
        self.port = int(port)
        # The address that was bound decides, not the name that was given for it.
        self.is_local = ip_address(self.host).is_loopback
        self._thread: Thread | None = None

    def start(self) -> None:
        """Answer requests, in a thread that does not keep the program alive."""
        self._thread = Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        if self._thread is not None:
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()


def names_this_machine(headers: Message) -> bool:
    """Whether the header 'Host' is a name of the loopback interface.

    A page of another site can point a name of its own at this machine (DNS rebinding), and would
    then read what is served here: the header tells.
    """
    try:
        return urlsplit(f"//{headers.get('Host')}").hostname in LOOPBACK
    except ValueError:
        return False


class _Server(ThreadingMixIn, TCPServer):
    """A thread for each connection.

    Not ``http.server.HTTPServer``: that asks the name service for the name of this host.
    """

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    answer: Answerer
    headers: Mapping[str, str]

    def __init__(self, family: socket.AddressFamily, place: Any) -> None:
        self.address_family = family
        self._free = BoundedSemaphore(MOST_CONNECTIONS)
        super().__init__(place, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        # Refuse at once, rather than keep a connection waiting for one of the others to end.
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            # Also where the answer raised: a place that is lost stays lost for as long as the
            # program runs.
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no error; the base class would print a traceback."""
        logging.getLogger("mtcd").debug("A connection broke", exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    """Answers GET and HEAD; other methods are refused by the base class."""

    server: _Server
    timeout = 10  # seconds that a connection may be silent
    server_version = "mtcd"
    sys_version = ""  # the version of Python is nobody's business

    def do_GET(self) -> None:
        self._answer(with_content=True)

    def do_HEAD(self) -> None:
        self._answer(with_content=False)

    def _answer(self, with_content: bool) -> None:
        # Without what follows the question mark: no answer depends on it.
        found = self.server.answer(self.path.partition("?")[0], self.headers)
        self.send_response(found.status)
        for name, value in self.server.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Type", found.kind)
        self.send_header("Content-Length", str(len(found.content)))
        self.end_headers()
        if with_content:
            self.wfile.write(found.content)

    def log_message(self, *arguments: Any) -> None:
        """Requests are not logged: they would mix with what is on the screen."""


def _split(address: str) -> tuple[str, int]:
    """The host and the port of HOST:PORT."""
    try:
        parts = urlsplit(f"//{address}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None

    # "@" would be taken for the end of a user name, whatever follows for the host.
    if not host or port is None or address != parts.netloc or "@" in address:
        raise ConfigError(
            f"{address!r} is not an address to serve at: give HOST:PORT, such as 127.0.0.1:8000."
        )
    return host, port


def _listening(address: str, what: str) -> _Server:
    host, port = _split(address)
    try:
        family, _, _, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return _Server(family, place)
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise ConfigError(
            f"{what} cannot be served at {address} ({why}): give another address, or port 0 for a "
            f"free one."
        ) from None
