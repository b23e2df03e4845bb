"""What a connection refuses of its other end, step by step: certificates, handshakes that go on for
ever, and an end that asks and does not read."""

import ssl
from errno import ECONNREFUSED
from types import SimpleNamespace
from typing import Any

import pytest

from mtcd.core.errors import WireError
from mtcd.federation.connections.connection import Connection
from mtcd.federation.connections.handshake import Handshake, RefusedError
from mtcd.federation.connections.refusals import CERTIFICATE, CLOSED, NAME
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


def begun(**attributes: Any) -> Any:
    """A handshake with nothing but these attributes."""
    handshake: Any = object.__new__(Handshake)
    vars(handshake).update({"identity": None, "is_connecting": False, **attributes})
    return handshake


def test_a_host_that_does_not_accept_or_that_closes_is_told_as_closed() -> None:
    refusing = SimpleNamespace(getsockopt=lambda *option: ECONNREFUSED)
    closing = SimpleNamespace(recv=lambda most: b"")
    for plain, connecting in ((refusing, True), (closing, False)):
        handshake = begun(is_connecting=connecting, tls=SimpleNamespace(plain=plain))
        with pytest.raises(RefusedError, match="the other end closed the connection") as told:
            handshake.go_on()
        assert told.value.reason == CLOSED


def test_a_member_is_known_by_its_certificate_unless_that_was_revoked() -> None:
    names = {"a": "a", "b~2": "b"}
    handshake = begun(_names=names, _revoked=frozenset({7}), calls=False)

    def member(certificate: str, serial: int = 1) -> str:
        shown = SimpleNamespace(certificate=certificate, serial=serial)
        return str(handshake._member(shown))

    assert [member("a"), member("b~2")] == ["a", "b"]
    with pytest.raises(RefusedError, match="the certificate was revoked") as told:
        member("a", serial=7)
    assert told.value.reason == CERTIFICATE
    with pytest.raises(RefusedError, match="the certificate is of 'b'$") as told:
        member("b")
    assert told.value.reason == NAME
    handshake.calls = True
    with pytest.raises(RefusedError, match=r"of 'xxx[^']*', not of a, b~2$") as told:
        member(1000 * "x")
    assert len(str(told.value)) < 120
