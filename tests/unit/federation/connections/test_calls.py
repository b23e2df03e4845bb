"""When a peer is called again, and how often refusals are told."""

import socket
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("cryptography")

from mtcd.federation.connections import opener, refusals
from mtcd.federation.connections.connections import _listeners, listen_at
from mtcd.federation.connections.opener import (
    FIRST_DELAY_SECONDS,
    LONGEST_DELAY_SECONDS,
    STABLE_SECONDS,
    Call,
)
from mtcd.federation.connections.refusals import INTERVAL_SECONDS, Refusals, Refused
from mtcd.federation.names import parse_address
from ports import reserved_ports


class Clock:
    """A time that stands still."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        for module in (opener, refusals):
            monkeypatch.setattr(module, "monotonic", lambda: self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def a_call(where: str = "127.0.0.1:7000") -> Call:
    return Call("b", parse_address(where))


def test_each_call_waits_twice_as_long_as_the_last_up_to_a_limit(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opener, "uniform", lambda low, high: (low, high) == (0.8, 1.0) and high)
    call = a_call()
    waited = []
    for _ in range(6):
        call.is_busy = call.is_open = True
        call.wait()
        assert not call.is_busy
        assert not call.is_open
        waited.append(call.due - clock.now)
    assert waited == pytest.approx([0.05, 0.1, 0.2, 0.4, 0.5, 0.5])
    assert waited[0] == pytest.approx(FIRST_DELAY_SECONDS)
    assert waited[-1] == pytest.approx(LONGEST_DELAY_SECONDS)


def test_calls_of_many_members_are_spread(clock: Clock) -> None:
    due = set()
    for _ in range(20):
        call = a_call()
        call.wait()
        assert 0.8 * FIRST_DELAY_SECONDS <= call.due - clock.now <= FIRST_DELAY_SECONDS
        due.add(call.due)
    assert len(due) > 10


@pytest.mark.parametrize(("lasted", "delay"), [(STABLE_SECONDS, 0.4), (STABLE_SECONDS + 0.1, 0.05)])
def test_a_connection_that_lasted_is_called_again_at_once(
    clock: Clock, lasted: float, delay: float
) -> None:
    call = a_call()
    call.delay = 0.4
    call.addresses = [(2, ("127.0.0.1", 7000))]
    call.opened()
    assert call.is_busy
    assert call.is_open
    assert call.addresses == [], "others are not tried any more"
    clock.now += lasted
    call.lost()
    assert 0.8 * delay <= call.due - clock.now <= delay
    assert call.delay == 2 * delay if delay < 0.4 else LONGEST_DELAY_SECONDS


def test_numbers_are_resolved_at_once_and_names_in_a_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    may_go_on, found = Event(), Event()

    def slow(host: str, port: int, **kind: int) -> list[Any]:
        if host == "clinic.example":
            assert may_go_on.wait(10.0)
        assert kind == {"type": socket.SOCK_STREAM}
        row = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))
        return [row, row]

    monkeypatch.setattr(opener.socket, "getaddrinfo", slow)
    number = a_call()
    number.resolve(found.set)
    assert found.is_set()
    assert number.is_busy
    assert number.addresses == [(socket.AF_INET, ("127.0.0.1", 7000))], "each is tried once"

    found.clear()
    named = a_call("clinic.example:7000")
    named.resolve(found.set)
    assert named.is_busy, "nobody resolves it a second time meanwhile"
    assert not found.is_set()
    may_go_on.set()
    assert found.wait(10.0)
    assert named.addresses == number.addresses


def test_a_name_that_is_not_known_has_no_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: Any, **__: Any) -> list[Any]:
        raise socket.gaierror("unknown")

    monkeypatch.setattr(opener.socket, "getaddrinfo", unknown)
    call = a_call()
    call.addresses = [(2, ("127.0.0.1", 7000))]
    found: list[bool] = []
    call.resolve(lambda: found.append(True))
    assert found == [True]
    assert call.addresses == []


def test_refusals_are_told_at_most_once_in_an_interval(clock: Clock) -> None:
    told: list[dict[str, Refused]] = []
    some = Refusals(told.append)
    some.add("tls", "10.0.0.1", "first")
    assert told == [{"tls": Refused(1, "10.0.0.1", "first")}]
    some.add("tls", "10.0.0.2", "second")
    some.add("name", "10.0.0.3", "third")
    clock.now += INTERVAL_SECONDS / 2
    some.add("tls", "10.0.0.4", "fourth")
    some.pass_on()
    assert len(told) == 1
    clock.now += INTERVAL_SECONDS / 2
    some.pass_on()
    assert told[1:] == [
        {"tls": Refused(2, "10.0.0.4", "fourth"), "name": Refused(1, "10.0.0.3", "third")}
    ]
    some.add("limit", "10.0.0.5", "fifth")
    assert len(told) == 2
    some.pass_on(now=True)
    assert told[2:] == [{"limit": Refused(1, "10.0.0.5", "fifth")}]
    some.pass_on(now=True)
    assert len(told) == 3, "nothing is new"


def test_listening_at_a_place_that_is_taken_is_an_error() -> None:
    (port,) = reserved_ports(1)
    place = parse_address(f"127.0.0.1:{port}", listening=True)
    (first,) = listen_at(place)
    with first:
        assert not first.getblocking()
        with pytest.raises(OSError, match="in use"):
            listen_at(place)


def test_of_the_numbers_of_a_name_those_count_at_which_the_host_can_listen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (port,) = reserved_ports(1)
    rows = [
        (socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, port))
        for ip in ("192.0.2.1", "127.0.0.1", "127.0.0.1")
    ]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: rows)
    (made,) = listen_at(parse_address(f"127.0.0.1:{port}", listening=True))
    with made:
        assert made.getsockname() == ("127.0.0.1", port)


def test_a_member_may_listen_at_all_numbers_of_its_host_or_at_none() -> None:
    (port,) = reserved_ports(1)
    config = SimpleNamespace(listen=f"0.0.0.0:{port}", address="clinic.example:7000")
    everywhere: Any = SimpleNamespace(config=config)
    (made,) = _listeners(everywhere)
    with made:
        assert made.getsockname() == ("0.0.0.0", port)
    nowhere: Any = SimpleNamespace(config=SimpleNamespace(listen=None, address=None))
    assert _listeners(nowhere) == []
