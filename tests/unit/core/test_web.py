"""The HTTP server below pages and metrics; what is common to both is tested with the page
(test_report_serve.py)."""

import socket
from http import HTTPStatus
from urllib.request import urlopen

import pytest

from mtcd.core import http as web
from mtcd.core.errors import ConfigError
from mtcd.core.http import Answer, WebServer
from waiting import until


def test_silent_connections_do_not_take_up_more_than_their_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(web, "MOST_CONNECTIONS", 2)
    with WebServer(
        "127.0.0.1:0", lambda path, headers: Answer(HTTPStatus.OK, "text/plain", b"x"), "This"
    ) as server:
        server.start()
        silent = [
            socket.create_connection((server.host, server.port), timeout=60) for _ in range(2)
        ]
        with socket.create_connection((server.host, server.port), timeout=60) as third:
            assert third.recv(1) == b""
        for one in silent:
            one.close()

        def answered() -> bool:
            try:
                return bool(
                    urlopen(f"http://{server.host}:{server.port}/", timeout=60).read() == b"x"
                )
            except OSError:
                return False

        assert until(answered)


def test_it_serves_at_an_address_of_ipv6() -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this host has no IPv6")
    with WebServer(
        "[::1]:0", lambda path, headers: Answer(HTTPStatus.OK, "text/plain", b"x"), "This"
    ) as server:
        assert (server.host, server.is_local) == ("::1", True)
        assert server.port > 0


def test_headers_go_with_every_answer() -> None:
    def answer(path: str, headers: object) -> Answer:
        return Answer(HTTPStatus.OK, "text/plain", b"x")

    with WebServer("127.0.0.1:0", answer, "This", headers={"X-Frame-Options": "DENY"}) as server:
        server.start()
        answered = urlopen(f"http://{server.host}:{server.port}/", timeout=60).headers
        assert answered["X-Frame-Options"] == "DENY"
        assert answered["Cache-Control"] == "no-store"


@pytest.mark.parametrize(
    "address",
    ["", "127.0.0.1", ":80", "me@127.0.0.1:0", "127.0.0.1:0/page", "127.0.0.1:99999", "[::1:0"],
)
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(ConfigError, match="is not an address to serve at: give HOST:PORT"):
        WebServer(address, lambda path, headers: web.NOTHING, "This")


@pytest.mark.parametrize(("method", "content"), [("GET", b"content"), ("HEAD", b"")])
def test_a_head_is_answered_without_content(method: str, content: bytes) -> None:
    asked: list[str] = []

    def answer(path: str, headers: object) -> Answer:
        asked.append(path)
        return Answer(HTTPStatus.OK, "text/plain", b"content")

    with WebServer("127.0.0.1:0", answer, "This") as server:
        server.start()
        with socket.create_connection((server.host, server.port), timeout=60) as asking:
            asking.sendall(f"{method} /page?seed=3 HTTP/1.0\r\n\r\n".encode())
            received = b""
            while part := asking.recv(4096):
                received += part

    head, _, body = received.partition(b"\r\n\r\n")
    assert b"Content-Length: 7" in head
    assert body == content
    # no answer depends on what follows the question mark
    assert asked == ["/page"]
