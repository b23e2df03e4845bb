"""What carries the connections of a member, one look at a time: its thread does not run."""

from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from types import SimpleNamespace

import pytest

from bundles_on_disk import found
from connected import LONGEST, Ends, received
from mtcd.federation.connections.carrier import LARGE_BYTES, UNREAD_MESSAGES, Carrier
from mtcd.federation.connections.connection import FRAME_COST_BYTES
from mtcd.federation.connections.wire import ALIVE, ANSWER, REQUEST

LEASE = 8.0


class Carried:
    """The carrier of a, and what it has reported."""

    def __init__(self, bundles: Path) -> None:
        self.told: list[tuple[str, ...]] = []
        self.frames: list[tuple[int, str, int, bytes]] = []
        self.carrier = Carrier(
            LEASE,
            LONGEST,
            opened=lambda one: self.told.append(("opened", one.peer)),
            lost=lambda one: self.told.append(("lost", one.peer)),
            arrived=lambda one, frame: self.frames.append(frame),
            refused=lambda reason, who, why: self.told.append((reason, who, why)),
            receiving=lambda much: self.told.append(("much", str(much))),
        )
        self.ends = Ends(bundles)
        self.one = self.ends.a

    def add(self) -> None:
        self.carrier.add(self.one)
        self.turn()
        self.told.clear()

    def turn(self) -> None:
        """What the thread does in one turn."""
        for connection, events in self.carrier._selector.wait(0.0):
            if events & 2:
                self.carrier._send_on(connection)
            if events & 1:
                self.carrier._receive(connection)

    def look(self, seconds: float, was_held: bool = False) -> None:
        """Look around so long after something was heard last."""
        self.carrier._look_around(self.one.heard + seconds, was_held)

    def close(self) -> None:
        self.carrier._selector.close()
        self.ends.close()


@pytest.fixture
def a(tmp_path: Path) -> Iterator[Carried]:
    made = Carried(found(tmp_path / "ours"))
    yield made
    made.close()


def test_a_connection_is_lost_when_nothing_comes_for_longer_than_the_lease(a: Carried) -> None:
    a.add()
    a.look(LEASE)
    assert a.told == []
    a.look(LEASE + 0.001)
    assert a.told == [("lost", "b")]
    assert a.one.ended


def test_a_process_that_was_held_takes_nobody_for_silent(a: Carried) -> None:
    a.add()
    now = a.one.heard + 5 * LEASE
    a.carrier._look_around(now, was_held=True)
    assert a.told == []
    assert a.one.heard == now
    a.carrier._look_around(now + LEASE, was_held=False)
    assert a.told == []


def test_an_end_that_says_nothing_sends_signs_of_life(a: Carried) -> None:
    a.add()
    a.one.spoke = a.one.heard
    a.look(LEASE / 8)
    assert a.ends.read(a.ends.b) == []
    a.look(LEASE / 8 + 0.001)
    assert [frame.what for frame in a.ends.read(a.ends.b)] == [ALIVE]


def test_signs_of_life_are_not_passed_on_and_cost_nothing(a: Carried) -> None:
    a.add()
    a.ends.b.send(ALIVE, "", 0, b"")
    a.ends.b.send(REQUEST, "x", 1, b"ask")
    a.turn()
    assert a.frames == [(REQUEST, "x", 1, b"ask")]
    assert a.one.unread_bytes == FRAME_COST_BYTES + 3
    assert a.told == []


def test_a_certificate_that_expires_ends_the_connection(
    a: Carried, monkeypatch: pytest.MonkeyPatch
) -> None:
    a.add()
    monkeypatch.setattr("mtcd.federation.connections.carrier.time", lambda: a.one.until)
    a.look(0.0)
    assert a.told == []
    monkeypatch.setattr("mtcd.federation.connections.carrier.time", lambda: a.one.until + 0.001)
    a.look(0.0)
    why = "the certificate of either end has expired"
    assert a.told == [("certificate", "b", why), ("lost", "b")]


def test_an_end_that_does_not_read_is_cut_off_when_too_much_waits(a: Carried) -> None:
    a.add()
    a.one.unsent_bytes = UNREAD_MESSAGES * LONGEST
    a.look(0.0)
    assert a.told == []
    a.one.unsent_bytes += 1
    a.look(0.0)
    assert a.told == [("frame", "b", "it does not read what is sent to it"), ("lost", "b")]


def test_what_came_together_with_the_opening_is_read(a: Carried) -> None:
    a.ends.b.send(ANSWER, "x", 1, b"early")
    a.one.tls.feed(received(a.one.tls.plain))
    a.carrier.add(a.one)
    a.turn()
    assert a.told == [("opened", "b")]
    assert a.frames == [(ANSWER, "x", 1, b"early")]


def test_what_is_no_frame_is_cut_off(a: Carried) -> None:
    a.add()
    a.ends.b.tls.write(bytes(64))
    a.ends.b.tls.flush()
    a.turn()
    refused, lost = a.told
    assert refused[:2] == ("frame", "b")
    assert "frame has a head that is not one of a frame" in refused[2]
    assert lost == ("lost", "b")


@pytest.mark.parametrize("way", ["closed", "said", "not encrypted"])
def test_an_end_that_goes_is_lost(a: Carried, way: str) -> None:
    a.add()
    if way == "closed":
        a.ends.b.close()
    elif way == "said":
        a.ends.b.say_end()
        a.ends.sockets[0].shutdown(1)
        a.turn()
    else:
        a.ends.sockets[0].send(bytes(100))
    a.turn()
    assert a.told == [("lost", "b")]


def test_a_new_connection_to_a_member_takes_the_place_of_the_old_one(
    a: Carried, tmp_path: Path
) -> None:
    a.add()
    ends = Ends(tmp_path / "ours" / "bundles")
    a.carrier.add(ends.a)
    a.turn()
    assert a.told == [("lost", "b"), ("opened", "b")]
    assert a.one.ended
    ends.b.send(REQUEST, "x", 1, b"new")
    a.turn()
    assert a.frames == [(REQUEST, "x", 1, b"new")]
    a.carrier._attend(a.one)
    a.carrier._receive(a.one)
    assert len(a.told) == 2, "the old one is nobody's any more"
    ends.close()


def test_of_a_member_that_is_not_kept_up_with_nothing_more_is_read(a: Carried) -> None:
    a.add()
    a.one.unread_bytes = LONGEST
    a.ends.b.send(REQUEST, "x", 1, b"fills it")
    a.turn()
    assert len(a.frames) == 1
    a.ends.b.send(REQUEST, "x", 2, b"waits")
    a.turn()
    assert len(a.frames) == 1

    # it could not be heard meanwhile
    a.one.heard = monotonic() - 5 * LEASE
    a.carrier._look_around(monotonic(), was_held=False)
    assert a.told == []
    (frame,) = a.frames
    a.one.handled(SimpleNamespace(body=frame.body))  # type: ignore[attr-defined, arg-type]
    a.turn()
    a.turn()
    assert [frame[2] for frame in a.frames] == [1, 2]
    assert monotonic() - a.one.heard < LEASE


def test_it_says_when_much_is_being_decrypted(a: Carried) -> None:
    a.add()
    a.ends.b.send(REQUEST, "x", 1, bytes(1000))
    a.turn()
    assert a.told == []
    a.ends.b.send(REQUEST, "x", 2, bytes(100_000))
    a.turn()
    assert a.told == [("much", "True"), ("much", "False")]


def test_so_many_bytes_are_not_much_yet(a: Carried) -> None:
    a.add()
    a.ends.sockets[0].send(bytes(LARGE_BYTES))  # not encrypted: the connection ends
    a.turn()
    assert a.told == [("lost", "b")]


def test_at_the_end_what_waits_is_sent_first(a: Carried) -> None:
    a.add()
    sent = 0
    while not a.one.blocked:
        a.one.send(REQUEST, "x", sent, bytes(LONGEST))
        sent += 1
    a.carrier._begin_to_close()
    assert not a.one.ended, "it is blocked"

    frames = a.ends.read(a.ends.b)
    while not a.one.ended:
        a.turn()
        frames += a.ends.read(a.ends.b)
    assert [frame.number for frame in frames] == list(range(sent))
    assert a.told == []
    a.ends.b.close()
    a.turn()
    assert a.told == [("lost", "b")], "it has waited for the other end to close"


def test_no_connection_is_carried_after_the_end(a: Carried) -> None:
    a.carrier._begin_to_close()
    a.carrier.add(a.one)
    a.turn()
    assert a.told == []
    assert a.one.ended
    assert a.one.tls.plain.fileno() == -1
