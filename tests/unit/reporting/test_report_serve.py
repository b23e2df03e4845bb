"""The server of the report page, over real HTTP."""

import http.client
import json
import socket
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from mtcd.core.errors import ConfigError, MtcdError
from mtcd.reporting import serve as serving_module
from mtcd.reporting.serve import Serving, serve

DOCUMENT = {"format": 1, "title": "a <b> ü"}


def page_of(report: dict[str, Any]) -> str:
    return f"<html>{report['title']}"


@pytest.fixture
def local() -> Iterator[Serving]:
    with serve("127.0.0.1:0", lambda: DOCUMENT, page_of) as serving:
        yield serving


@pytest.fixture
def everywhere() -> Iterator[Serving]:
    with serve("0.0.0.0:0", lambda: DOCUMENT, page_of) as serving:
        yield serving


def ask(
    serving: Serving, path: str, method: str = "GET", **headers: str
) -> tuple[http.client.HTTPResponse, bytes]:
    port = urlsplit(serving.url).port
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, path, headers=headers)
        response = connection.getresponse()
        return response, response.read()
    finally:
        connection.close()


def test_the_page_and_the_document_are_served(local: Serving) -> None:
    response, content = ask(local, "/")
    assert response.status == 200
    assert content.decode() == page_of(DOCUMENT)
    assert response.getheader("Content-Type") == "text/html; charset=utf-8"
    response, content = ask(local, "/data?since=3")
    assert json.loads(content) == DOCUMENT
    assert response.getheader("Content-Type") == "application/json; charset=utf-8"
    response, content = ask(local, "/", method="HEAD")
    assert (response.status, content) == (200, b"")
    assert int(response.getheader("Content-Length") or 0) == len(page_of(DOCUMENT).encode())


@pytest.mark.parametrize(
    "path", ["/x", "/data/", "/../etc/passwd", "/data%20", "http://127.0.0.1/"]
)
def test_nothing_else_is(local: Serving, path: str) -> None:
    assert ask(local, path)[0].status == 404


def test_other_methods_are_refused(local: Serving) -> None:
    assert ask(local, "/", method="POST")[0].status == 501


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "[", "a@b@c"]
)
def test_a_name_that_was_pointed_at_this_machine_is_refused(local: Serving, host: str) -> None:
    for path in ("/", "/data"):
        assert ask(local, path, Host=host)[0].status == 404


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:9", "127.0.0.1:9000", "[::1]:9000"])
def test_the_names_of_this_machine_are_accepted_also_behind_a_tunnel(
    local: Serving, host: str
) -> None:
    assert ask(local, "/data", Host=host)[0].status == 200


def test_answers_cannot_be_framed_kept_or_read_by_other_sites(local: Serving) -> None:
    response, _ = ask(local, "/data", Origin="http://evil.example")
    assert response.getheader("Access-Control-Allow-Origin") is None
    assert response.getheader("Cross-Origin-Resource-Policy") == "same-origin"
    assert response.getheader("Cache-Control") == "no-store"
    assert response.getheader("Referrer-Policy") == "no-referrer"
    assert "frame-ancestors 'none'" in (response.getheader("Content-Security-Policy") or "")


def test_beyond_this_machine_the_address_holds_a_secret(everywhere: Serving) -> None:
    secret = urlsplit(everywhere.url).path
    assert len(secret) > 30
    assert ask(everywhere, secret, Host="any.example")[0].status == 200
    assert json.loads(ask(everywhere, f"{secret}data")[1]) == DOCUMENT
    wrong = [
        "/",
        "/data",
        secret[:-1],
        secret[:-2] + "/",
        "/" + "A" * (len(secret) - 2) + "/",
        f"{secret}x",
    ]
    for path in wrong:
        assert ask(everywhere, path)[0].status == 404, path
    with serve("0.0.0.0:0", lambda: DOCUMENT, page_of) as other:
        assert urlsplit(other.url).path != secret


@pytest.mark.parametrize(
    "line", [b"GET /\xc3\xa9\xff/data HTTP/1.0", b"GET //[ HTTP/1.0", b"GET ?since=1 HTTP/1.0"]
)
def test_strange_requests_are_answered(everywhere: Serving, line: bytes) -> None:
    with socket.create_connection(
        ("127.0.0.1", urlsplit(everywhere.url).port or 0), timeout=60
    ) as connection:
        connection.sendall(line + b"\r\n\r\n")
        assert b" 404 " in connection.makefile("rb").readline()


def test_an_ipv6_address() -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("no IPv6 here")
    with serve("[::1]:0", lambda: DOCUMENT, page_of) as serving:
        assert serving.url.startswith("http://[::1]:")
        connection = http.client.HTTPConnection("::1", urlsplit(serving.url).port, timeout=60)
        connection.request("GET", "/data")
        assert json.loads(connection.getresponse().read()) == DOCUMENT
        connection.close()


def test_a_document_that_fails_is_asked_again() -> None:
    outcomes: list[Any] = [
        MtcdError("The party <a> is gone."),
        ValueError("secret detail"),
        DOCUMENT,
    ]

    def document() -> dict[str, Any]:
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome  # type: ignore[no-any-return]

    with serve("127.0.0.1:0", document, page_of) as serving:
        response, content = ask(serving, "/data")
        assert (response.status, content) == (503, b"The party <a> is gone.\n")
        assert response.getheader("Content-Type") == "text/plain; charset=utf-8"
        response, content = ask(serving, "/data")
        assert response.status == 500
        assert b"secret" not in content
        assert ask(serving, "/data")[0].status == 200


def test_a_document_is_made_once_for_many_viewers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving_module, "FRESH", 600)
    made, together = [], threading.Barrier(5)

    def document() -> dict[str, Any]:
        made.append(threading.get_ident())
        return DOCUMENT

    def view() -> None:
        together.wait()
        ask(serving, "/data")

    with serve("127.0.0.1:0", document, page_of) as serving:
        viewers = [threading.Thread(target=view) for _ in range(5)]
        for viewer in viewers:
            viewer.start()
        for viewer in viewers:
            viewer.join()
    assert len(made) == 1


def test_after_closing_nobody_listens() -> None:
    serving = serve("127.0.0.1:0", lambda: DOCUMENT, page_of)
    serving.close()
    serving.close()
    with pytest.raises(ConnectionRefusedError):
        ask(serving, "/")


@pytest.mark.parametrize(
    "address",
    [
        "",
        "127.0.0.1",
        ":80",
        "127.0.0.1:http",
        "127.0.0.1:99999",
        "me@127.0.0.1:0",
        "127.0.0.1:0/x",
        "::1:80",
    ],
)
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(ConfigError, match="HOST:PORT"):
        serve(address, lambda: DOCUMENT, page_of)


def test_an_address_in_use_and_one_that_is_not_here_are_refused() -> None:
    with serve("127.0.0.1:0", lambda: DOCUMENT, page_of) as serving:
        port = urlsplit(serving.url).port
        for address in (f"127.0.0.1:{port}", "192.0.2.1:0", "a" * 80 + ":0"):
            with pytest.raises(ConfigError, match="cannot be served at"):
                serve(address, lambda: DOCUMENT, page_of)
