"""The operator's requests to all parties: who is waited for, and what is made of the answers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("cryptography")

from mtcd.core.errors import ConfigError, MtcdError
from mtcd.federation.node.link import NO, OK
from mtcd.federation.node.operator import (
    ANSWER_SECONDS,
    QUERY_SECONDS,
    RETRY_SECONDS,
    Timeouts,
    _Asking,
    _read,
    operator_bundle,
    timeouts_of,
)


class Asking:
    """A request to a, b and c, which have addresses, and to d, which dials out only."""

    def __init__(self, *reached: str, refused: tuple[str, ...] = ()) -> None:
        self.moment = 100.0
        self.queried: list[tuple[str, str, float]] = []
        self.done: dict[str, Any] = {}
        self.timers: list[tuple[float, Any]] = []
        names = ("a", "b", "c", "d")
        peers = {name: SimpleNamespace(address=None if name == "d" else name) for name in names}
        accepts = {**dict.fromkeys(reached, True), **dict.fromkeys(refused, False)}
        operator: Any = SimpleNamespace(
            bundle=SimpleNamespace(config=SimpleNamespace(peers=peers)),
            link=SimpleNamespace(peers=names, query=self.query, reached=accepts),
            loop=SimpleNamespace(
                later=lambda seconds, act: self.timers.append((seconds, act)),
                now=lambda: self.moment,
            ),
        )
        self.link = operator.link
        self.asking = _Asking(operator, "status", Timeouts(2.0, 5.0))

    def query(self, name: str, kind: str, done: Any, seconds: float) -> None:
        self.queried.append((name, kind, seconds))
        self.done[name] = done


def test_everybody_is_asked_and_waited_for_as_long_as_it_may_take() -> None:
    operator = Asking("a", refused=("b",))
    operator.asking.begin()
    assert [name for name, _, _ in operator.queried] == ["a", "b", "c", "d"]
    assert {kind for _, kind, _ in operator.queried} == {"control/status"}
    # c may still accept a connection; b does not, and d cannot be called
    assert operator.asking.until == {"a": 105.0, "b": 100.0, "c": 102.0, "d": 100.0}
    seconds = [seconds for _, _, seconds in operator.queried]
    assert seconds == [QUERY_SECONDS, RETRY_SECONDS, QUERY_SECONDS, RETRY_SECONDS]


def test_a_request_is_complete_when_all_have_answered_or_their_time_is_over() -> None:
    operator = Asking("a")
    operator.asking.begin()
    operator.done["a"](OK + b'{"x": 1}')
    operator.done["d"](None)
    operator.done["b"](None)  # there is time: it is asked again
    assert operator.asking.answers == {"a": {"x": 1}, "d": None}
    ((seconds, again),) = operator.timers
    assert seconds == RETRY_SECONDS
    again()
    assert [name for name, _, _ in operator.queried[4:]] == ["b"]
    operator.moment += 1.5
    operator.link.reached["b"] = True
    operator.done["b"](None)
    assert operator.asking.until["b"] == 105.0
    operator.timers[1][1]()
    operator.moment += 10.0
    operator.done["b"](None)
    assert not operator.asking.complete.is_set()
    operator.done["c"](NO + b"busy")
    assert operator.asking.complete.is_set()
    assert str(operator.asking.answers["c"]) == "busy"


def test_without_members_a_request_is_complete_at_once() -> None:
    operator = Asking()
    operator.link.peers = ()
    operator.asking.begin()
    assert operator.asking.complete.is_set()


@pytest.mark.parametrize("answer", [b"", b"?", OK, OK + b"{", OK + b"[" * 10**5])
def test_an_answer_that_cannot_be_read_is_none(answer: bytes) -> None:
    assert _read(answer) is None


def test_answers_are_json_and_refusals_are_errors_on_one_line() -> None:
    assert _read(OK + b"[1]") == [1]
    refused = _read(NO + b"not\nnow\xff")
    assert isinstance(refused, MtcdError)
    assert str(refused) == "not now\ufffd"


@pytest.mark.parametrize(("seconds", "answer"), [(1.0, ANSWER_SECONDS), (9.0, 9.0)])
def test_one_that_is_connected_has_five_seconds_at_least(seconds: float, answer: float) -> None:
    assert timeouts_of(seconds) == (seconds, answer)


def test_the_bundle_of_the_operator_is_in_the_folder_or_below_it(tmp_path: Any) -> None:
    def read(folder: Any) -> Any:
        config = SimpleNamespace(is_operator=folder.name == "operator", name=folder.name)
        return SimpleNamespace(config=config, folder=folder)

    inside = tmp_path / "operator"
    inside.mkdir()
    assert operator_bundle(inside, read).folder == inside
    with pytest.raises(ConfigError, match="give the operator's bundle"):
        operator_bundle(tmp_path, read)
    (inside / "party.yaml").write_text("")
    assert operator_bundle(tmp_path, read).folder == inside
