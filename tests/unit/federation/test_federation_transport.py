"""The Zenoh configuration of a bundle on loopback, with real sessions, some of which cheat."""

import json
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

pytest.importorskip("cryptography")

from bundles_on_disk import Config, found, settings
from mtcd.federation.administrator import renew, revoke
from mtcd.federation.credentials.authority import Authority
from mtcd.federation.credentials.bundle import read_bundle
from mtcd.federation.credentials.certificates import issue
from mtcd.federation.credentials.private_files import write_files
from mtcd.federation.names import parse_address
from mtcd.federation.transport import alive_key, channel, control_channel, control_key, message_key
from waiting import until

Open = Callable[[Config], Any]


@pytest.fixture
def bundles(tmp_path: Path) -> Path:
    return found(tmp_path / "ours")


@pytest.fixture
def opened() -> Iterator[Open]:
    zenoh = pytest.importorskip("cryptography")
    sessions = []

    def open_one(config: Config) -> Any:
        sessions.append(zenoh.open(zenoh.Config.from_json5(json.dumps(config))))
        return sessions[-1]

    yield open_one
    for session in sessions:
        session.close()


def cheating(config: Config, *calls: str) -> Config:
    """A party that has taken the rules out of its own configuration, and calls whom it likes."""
    connect = {**config["connect"], "endpoints": [*config["connect"]["endpoints"], *calls]}
    return {**config, "access_control": {"enabled": False}, "connect": connect}


def inbox(session: Any, *keys: str) -> list[tuple[str, str]]:
    """What arrives under these keys from now on: under which key, and what it says."""
    heard: list[tuple[str, str]] = []
    for key in keys:
        session.declare_subscriber(
            key, lambda told: heard.append((str(told.key_expr), told.payload.to_string()))
        )
    return heard


def test_neighbours_and_server_talk_and_nobody_else_does(bundles: Path, opened: Open) -> None:
    # any order
    sessions = {name: opened(settings(bundles, name)) for name in ("c", "a", "b", "server")}
    tokens = [
        session.liveliness().declare_token(alive_key("clinics", me))
        for me, session in sessions.items()
    ]
    for me, session in sessions.items():
        for peer in read_bundle(bundles / me).config.peers:
            session.declare_queryable(
                channel("clinics", me, peer), lambda query: query.reply(query.key_expr, b"here")
            )

    def answers(sender: str, receiver: str) -> int:
        return len(
            list(sessions[sender].get(message_key("clinics", receiver, sender, "x"), timeout=2.0))
        )

    linked = [(a, b) for a in sessions for b in read_bundle(bundles / a).config.peers]
    assert len(linked) == 10
    for pair in linked:
        assert until(lambda pair=pair: answers(*pair) == 1), pair
    assert answers("a", "c") == answers("c", "a") == 0
    assert [len(s.info.peers_zid()) for s in sessions.values()] == [2, 2, 3, 3]

    def alive(watcher: str, name: str) -> int:
        return len(
            list(sessions[watcher].liveliness().get(alive_key("clinics", name), timeout=2.0))
        )

    assert until(lambda: alive("b", "a") == 1)
    assert alive("c", "a") == 0  # no neighbours
    tokens[1].undeclare()
    assert until(lambda: alive("b", "a") == 0)


@pytest.mark.parametrize("who", ["a", "c"])
def test_a_party_that_comes_back_is_connected_again(who: str, bundles: Path, opened: Open) -> None:
    b = opened(settings(bundles, "b"))  # b calls a, and c calls b
    for _ in range(2):
        other = opened(settings(bundles, who))
        assert until(lambda: len(b.info.peers_zid()) == 1)
        other.close()
        assert until(lambda: b.info.peers_zid() == [])


def test_requests_to_a_peer_that_is_lost_end_without_an_answer(bundles: Path) -> None:
    """Otherwise whoever waits for one would wait for ever, also when the peer has come back."""
    pytest.importorskip("cryptography")
    from mtcd.federation.node.counters import Counters
    from mtcd.federation.node.link import Link
    from mtcd.federation.node.loop import Loop

    loops = {name: Loop() for name in ("a", "b")}
    at_b: list[Any] = []
    seen_by_a: list[Any] = []
    for loop in loops.values():
        Thread(target=loop.run, daemon=True).start()

    def link(name: str, on_request: Any, on_change: Any) -> Any:
        bundle = read_bundle(bundles / name)
        return Link(bundle, loops[name], on_request, on_change, Counters(bundle.config.peers))

    a = link("a", lambda request: None, lambda peer, up: seen_by_a.append((peer, up)))
    b = link("b", at_b.append, lambda peer, up: None)
    try:
        assert until(lambda: seen_by_a == [("b", True)])
        for number in range(3):
            loops["a"].call(
                lambda number=number: a.post(
                    "b", "x", b"hello", lambda body: seen_by_a.append((number, body))
                )
            )
        assert until(lambda: len(at_b) == 3)
        loops["b"].call(lambda: at_b[1].answer(b"here"))
        assert until(lambda: (1, b"here") in seen_by_a)
        assert len(seen_by_a) == 2, "the others are not answered yet"

        b.close()
        assert until(lambda: ("b", False) in seen_by_a)
        assert seen_by_a[2:] == [(0, None), (2, None), ("b", False)], (
            "each once, before the loss is told"
        )
        loops["a"].call(
            lambda: a.post("b", "x", b"hello", lambda body: seen_by_a.append((3, body)))
        )
        assert until(lambda: (3, None) in seen_by_a)
    finally:
        for one in (a, b):
            one.close()
        for loop in loops.values():
            loop.stop()


def test_a_party_that_cheats_cannot_write_as_another_nor_listen_to_others(
    bundles: Path, opened: Open
) -> None:
    b, c = opened(settings(bundles, "b")), opened(settings(bundles, "c"))
    at_b = inbox(
        b, *(channel("clinics", "b", peer) for peer in ("a", "c", "server")), "mtcd/other/**"
    )
    at_c = inbox(c, channel("clinics", "c", "b"))
    a = opened(cheating(settings(bundles, "a")))
    at_a = inbox(
        a, "**", "mtcd/clinics/**", channel("clinics", "c", "b"), channel("clinics", "a", "b")
    )
    honest = message_key("clinics", "b", "a", "x")
    forged = [message_key("clinics", "b", who, "x") for who in ("c", "server", "b")]
    forged += [
        message_key("clinics", "c", "b", "x"),
        alive_key("clinics", "c"),
        "mtcd/other/to/b/from/a/x",
    ]

    def forbidden_then_allowed() -> bool:
        for key in [*forged, honest]:
            a.put(key, b"by a")
        b.put(message_key("clinics", "c", "b", "x"), b"by b")
        b.put(message_key("clinics", "a", "b", "x"), b"by b")
        heard = (honest, "by a") in at_b, (message_key("clinics", "a", "b", "x"), "by b") in at_a
        return all(heard) and len(at_c) > 5

    assert until(forbidden_then_allowed)
    time.sleep(0.2)
    assert set(at_b) == {(honest, "by a")}
    assert set(at_c) == {(message_key("clinics", "c", "b", "x"), "by b")}
    assert {key for key, sender in at_a if sender == "by b"} == {
        message_key("clinics", "a", "b", "x")
    }


def test_a_party_that_calls_one_who_is_no_neighbour_gets_nothing(
    bundles: Path, opened: Open
) -> None:
    c, b = opened(settings(bundles, "c")), opened(settings(bundles, "b"))
    heard = inbox(c, channel("clinics", "c", "a"), channel("clinics", "c", "b"))
    a = opened(cheating(settings(bundles, "a"), f"tls/{read_bundle(bundles / 'c').config.address}"))
    assert until(lambda: len(c.info.peers_zid()) == 2)

    def both_write() -> bool:
        a.put(message_key("clinics", "c", "a", "x"), b"x")
        a.put(message_key("clinics", "c", "b", "x"), b"forged")
        b.put(message_key("clinics", "c", "b", "x"), b"by b")
        return len(heard) > 5

    assert until(both_write)
    assert set(heard) == {(message_key("clinics", "c", "b", "x"), "by b")}


def test_the_operator_is_answered_and_can_do_nothing_else(bundles: Path, opened: Open) -> None:
    sessions = {name: opened(settings(bundles, name)) for name in ("a", "b", "server")}
    token = sessions["a"].liveliness().declare_token(alive_key("clinics", "a"))
    asked: list[str] = []

    def answer(query: Any) -> None:
        asked.append(str(query.key_expr))
        query.reply(query.key_expr, b"here")

    for me, session in sessions.items():
        session.declare_queryable(control_channel("clinics", me), answer)
        session.declare_queryable(channel("clinics", me, "operator"), answer)
    at_a = inbox(sessions["a"], channel("clinics", "a", "b"), channel("clinics", "a", "operator"))
    sessions["a"].declare_queryable(channel("clinics", "a", "b"), answer)
    honest, operator = (
        opened(settings(bundles, "operator")),
        opened(cheating(settings(bundles, "operator"))),
    )
    heard = inbox(operator, "**", channel("clinics", "a", "b"), channel("clinics", "operator", "a"))

    def answers(session: Any, key: str) -> int:
        return len(list(session.get(key, timeout=0.5)))

    for name in sessions:
        for session in (honest, operator):
            assert until(
                lambda name=name, s=session: answers(s, control_key("clinics", name, "status"))
            )
    asked.clear()
    forbidden = [
        message_key("clinics", "a", "operator", "x"),
        message_key("clinics", "a", "b", "x"),
    ]
    forbidden.append(message_key("clinics", "a", "b", "control", "x"))
    assert [answers(operator, key) for key in forbidden] == [0, 0, 0]
    for key in [*forbidden, control_key("clinics", "a", "status")]:
        operator.put(key, b"forged")

    def b_writes() -> bool:
        sessions["b"].put(message_key("clinics", "a", "b", "x"), b"by b")
        return len(at_a) > 5

    assert until(b_writes)
    assert {told for _, told in at_a} == {"by b"}
    assert asked == []
    assert heard == [told for told in heard if told[1] == "forged"]  # its own

    def alive(session: Any) -> int:
        return len(list(session.liveliness().get(alive_key("clinics", "a"), timeout=0.5)))

    assert until(lambda: alive(sessions["b"]) == 1)
    assert alive(operator) == 0
    token.undeclare()
    sessions["b"].declare_queryable(channel("clinics", "b", "c"), answer)
    party = opened(cheating(settings(bundles, "c")))
    assert until(lambda: answers(party, message_key("clinics", "b", "c", "x")))
    assert answers(party, control_key("clinics", "b", "status")) == 0  # a party is no operator


def stranger(bundles: Path, tmp_path: Path) -> Config:
    """Somebody with a bundle of the same names from another authority."""
    theirs = settings(found(tmp_path / "theirs"), "b")
    return {**theirs, "connect": settings(bundles, "b")["connect"]}


def expired(bundles: Path, _: Path) -> Config:
    config = settings(bundles, "b")
    long_ago = datetime.now(UTC) - timedelta(days=100)
    made = issue(
        Authority.load(bundles).issued, "b", parse_address("127.0.0.1:1"), 90, now=long_ago
    )
    write_files(bundles / "b", {"key.pem": made.key_pem, "cert.pem": made.certificate_pem})
    return config


def without_certificate(bundles: Path, _: Path) -> Config:
    config = settings(bundles, "b")
    tls = {"root_ca_certificate": config["transport"]["link"]["tls"]["root_ca_certificate"]}
    config["transport"]["link"]["tls"] = tls
    return {**config, "listen": {"endpoints": []}}


@pytest.mark.parametrize("who", [stranger, expired, without_certificate])
def test_who_has_no_good_certificate_cannot_connect(
    who: Any, bundles: Path, tmp_path: Path, opened: Open
) -> None:
    a = opened(settings(bundles, "a"))
    intruder = opened(cheating(who(bundles, tmp_path)))
    opened(cheating(settings(bundles, "c"), f"tls/{read_bundle(bundles / 'a').config.address}"))
    assert until(lambda: a.info.peers_zid())  # c is of the same authority: that one gets through
    time.sleep(1.0)
    assert len(a.info.peers_zid()) == 1
    assert intruder.info.peers_zid() == []


def test_a_revoked_certificate_lets_nobody_write_though_its_party_was_renewed(
    bundles: Path, opened: Open
) -> None:
    stolen = {name: (bundles / "b" / name).read_bytes() for name in ("key.pem", "cert.pem")}
    revoke(bundles, "b")
    renew(bundles, "b", 90)
    new = settings(bundles, "b")
    a = opened(settings(bundles, "a"))
    heard = inbox(a, channel("clinics", "a", "b"))
    renewed = {name: (bundles / "b" / name).read_bytes() for name in ("key.pem", "cert.pem")}
    write_files(bundles / "b", stolen)
    thief = opened(cheating(new))
    assert until(lambda: a.info.peers_zid())  # the session opens: rules then give it nothing
    end = time.monotonic() + 0.7
    while time.monotonic() < end:
        thief.put(message_key("clinics", "a", "b", "x"), b"x")
        time.sleep(0.05)
    assert heard == []
    thief.close()
    write_files(bundles / "b", renewed)
    b = opened(new)

    def writes() -> bool:
        b.put(message_key("clinics", "a", "b", "x"), b"x")
        return bool(heard)

    assert until(writes)
