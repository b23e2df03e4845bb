"""A process of a federation that ends closes all that it has open, whatever fails."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from bundles_on_disk import found
from mtcd.federation.connections.wire import REQUEST
from mtcd.federation.credentials.bundle import read_bundle
from mtcd.federation.node.context import NodeContext
from raw_members import ByHand, Member
from waiting import until


def raising(error: Exception) -> SimpleNamespace:
    def close() -> None:
        raise error

    return SimpleNamespace(close=close)


def test_peers_that_read_nothing_are_not_waited_for_long(tmp_path: Path) -> None:
    bundles = found(tmp_path)
    large = bytes(50 * 2**20)
    a = Member(bundles / "a", lambda request: request.reply(large))
    with ByHand(str(read_bundle(bundles / "a").config.address), bundles / "b") as b:
        b.say("b", "a")
        assert b.hear()
        b.send(REQUEST, "x", 1)
        assert until(lambda: "b" in a.link._connections and a.link._connections["b"].blocked)
        a.close()
    assert not a.link._all._carrier._thread.is_alive()


def test_what_was_answered_last_arrives_before_the_end(tmp_path: Path) -> None:
    bundles = found(tmp_path)
    large = bytes(20 * 2**20)
    with Member(bundles / "b") as b, Member(bundles / "a") as a:
        assert until(lambda: a.link.up and b.link.up)
        answers = b.ask("a", large)
        assert until(lambda: answers == [b"here"])
        a.link.close()
        assert until(lambda: b.seen == [("a", True), ("a", False)])


def test_what_is_said_in_one_breath_with_the_end_is_heard(tmp_path: Path) -> None:
    bundles = found(tmp_path)
    with Member(bundles / "a") as a:
        with ByHand(str(read_bundle(bundles / "a").config.address), bundles / "b") as b:
            b.say("b", "a")
            assert b.hear()
            a.link._all._carrier._selector.call(lambda: time.sleep(0.3))
            time.sleep(0.1)
            for number in range(3):
                b.send(REQUEST, "x", number, b"last")
            b.tls.settimeout(0.0)
            with suppress(OSError):
                b.tls.unwrap()
        assert until(lambda: a.seen == [("b", True), ("b", False)])
        assert a.heard == [("b", "x", b"last")] * 3


def test_the_log_is_closed_after_links_that_fail() -> None:
    closed: list[str] = []
    context = object.__new__(NodeContext)
    context.rpc = SimpleNamespace(link=raising(OSError("links")))  # type: ignore[assignment]
    context.log = SimpleNamespace(close=lambda: closed.append("log"))  # type: ignore[assignment]
    with pytest.raises(OSError, match="links"):
        context.close()
    assert closed == ["log"]
