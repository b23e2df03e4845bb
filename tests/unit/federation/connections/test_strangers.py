"""Strangers who open connections all the time do not keep members out, and leave nothing behind.

tests/processes/operations/test_strangers.py does the same for a minute, with real processes.
"""

import errno
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from bundles_on_disk import found
from mtcd.federation.connections import opener, refusals
from mtcd.federation.credentials.bundle import read_bundle
from raw_members import Member
from strangers import WAYS, attack
from waiting import until

SECONDS = 3.0  # of an attack, besides the one before it is looked at
JOIN_SECONDS = 1.0


@pytest.fixture
def bundles(tmp_path: Path) -> Path:
    return found(tmp_path / "ours")


@pytest.fixture
def a(bundles: Path) -> Iterator[Member]:
    with Member(bundles / "a") as member:
        yield member


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def joins(bundles: Path, a: Member) -> float:
    """Seconds until b, which starts now, has asked a something and was answered."""
    seen = len(a.seen)
    began = time.monotonic()
    with Member(bundles / "b") as b:
        assert until(lambda: "a" in b.link.up)
        answers = b.ask("a")
        assert until(lambda: answers == [b"here"])
        seconds = time.monotonic() - began
    assert until(lambda: a.seen[seen:] == [("b", True), ("b", False)])
    return seconds


def test_members_join_among_strangers_of_all_kinds(
    bundles: Path, a: Member, tmp_path: Path
) -> None:
    files, threads = open_files(), threading.active_count()
    address = str(read_bundle(bundles / "a").config.address)
    took = []
    with attack(bundles, tmp_path / "strangers", address, rate=100, idle=500) as done:
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            took.append(joins(bundles, a))
        # some of those who wait have been closed, so that there was room
        assert open_files() <= files + refusals.MOST_PER_ADDRESS + 10
    assert sorted(took)[len(took) // 2] < JOIN_SECONDS, took
    assert all(done[way] for way in WAYS), done  # how many, depends on the machine's other work
    assert done["idle"] >= 500
    assert done["not accepted"] == 0

    for reason in ("closed", "tls", "certificate", "name", "limit"):
        assert until(lambda reason=reason: a.refused.get(reason, 0) > 0), (reason, a.refused)
    assert until(lambda: open_files() == files)
    assert until(lambda: threading.active_count() == threads)
    assert len(a.told) < 12 * len(a.refused), "a line a second for each reason, not one for each"
    assert joins(bundles, a) < 10 * JOIN_SECONDS


def test_of_too_many_who_wait_the_oldest_is_closed(bundles: Path, a: Member) -> None:
    place = read_bundle(bundles / "a").config.address
    host, port = str(place).rsplit(":", 1)
    first, second, *others = [
        socket.create_connection((host, int(port)), 10.0) for _ in range(refusals.MOST_PER_ADDRESS)
    ]
    second.settimeout(0.2)
    with pytest.raises(TimeoutError):
        second.recv(1)
    others.append(socket.create_connection((host, int(port)), 10.0))
    assert first.recv(1) == b""
    assert until(lambda: a.refused == {"limit": 1})
    with pytest.raises(TimeoutError):
        second.recv(1)
    for one in (first, second, *others):
        one.close()


def test_one_who_is_idle_is_closed_after_a_while(
    bundles: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opener, "HANDSHAKE_SECONDS", 0.3)
    place = read_bundle(bundles / "a").config.address
    host, port = str(place).rsplit(":", 1)
    with Member(bundles / "a") as a, socket.create_connection((host, int(port)), 10.0) as idle:
        assert idle.recv(1) == b""
        assert until(lambda: a.refused == {"deadline": 1})


def failing(number: int, times: int) -> Callable[[socket.socket], tuple[socket.socket, object]]:
    """An accept that fails so many times."""
    accept, left = socket.socket.accept, [number] * times

    def accept_or_fail(listener: socket.socket) -> tuple[socket.socket, object]:
        if left:
            raise OSError(left.pop(), "made up")
        return accept(listener)

    return accept_or_fail


@pytest.mark.parametrize(
    "number", [errno.EMFILE, errno.ENOMEM, errno.ECONNABORTED, errno.EPERM, errno.EINVAL]
)
def test_errors_of_the_system_do_not_end_the_listening(
    number: int, bundles: Path, a: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket.socket, "accept", failing(number, 5))
    joins(bundles, a)


def test_a_process_without_descriptors_accepts_again_when_it_has_some(
    bundles: Path, a: Member
) -> None:
    """Without it, the connection would wait in the queue of the system, and the thread would
    spin."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    place = str(read_bundle(bundles / "a").config.address)
    host, port = place.rsplit(":", 1)
    caller = socket.socket()
    caller.settimeout(10.0)
    taken = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (open_files() + 20, hard))
    try:
        with suppress(OSError):  # too many open files
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        caller.connect((host, int(port)))
        assert caller.recv(1) == b""
        assert until(lambda: a.refused == {"resources": 1})
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for one in taken:
            os.close(one)
        caller.close()
    joins(bundles, a)


def test_an_error_of_our_own_in_a_handshake_does_not_end_the_thread(
    bundles: Path, a: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = [True]
    shake = opener.Handshake.go_on

    def fail_once(handshake: opener.Handshake) -> bool:
        if left and not handshake.calls:
            left.pop()
            raise ZeroDivisionError
        return shake(handshake)

    monkeypatch.setattr(opener.Handshake, "go_on", fail_once)
    joins(bundles, a)
    assert a.refused == {"tls": 1}
