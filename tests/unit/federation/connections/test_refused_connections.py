"""What a connection refuses of its other end, step by step: certificates, handshakes that go on for
ever, and an end that asks and does not read."""

import ssl
from types import SimpleNamespace
from typing import Any

import pytest

from mtcd.core.errors import WireError
from mtcd.federation.connections.connection import Connection
from mtcd.federation.connections.handshake import Handshake, RefusedError
from mtcd.federation.connections.tls import TlsSocket
from mtcd.federation.connections.wire import LONGEST_KIND_BYTES, frame_head

NAMED = ((("commonName", "a"),),)
UNNAMED = ((("organizationName", "a"),),)


@pytest.mark.parametrize(
    ("shown", "told"),
    [
        (None, "certificate is missing"),
        ({}, "certificate is missing"),
        ({"subject": UNNAMED}, "certificate does not have one name"),
        ({"subject": (*NAMED, *NAMED)}, "certificate does not have one name"),
    ],
)
def test_a_certificate_without_one_name_is_nobodys(shown: Any, told: str) -> None:
    tls: Any = object.__new__(TlsSocket)
    more = {"notAfter": "Jan  1 00:00:00 2030 GMT", "serialNumber": "0A"}
    tls._tls = SimpleNamespace(getpeercert=lambda: {"subject": NAMED, **more})
    assert tuple(tls.identity())[:2] == ("a", 10)
    tls._tls = SimpleNamespace(getpeercert=lambda: shown and {**shown, **more})
    with pytest.raises(WireError, match=told):
        tls.identity()


def _nobody() -> Any:
    raise WireError("certificate", "is missing")


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"feed": lambda data: None}, "the handshake is too long"),
        ({"flush": lambda: False}, "the other end does not read the handshake"),
        ({"identity": _nobody}, "certificate is missing"),
    ],
)
def test_a_handshake_that_leads_nowhere_is_refused(changes: dict[str, Any], told: str) -> None:
    handshake: Any = object.__new__(Handshake)
    handshake.is_connecting, handshake.identity = False, None
    handshake._left = 3 if "feed" in changes else 4
    steps = {
        "plain": SimpleNamespace(recv=lambda most: b"data"),
        "feed": lambda data: None,
        "shake_hands": lambda: True,
        "flush": lambda: True,
        "identity": lambda: None,
    }
    handshake.tls = SimpleNamespace(**{**steps, **changes})
    with pytest.raises(RefusedError, match=told):
        handshake.go_on()


def test_an_end_that_has_tls_speak_and_does_not_read_is_cut_off() -> None:
    """Answers of TLS itself would fill the memory."""
    connection: Any = object.__new__(Connection)
    connection.blocked = True
    connection.tls = SimpleNamespace(encrypted_bytes=100)
    connection._flush_replies()
    connection.tls = SimpleNamespace(encrypted_bytes=2**30)
    with pytest.raises(ssl.SSLError, match="asks for more than it reads"):
        connection._flush_replies()


def test_a_kind_that_does_not_fit_into_a_head_is_not_sent() -> None:
    frame_head(1, "x" * LONGEST_KIND_BYTES, 7, 0)
    with pytest.raises(ValueError, match="is too long for the kind of a message"):
        frame_head(1, "x" * (LONGEST_KIND_BYTES + 1), 7, 0)
