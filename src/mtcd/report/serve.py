"""Serves the report page and its document over HTTP while something goes on: ``mtcd train --live``, a dashboard.

The page is at ``/``, the document at ``/data``, which the page asks for again and again. On the loopback interface,
requests must name this very address as their host: a page of another site, whose name was pointed at 127.0.0.1, is
refused. On any other interface both are below a random secret, ``/SECRET/``. Everything else is 404.
"""

from __future__ import annotations

import json
import logging
import secrets
import socket
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from ipaddress import ip_address
from socketserver import TCPServer, ThreadingMixIn
from threading import Lock, Thread
from time import monotonic
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from mtcd.errors import ConfigError, MtcdError
from mtcd.extras import find

LOCAL = "127.0.0.1:0"
"""The default address: this machine alone, a free port."""
LOOPBACK = ("127.0.0.1", "localhost", "::1")
FRESH = 0.5  # seconds for which a document is handed out again: several viewers cost no more than one
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",  # the address may hold the secret
    "X-Content-Type-Options": "nosniff",
}

Document = Callable[[], dict[str, Any]]
"""Makes the document as it is now: called in a thread of the server, one call at a time."""
Render = Callable[[dict[str, Any]], str]


def serve(address: str, document: Document, render: Render | None = None) -> Serving:
    """Serve the page and the document at an address HOST:PORT (port 0: a free one) until ``close`` is called.

    A failing ``document`` is answered with 503 and the text of its error, and asked again by the next request.
    """
    return Serving(address, document, render or find("mtcd.report.render").render)


class Serving:
    """A server in a thread of its own. As a context manager, it closes at the end."""

    def __init__(self, address: str, document: Document, render: Render) -> None:
        self._server = _listening(address)
        host, port = self._server.server_address[:2]
        local = ip_address(str(host)).is_loopback
        self._secret = None if local else secrets.token_urlsafe(24)
        shown = socket.gethostname() if ip_address(str(host)).is_unspecified else _bracketed(str(host))
        self.url = f"http://{shown}:{port}{self._prefix}"
        self._document, self._render = document, render
        self._lock = Lock()
        self._latest: tuple[float, dict[str, Any]] | None = None
        self._server.serving = self
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
        self._thread.start()

    @property
    def _prefix(self) -> str:
        return "/" if self._secret is None else f"/{self._secret}/"

    def close(self) -> None:
        """Stop serving; a second call does nothing."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def answer(self, target: str, host: str | None) -> tuple[HTTPStatus, str, bytes]:
        """Status, type and content for a request: the address asked for, and the header 'Host'."""
        path = target.partition("?")[0]
        known = self._secret is not None or _host_name(host) in LOOPBACK  # behind a tunnel the port is another
        # compared as bytes: in constant time, whatever characters were sent
        right = secrets.compare_digest(path[: len(self._prefix)].encode(errors="replace"), self._prefix.encode())
        name = path[len(self._prefix) :]
        if not (known and right) or name not in ("", "data"):
            return HTTPStatus.NOT_FOUND, "text/plain", b"There is nothing here.\n"
        try:
            if name == "data":
                return HTTPStatus.OK, "application/json", json.dumps(self._now(), allow_nan=False).encode()
            return HTTPStatus.OK, "text/html", self._render(self._now()).encode()
        except MtcdError as error:
            return HTTPStatus.SERVICE_UNAVAILABLE, "text/plain", f"{error}\n".encode()
        except Exception:
            logging.getLogger("mtcd").exception("The report page could not be made")
            return HTTPStatus.INTERNAL_SERVER_ERROR, "text/plain", b"The page could not be made: see the log.\n"

    def _now(self) -> dict[str, Any]:
        with self._lock:
            if self._latest is None or monotonic() > self._latest[0] + FRESH:
                self._latest = None  # an error is not kept
                made = self._document()
                self._latest = monotonic(), made
            return self._latest[1]


class _Server(ThreadingMixIn, TCPServer):
    """A thread for each connection, which does not keep the program alive.

    Not ``http.server.HTTPServer``: that asks the name service for the name of this host.
    """

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    serving: Serving

    def __init__(self, family: socket.AddressFamily, place: Any) -> None:
        self.address_family = family
        super().__init__(place, _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A viewer that went away is no error; the base class would print a traceback."""
        logging.getLogger("mtcd").debug("A connection to the report page broke", exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    """Answers GET and HEAD; other methods are refused by the base class."""

    server: _Server
    timeout = 10  # seconds that a connection may be silent
    server_version, sys_version = "mtcd", ""

    def do_GET(self) -> None:
        self._answer(with_content=True)

    def do_HEAD(self) -> None:
        self._answer(with_content=False)

    def _answer(self, with_content: bool) -> None:
        status, kind, content = self.server.serving.answer(self.path, self.headers.get("Host"))
        self.send_response(status)
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if with_content:
            self.wfile.write(content)

    def log_message(self, *arguments: Any) -> None:
        """Requests are not logged: they would mix with the progress bar."""


def _listening(address: str) -> _Server:
    """A server that listens at an address."""
    try:
        parts = urlsplit(f"//{address}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or port is None or address != parts.netloc or "@" in address:
        raise ConfigError(f"{address!r} is not an address to serve at: give HOST:PORT, such as 127.0.0.1:8000.")
    try:
        family, _, _, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return _Server(family, place)
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise ConfigError(
            f"The page cannot be served at {address} ({why}): give another address, or port 0 for a free one."
        ) from None


def _host_name(header: str | None) -> str | None:
    """The name in a header 'Host', without the port."""
    try:
        return urlsplit(f"//{header}").hostname
    except ValueError:
        return None


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
