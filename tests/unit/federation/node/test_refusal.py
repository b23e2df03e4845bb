"""A party that cannot take part: whom it tells, how long it stays for it, and what it hears."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("cryptography")

from mtcd.core.errors import ConfigError, DataError, MtcdError, NotInstalledError, WireError
from mtcd.federation.node.refusal import (
    ALONE_SECONDS,
    LONGEST_BYTES,
    OWN_SECONDS,
    PASSING_SECONDS,
    STEP_SECONDS,
    Refusal,
    UnableError,
    _names,
    _read,
    reason_of,
)

MEMBERS = ["a", "b", "c", "server"]


class Refusing:
    """The party a, with the peers b and server; c is behind them."""

    def __init__(self, *up: str, begun: bool = False) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.answers: dict[str, Any] = {}
        self.ended: list[Any] = []
        self.moment = 100.0
        self.timers: list[float] = []
        self.stopped = 0
        loop: Any = SimpleNamespace(
            call=self.ended.append,
            drop_timers=lambda: self.ended.append("timers dropped"),
            later=lambda seconds, act: self.timers.append(seconds),
            now=lambda: self.moment,
            run=lambda: None,
            stop=self.stop,
        )
        rpc: Any = SimpleNamespace(
            ask=self.ask,
            end=lambda: self.ended.append("rpc ended"),
            link=SimpleNamespace(peers=frozenset({"b", "server"}), up=set(up)),
            on=lambda kind, handler: None,
        )
        client = SimpleNamespace(give_up=lambda: self.ended.append("client gave up"))
        config = SimpleNamespace(name="a", parties=MEMBERS[:-1])
        context: Any = SimpleNamespace(
            bundle=SimpleNamespace(config=config), loop=loop, rpc=rpc, rpc_client=client
        )
        self.link = rpc.link
        self.refusal = Refusal(context, lambda: begun)

    def stop(self) -> None:
        self.stopped += 1

    def ask(self, peer: str, kind: str, body: bytes, done: Any, direct: bool) -> None:
        assert direct
        self.asked.append((peer, json.loads(body)))
        self.answers[peer] = done

    def hears(self, sender: str = "b", **content: Any) -> list[str]:
        """Who is aware, as it answers."""
        answers: list[bytes] = []
        body = json.dumps({"party": "c", "reason": "no table", **content}).encode()
        request: Any = SimpleNamespace(sender=sender, direct=True, body=body, answer=answers.append)
        self.refusal._receive(request)
        return list(json.loads(answers[0]))


def test_the_reason_goes_to_all_peers_that_are_up_before_the_party_ends() -> None:
    party = Refusing("b")
    party.refusal.tell(DataError("row 7 has the value 3.5"))
    assert party.ended == ["rpc ended", "client gave up", "timers dropped"]
    ((peer, told),) = party.asked
    assert (peer, told["party"], told["aware"]) == ("b", "a", [])
    assert "3.5" not in told["reason"]
    assert party.timers == [STEP_SECONDS]


def test_a_refusal_that_is_passed_on_names_the_party_and_its_reason() -> None:
    party = Refusing("server")
    assert party.hears(aware=["c"]) == ["b", "c"]
    party.refusal.tell(UnableError("c", "no table", "b"))
    assert party.asked == [("server", {"party": "c", "reason": "no table", "aware": ["b", "c"]})]


def test_a_peer_is_asked_again_if_it_does_not_answer_and_told_once() -> None:
    party = Refusing("b", "server")
    party.refusal.tell(MtcdError("x"))
    party.refusal._step()
    assert sorted(peer for peer, _ in party.asked) == ["b", "server"], "both are under way"
    party.answers["b"](None, "")
    party.refusal._step()
    assert [peer for peer, _ in party.asked[2:]] == ["b"]
    party.answers["b"](b'["c"]', "")
    party.answers["server"](None, "it is of an older version")
    assert party.refusal._aware == {"b", "c", "server"}
    party.asked.clear()
    party.refusal._step()  # everybody knows: they are told who knows, and it ends
    assert [body["aware"] for _, body in party.asked] == 2 * [["b", "c", "server"]]
    for peer in ("b", "server"):
        party.answers[peer](b"[]", "")
    assert party.stopped == 1


@pytest.mark.parametrize(("heard", "seconds"), [(False, OWN_SECONDS), (True, PASSING_SECONDS)])
def test_it_stays_for_peers_that_may_be_starting_but_not_for_ever(
    heard: bool, seconds: float
) -> None:
    party = Refusing("b")
    if heard:
        party.hears()
    party.refusal.tell(MtcdError("x"))
    party.moment += seconds - 0.1
    party.refusal._step()
    assert party.timers == 2 * [STEP_SECONDS]
    party.moment += 0.2
    party.link.up.clear()
    party.refusal._step()
    assert party.stopped == 1


def test_without_any_connection_it_stays_less_long() -> None:
    party = Refusing()
    party.refusal.tell(MtcdError("x"))
    party.moment += ALONE_SECONDS - 0.1
    party.refusal._step()
    assert party.stopped == 0
    party.moment += 0.2
    party.refusal._step()
    assert party.stopped == 1
    assert party.asked == []


def test_who_has_heard_of_it_ends_with_the_name_of_who_reports_it() -> None:
    party = Refusing("b")
    assert party.hears() == ["b"]
    (ending,) = party.ended
    with pytest.raises(UnableError, match="because c cannot take part, as b reports.*no table"):
        ending()
    assert party.hears(sender="server", aware=["c"]) == ["b", "c", "server"], (
        "answered all the same"
    )
    assert len(party.ended) == 1


def test_once_training_has_begun_a_refusal_is_answered_and_ends_nothing() -> None:
    party = Refusing("b", begun=True)
    assert party.hears() == ["b"]
    assert party.ended == []


def test_an_error_names_who_reports_it_unless_that_is_the_party_itself() -> None:
    for by in (None, "c"):
        error = UnableError("c", "no table", by)
        assert "because c cannot take part. When" in str(error)
    assert error.summary == "Ending, because c cannot take part: no table"


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (NotInstalledError("needs torch"), "needs torch"),
        (WireError("frame", "is cut short"), "The message was refused: frame is cut short."),
        (DataError("value 7"), "Its table cannot be read."),
        (ConfigError("value 7"), "Its settings cannot be used."),
        (MtcdError("value 7"), "It failed (MtcdError)."),
        (ValueError("value 7"), "It ended with an unexpected error (ValueError)."),
    ],
)
def test_others_read_no_values_of_a_table(error: Exception, shown: str) -> None:
    reason = reason_of(error)
    assert reason.startswith(shown)
    assert "value 7" not in reason


def request(body: bytes, direct: bool = True) -> Any:
    return SimpleNamespace(sender="b", direct=direct, body=body)


def test_a_refusal_is_read_up_to_its_longest() -> None:
    sound = json.dumps({"party": "a", "reason": "x\n", "aware": ["b", "z", 7]}).encode()
    longest = sound + b" " * (LONGEST_BYTES - len(sound))
    assert _read(request(longest), MEMBERS) == ("a", "x ", {"b"})
    with pytest.raises(WireError, match="refusal is not that of a party"):
        _read(request(longest + b" "), MEMBERS)


@pytest.mark.parametrize("reason", ["", None, 7, ["x"]])
def test_a_refusal_gives_a_reason(reason: Any) -> None:
    with pytest.raises(WireError, match="refusal gives no reason"):
        _read(request(json.dumps({"party": "a", "reason": reason}).encode()), MEMBERS)


@pytest.mark.parametrize("body", [b"", b"[]", b'{"party": "z"}', b"{", b"[" * 10**5])
def test_a_refusal_is_that_of_a_member(body: bytes) -> None:
    with pytest.raises(WireError, match="refusal is not that of a party"):
        _read(request(body), MEMBERS)


def test_of_an_answer_only_members_are_taken() -> None:
    sound = b'["a", "server", "z", 7]'
    longest = sound + b" " * (LONGEST_BYTES - len(sound))
    assert _names(longest, MEMBERS[:-1]) == {"a", "server"}
    for other in (longest + b" ", b"", None, b"{}", b"7", b"[" * 10**5):
        assert _names(other, MEMBERS[:-1]) == set()
