"""Serves the report page and its document over HTTP while something goes on: ``mtcd train --live``,
a dashboard.

The page is at ``/``, the document at ``/data``, which the page asks for again and again. On the
loopback interface, requests must name this very address as their host: a page of another site,
whose name was pointed at 127.0.0.1, is refused. On any other interface both are below a random
secret, ``/SECRET/``. Everything else is 404.
"""

from __future__ import annotations

import json
import logging
import math
import secrets
import socket
from collections.abc import Callable
from email.message import Message
from http import HTTPStatus
from ipaddress import ip_address
from threading import Lock
from time import monotonic, sleep
from typing import Any

from mtcd.core.errors import MtcdError
from mtcd.core.http import NOTHING, Answer, Closing, WebServer, names_this_machine
from mtcd.core.optional import find

LOCAL = "127.0.0.1:0"
"""The default address: this machine alone, a free port."""
# seconds for which a document is handed out again: several viewers cost no more than one
FRESH = 0.5
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: "
        "blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",  # the address may hold the secret
}

Document = Callable[[], dict[str, Any]]
"""Makes the document as it is now: called in a thread of the server, one call at a time."""
Render = Callable[[dict[str, Any]], str]


def serve(address: str, document: Document, render: Render | None = None) -> Serving:
    """Serve the page and the document at an address HOST:PORT (port 0: a free one) until ``close``
    is called.

    A failing ``document`` is answered with 503 and the text of its error, and asked again by the
    next request.
    """
    return Serving(address, document, render or find("mtcd.reporting.render").render)


class Serving(Closing):
    """A server in a thread of its own. As a context manager, it closes at the end."""

    def __init__(self, address: str, document: Document, render: Render) -> None:
        self._server = server = WebServer(address, self.answer, "The page", HEADERS)
        self._secret = None
        if not server.is_local:
            self._secret = secrets.token_urlsafe(24)

        shown = _bracketed(server.host)
        if ip_address(server.host).is_unspecified:  # 0.0.0.0 is no address to open
            shown = socket.gethostname()
        self.url = f"http://{shown}:{server.port}{self._prefix}"

        self._document, self._render = document, render

        self._lock = Lock()
        self._latest: tuple[float, dict[str, Any]] | None = None
        self._asked = -math.inf
        """When the document was last asked for, by the clock of ``monotonic``."""
        server.start()

    @property
    def is_public(self) -> bool:
        """Whether other machines can reach it, if they know the address."""
        return self._secret is not None

    @property
    def _prefix(self) -> str:
        if self._secret is None:
            return "/"
        return f"/{self._secret}/"

    def close(self) -> None:
        self._server.close()

    def finish(self, seconds: float = 3.0) -> None:
        """The document will not change any more: wait until a page that is being watched has the
        last one."""
        with self._lock:
            self._latest = None
            # what is asked for from now on is made anew, and is the last
            now = monotonic()
        if self._asked < now - seconds:
            return  # nobody watches
        while self._asked < now and monotonic() < now + seconds:
            sleep(0.05)
        sleep(0.2)  # for the answer to be sent

    def answer(self, path: str, headers: Message) -> Answer:
        """The page, the document, or nothing."""
        # behind a tunnel the port is another
        known = self._secret is not None or names_this_machine(headers)
        # compared as bytes: in constant time, whatever characters were sent
        prefix, name = path[: len(self._prefix)], path[len(self._prefix) :]
        right = secrets.compare_digest(prefix.encode(errors="replace"), self._prefix.encode())
        if not (known and right) or name not in ("", "data"):
            return NOTHING

        try:
            if name == "data":
                self._asked = monotonic()
                text = json.dumps(self._now(), allow_nan=False)
                return _answer(HTTPStatus.OK, text, "application/json")
            return _answer(HTTPStatus.OK, self._render(self._now()), "text/html")
        except MtcdError as error:
            return _answer(HTTPStatus.SERVICE_UNAVAILABLE, f"{error}\n")
        except Exception:
            # a slip of ours must not end the training that is watched, nor be shown to strangers
            logging.getLogger("mtcd").exception("The report page could not be made")
            text = "The page could not be made: see the log.\n"
            return _answer(HTTPStatus.INTERNAL_SERVER_ERROR, text)

    def _now(self) -> dict[str, Any]:
        with self._lock:
            # under the lock: of several viewers, one makes the document, and the others wait for it
            if self._latest is None or monotonic() > self._latest[0] + FRESH:
                self._latest = None  # an error is not kept
                made = self._document()
                self._latest = monotonic(), made
            return self._latest[1]


def _answer(status: HTTPStatus, text: str, kind: str = "text/plain") -> Answer:
    return Answer(status, f"{kind}; charset=utf-8", text.encode())


def _bracketed(host: str) -> str:
    if ":" in host:  # an address of IPv6
        return f"[{host}]"
    return host
