"""For whom the final check waits, and who is told last: by hand, without nodes."""

from types import SimpleNamespace
from typing import Any

import pytest

from mtcd.federation.node.final_check import FinalCheck
from mtcd.federation.node.refusal import Refusal


@pytest.mark.parametrize(
    ("server", "complete", "waits_for", "awaited"),
    [
        (True, False, set(), {"server"}),  # it has the final theta_0
        (True, False, {"b"}, {"b", "server"}),
        (True, True, {"b"}, {"b"}),
        (False, False, {"b"}, {"b"}),
        (False, False, set(), {"a", "b"}),  # any of them
        (True, True, set(), {"a", "b"}),
    ],
)
def test_who_is_awaited(
    server: bool, complete: bool, waits_for: set[str], awaited: set[str]
) -> None:
    check: Any = object.__new__(FinalCheck)
    check.parties = ["a", "b"]
    check.config = SimpleNamespace(peers={"b": 1, **({"server": 1} if server else {})})
    check.own = SimpleNamespace(complete=complete)
    check.rpc_client = SimpleNamespace(waits_for=waits_for)
    assert check._awaited() == awaited


def refusing(*up: str) -> tuple[Any, dict[str, Any], list[str]]:
    """A party that cannot take part, whom it has asked, and what has happened."""
    made: Any = object.__new__(Refusal)
    asked: dict[str, Any] = {}
    happened: list[str] = []
    made.rpc = SimpleNamespace(link=SimpleNamespace(up=set(up)))
    made.loop = SimpleNamespace(later=lambda seconds, act: happened.append("later"))
    made._ask = asked.__setitem__
    made._stop = lambda: happened.append("stopped")
    made._report_back()
    return made, asked, happened


def test_a_party_that_cannot_take_part_goes_when_all_peers_have_heard_it() -> None:
    _, asked, happened = refusing("a", "b")
    assert happened == ["later"]
    assert [*asked] == ["a", "b"]
    asked["b"]()
    assert happened == ["later"]
    asked["a"]()
    assert happened == ["later", "stopped"]


def test_without_peers_it_goes_at_once() -> None:
    _, asked, happened = refusing()
    assert (asked, happened) == ({}, ["stopped"])
