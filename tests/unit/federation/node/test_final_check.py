"""For whom the final check waits, and who is told last: by hand, without nodes."""

import math
from base64 import b64decode
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mtcd.core.errors import WireError
from mtcd.federation.node.final_check import (
    ANSWER_TIMEOUT_SECONDS,
    GROUP_TIMEOUT_SECONDS,
    RESULT_TIMEOUT_SECONDS,
    UNREACHABLE_TIMEOUT_SECONDS,
    FinalCheck,
    Outcome,
)
from mtcd.federation.node.passing import from_sums, to_sums
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


class Store:
    """The run folder."""

    def __init__(self) -> None:
        self.kept: tuple[bool, set[str]] | None = None

    def final_check(self) -> tuple[bool, set[str]] | None:
        return self.kept

    def keep_final_check(self, diverged: bool, confirmed: set[str]) -> None:
        self.kept = diverged, set(confirmed)


class Checking:
    """The evaluation at one party of a path of a, b and c; b holds the labels."""

    def __init__(self, name: str, *, term: int | None = 0, part: float = 1.0) -> None:
        self.asked: list[tuple[str, dict[str, bytes]]] = []
        self.then: list[Any] = []
        self.each: list[Any] = []
        self.timers: list[tuple[float, Any]] = []
        self.outcomes: list[Outcome] = []
        self.begun: list[Any] = []
        self.refused: list[str] = []
        check: Any = object.__new__(FinalCheck)
        check.name, check.holder = name, "b"
        check.parties, check.clients = ["a", "c"], 3
        check.run = b"run"
        check.config = SimpleNamespace(
            name="b",
            parties=["a", "b", "c"],
            peers={"a": 1, "c": 1},
            links=[("a", "b"), ("b", "c")],
        )
        check.known = check._missing = False
        check._confirmed, check._part, check._then = set(), None, None
        check._store = self.store = Store()
        check.loop = SimpleNamespace(later=lambda seconds, act: self.timers.append((seconds, act)))
        self.link = SimpleNamespace(peers={"a", "c"}, up={"a", "c"})
        check.rpc = SimpleNamespace(
            link=self.link,
            note_refused=lambda name, what, error: self.refused.append(name),
            seal=SimpleNamespace(certificate=b"mine", key_of=self.key_of),
        )
        check.rpc_client = SimpleNamespace(ask=self.ask, waits_for=set())
        check.own = SimpleNamespace(
            complete=True,
            evidence=lambda: np.array([part]),
            has_diverged=lambda total: bool(total[0] > 10),
            term=term,
        )
        check._receiver = SimpleNamespace(begin=lambda *given: self.begun.append(given))
        self.check: FinalCheck = check

    def key_of(self, name: str, certificate: bytes) -> None:
        if certificate == b"forged":
            raise WireError("certificate", "is not its own")

    def ask(self, kind: str, bodies: Any, then: Any = None, each: Any = None) -> None:
        self.asked.append((kind, dict(bodies)))
        self.then.append(then)
        self.each.append(each)

    def begin(self) -> None:
        self.check.begin(self.outcomes.append)

    def gets(self, kind: str, body: bytes, sender: str = "b") -> list[bytes]:
        """How it answers; nothing if it drops the request."""
        answers: list[bytes] = []
        request: Any = SimpleNamespace(
            answer=lambda content=b"": answers.append(content),
            body=body,
            drop=lambda: None,
            sender=sender,
        )
        {"evaluate": self.check._send_certificate, "result": self.check._receive_result}[kind](
            request
        )
        return answers


def test_the_holder_asks_adds_up_and_tells_the_farthest_first() -> None:
    holder = Checking("b")
    holder.begin()
    assert holder.asked == [("evaluate", {"a": b"run", "c": b"run"})]
    holder.then[0]({"a": b"of a", "c": b"of c"})
    ((shape, certificates, done),) = holder.begun
    assert shape == (1,)
    assert {name: b64decode(one) for name, one in certificates.items()} == {
        "a": b"of a",
        "b": b"mine",
        "c": b"of c",
    }
    done(to_sums(np.array([2.5])))
    assert holder.outcomes == [Outcome()]
    assert holder.store.kept == (False, set())
    assert holder.asked[1:] == [("result", {"a": b"run fine", "c": b"run fine"})]
    holder.each[1]("a")
    assert holder.store.kept == (False, {"a"})
    done(to_sums(np.array([100.0])))
    assert holder.outcomes == [Outcome()], "the first result counts"


@pytest.mark.parametrize("sum_of_others", [9.0, 9.5])
def test_a_sum_that_shows_divergence_is_one(sum_of_others: float) -> None:
    holder = Checking("b")
    holder.begin()
    holder.then[0]({"a": b"of a", "c": b"of c"})
    holder.begun[0][2](to_sums(np.array([sum_of_others])))
    assert holder.outcomes == [Outcome(sum_of_others + 1 > 10)]


def test_who_says_that_it_has_diverged_or_has_numbers_too_large_is_believed() -> None:
    for holder, answers in (
        (Checking("b"), {"a": b"of a", "c": b"diverged"}),
        (Checking("b", part=math.inf), {"a": b"of a", "c": b"of c"}),
    ):
        holder.begin()
        holder.then[0](answers)
        assert holder.outcomes == [Outcome(diverged=True)]
        assert holder.begun == []


def test_who_shows_the_certificate_of_another_counts_as_away() -> None:
    holder = Checking("b")
    holder.begin()
    holder.then[0]({"a": b"forged", "c": b"of c"})
    assert holder.refused == ["a"]
    assert holder.outcomes == [Outcome(away=("a",))]
    assert holder.store.kept is None, "a result may still come"


def test_the_holder_gives_up_soon_on_those_without_a_link_and_later_on_all() -> None:
    holder = Checking("b")
    holder.check.rpc_client.waits_for = {"c"}  # type: ignore[misc]
    holder.begin()
    (soon, unreachable), (later, silent) = holder.timers
    assert (soon, later) == (UNREACHABLE_TIMEOUT_SECONDS, ANSWER_TIMEOUT_SECONDS)
    unreachable()
    assert holder.outcomes == [], "its link is up"
    holder.link.up = {"a"}
    unreachable()
    assert holder.outcomes == [Outcome(away=("c",))]
    silent()
    assert len(holder.outcomes) == 1
    assert holder.check._is_new(Outcome()), "a result after a missing one counts"


def test_the_others_give_up_on_the_holder() -> None:
    other = Checking("a")
    other.begin()
    (soon, unreachable), (later, silent) = other.timers
    assert (soon, later) == (UNREACHABLE_TIMEOUT_SECONDS, RESULT_TIMEOUT_SECONDS)
    assert other.asked == []
    other.check.rpc.link.peers, other.link.up = {"b"}, {"b"}  # type: ignore[misc]
    unreachable()
    assert other.outcomes == []
    silent()
    assert other.outcomes == [Outcome(away=("b",))]
    assert other.gets("result", b"run diverged") == [b""]
    assert other.outcomes[1:] == [Outcome(diverged=True)]
    assert other.store.kept == (True, set())
    assert other.gets("result", b"run fine") == [b""]
    assert len(other.outcomes) == 2
    assert other.asked == [], "the holder alone announces"


def test_a_result_from_before_a_restart_stands_and_goes_to_those_that_lack_it() -> None:
    holder = Checking("b")
    holder.store.kept = True, {"a"}
    holder.begin()
    assert holder.outcomes == [Outcome(diverged=True)]
    assert holder.asked == [("result", {"c": b"run diverged"})]
    assert holder.timers[-1][0] == GROUP_TIMEOUT_SECONDS


def test_one_group_is_told_after_the_other_and_each_once() -> None:
    holder = Checking("b")
    holder.check._announce_to(Outcome(away=("x",)), [["c"], ["a"]])
    assert holder.asked == [("result", {"c": b"run missing x"})]
    holder.each[0]("c")
    assert holder.store.kept is None, "what is missing is not confirmed"
    holder.timers[0][1]()
    holder.then[0]({"c": b""})
    assert holder.asked[1:] == [("result", {"a": b"run missing x"})]
    holder.then[1]({"a": b""})
    assert len(holder.asked) == 2


def test_without_others_the_holder_evaluates_alone() -> None:
    holder = Checking("b", part=11.0)
    holder.check.parties = []
    holder.begin()
    holder.then[0]({})
    assert holder.outcomes == [Outcome(diverged=True)]


def test_a_holder_that_lacks_the_last_module_waits_for_it() -> None:
    holder = Checking("b")
    holder.check.own.complete = False  # type: ignore[misc]
    holder.begin()
    assert holder.asked == []
    holder.check.own.complete = True  # type: ignore[misc]
    holder.check.proceed()
    assert [kind for kind, _ in holder.asked] == ["evaluate"]


@pytest.mark.parametrize(
    ("term", "asked", "answers"),
    [
        (0, b"run", [b"mine"]),
        (4, b"run 4", [b"mine"]),
        (4, b"run", []),  # of the token before it was regenerated
        (0, b"run 4", []),
        (None, b"run", []),  # the end was undone
    ],
)
def test_a_party_takes_part_once_it_has_ended_with_the_same_token(
    term: int | None, asked: bytes, answers: list[bytes]
) -> None:
    party = Checking("a", term=term)
    assert party.gets("evaluate", asked) == [], "not ended yet"
    party.begin()
    assert party.gets("evaluate", asked) == answers


def test_a_party_with_numbers_that_are_too_large_says_that_it_has_diverged() -> None:
    party = Checking("a", part=math.nan)
    party.begin()
    assert party.gets("evaluate", b"run") == [b"diverged"]


def test_the_evaluation_is_the_business_of_the_holder_and_of_this_run() -> None:
    party = Checking("a")
    assert party.gets("result", b"run fine") == [], "not ended yet: the holder sends it again"
    with pytest.raises(WireError, match="pass comes before the end"):
        party.check._sums()
    party.begin()
    assert from_sums(party.check._sums()).tolist() == [1.0]
    for body, sender in ((b"run", "c"), (b"run2", "b")):
        with pytest.raises(WireError, match="sender is not the label holder of this run"):
            party.gets("evaluate", body, sender)
    for body, sender in ((b"run fine", "c"), (b"run2 fine", "b"), (b"run \xff", "b")):
        with pytest.raises(WireError, match="result is not valid, or not from the label holder"):
            party.gets("result", body, sender)
    with pytest.raises(WireError, match="result is not valid"):
        party.gets("result", b"run missing z")
    assert party.gets("result", b"run missing a b c server") == [b""]
    assert party.outcomes == [Outcome(away=("a", "b", "c", "server"))]


def test_of_an_end_that_was_undone_nothing_counts() -> None:
    party = Checking("a", term=None)
    party.begin()
    party.gets("result", b"run fine")
    assert party.outcomes == []
