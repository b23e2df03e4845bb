"""One connection between two ends, step by step, over a pair of sockets: no thread carries it."""

import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from bundles_on_disk import certificate, found
from connected import LONGEST, Ends, received
from mtcd.core.errors import WireError
from mtcd.federation.connections.connection import (
    FRAME_COST_BYTES,
    PIECE_BYTES,
    SMALL_BYTES,
)
from mtcd.federation.connections.tls import calling_context, listening_context
from mtcd.federation.connections.wire import ANSWER, REQUEST, Frame

HEAD_BYTES = 64


@pytest.fixture
def ends(tmp_path: Path) -> Iterator[Ends]:
    made = Ends(found(tmp_path / "ours"))
    yield made
    made.close()


@pytest.mark.parametrize(
    "length", [0, 1, SMALL_BYTES, SMALL_BYTES + 1, PIECE_BYTES - HEAD_BYTES, PIECE_BYTES, 200_000]
)
def test_frames_of_any_length_arrive_whole_and_in_order(ends: Ends, length: int) -> None:
    bodies = [bytes([number]) * length for number in range(3)]
    frames: list[Frame] = []
    for number, body in enumerate(bodies):
        ends.b.send(REQUEST, "x", number, body)

    while ends.b.blocked:
        frames += ends.read(ends.a)
        ends.b.send_on()
    frames += ends.read(ends.a)
    assert frames == [Frame(REQUEST, "x", number, body) for number, body in enumerate(bodies)]
    assert ends.b.unsent_bytes == 0
    assert ends.a.unread_bytes == 3 * (FRAME_COST_BYTES + length)


def test_what_the_socket_does_not_take_waits_and_the_carrier_is_told_once(ends: Ends) -> None:
    body = bytes(LONGEST)
    sent = 0
    while not ends.b.blocked:
        assert ends.b.unsent_bytes == 0
        assert ends.attended == []
        ends.b.send(REQUEST, "x", sent, body)
        sent += 1

    waiting = ends.b.unsent_bytes
    assert 0 < waiting <= HEAD_BYTES + LONGEST
    ends.b.send(ANSWER, "y", sent, b"last")
    assert ends.b.unsent_bytes == waiting + HEAD_BYTES + len(b"last")
    assert ends.attended == [ends.b], "it knows already that this one is blocked"

    frames: list[Frame] = []
    while ends.b.blocked:
        frames += ends.read(ends.a)
        ends.b.send_on()
    frames += ends.read(ends.a)
    assert [frame.number for frame in frames] == list(range(sent + 1))
    assert frames[-1] == Frame(ANSWER, "y", sent, bytearray(b"last"))
    assert ends.b.unsent_bytes == 0
    assert not ends.b.ended


def test_an_end_is_full_until_enough_was_handled(ends: Ends) -> None:
    """Full is more than the longest message: one of that length alone does not fill it."""
    lengths = [LONGEST - 2 * FRAME_COST_BYTES - 100, 100, 0]
    frames = []
    for number, length in enumerate(lengths):
        assert not ends.a.is_full
        ends.b.send(REQUEST, "x", number, bytes(length))
        while ends.b.blocked:
            frames += ends.read(ends.a)
            ends.b.send_on()
        frames += ends.read(ends.a)
        if number == 1:
            assert ends.a.unread_bytes == LONGEST

    assert ends.a.is_full
    ends.a.handled(frames[2])
    assert ends.a.unread_bytes == LONGEST
    assert not ends.a.is_full
    assert ends.attended[-1] is ends.a
    told = len(ends.attended)
    ends.a.handled(frames[1])
    ends.a.handled(frames[0])
    assert ends.a.unread_bytes == 0
    assert len(ends.attended) == told, "there was room before"


def test_an_end_that_is_closed_sends_nothing_more(ends: Ends) -> None:
    ends.b.send(REQUEST, "x", 1, b"first")
    ends.b.say_end()
    ends.b.send(REQUEST, "x", 2, b"too late")
    ends.b.say_end()
    assert ends.b.ended
    assert [frame.body for frame in ends.read(ends.a)] == [b"first"]
    ends.a.close()
    ends.a.send(REQUEST, "x", 3, b"")
    assert ends.a.ended
    assert ends.a.unsent_bytes == 0
    assert ends.sockets[1].fileno() == -1


def test_a_lost_connection_is_noticed_by_sending(ends: Ends) -> None:
    ends.sockets[1].close()
    while not ends.b.ended:
        ends.b.send(REQUEST, "x", 1, bytes(1000))
    assert ends.b.blocked
    assert ends.attended == [ends.b]


def test_frames_in_front_of_what_is_not_encrypted_count(ends: Ends) -> None:
    ends.b.send(REQUEST, "x", 1, b"good")
    data = received(ends.sockets[1])
    frames = ends.a.receive(memoryview(data + bytes(100)))
    assert [frame.body for frame in frames] == [b"good"]
    assert ends.a.read() == []
    assert ends.a.is_over


def test_a_frame_that_is_too_long_is_refused_before_it_has_arrived(ends: Ends) -> None:
    ends.b.send(REQUEST, "x", 1, bytes(LONGEST))
    while ends.b.blocked:
        ends.read(ends.a)
        ends.b.send_on()
    assert ends.read(ends.a)[-1].number == 1
    ends.b.send(REQUEST, "x", 2, bytes(LONGEST + 1))
    with pytest.raises(WireError, match=f"{LONGEST + 1} bytes, more than the {LONGEST} allowed"):
        ends.read(ends.a)


def test_the_time_of_the_last_bytes_is_kept_for_each_way(
    ends: Ends, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = ends.b.heard
    now = [began + 100.0]
    module = "mtcd.federation.connections.connection.monotonic"
    monkeypatch.setattr(module, lambda: now[0])
    ends.b.send(REQUEST, "x", 1, b"")
    assert ends.b.spoke == began + 100.0
    now[0] = began + 101.0
    ends.b.send_on()
    assert ends.b.spoke == began + 100.0, "nothing was left to send"
    ends.read(ends.a)
    assert ends.a.heard == began + 101.0
    assert ends.b.heard == began


def test_whose_certificate_it_is(ends: Ends, tmp_path: Path) -> None:
    shown = certificate(tmp_path / "ours" / "bundles", "b")
    identity = ends.a.tls.identity()
    assert identity.certificate == "b"
    assert identity.serial == shown.serial_number
    assert identity.until == shown.not_valid_after_utc.timestamp()


def test_both_ends_speak_tls_of_version_three(ends: Ends) -> None:
    assert {one.tls._tls.version() for one in (ends.a, ends.b)} == {"TLSv1.3"}


@pytest.mark.parametrize("context", [calling_context, listening_context])
def test_older_versions_and_ends_without_certificates_are_not_taken(
    context: object, tmp_path: Path
) -> None:
    made = context(found(tmp_path / "ours") / "a")  # type: ignore[operator]
    assert made.minimum_version is ssl.TLSVersion.TLSv1_3
    assert made.verify_mode is ssl.CERT_REQUIRED
    assert made.check_hostname is (context is calling_context)
