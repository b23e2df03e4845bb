"""Parties that answer nonsense before training: the holder of the labels says who did, and nothing
has begun."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hubs import Hub, linear
from mtcd.core.errors import DataError, WireError
from mtcd.federation.alignment import HashedAsker
from mtcd.federation.node.aligning import AlignmentFollower, AlignmentLeader
from mtcd.federation.node.chunks import wrap
from mtcd.federation.node.opening import (
    LATEST_SECONDS,
    LONGEST_BYTES,
    MOST_PACKAGES,
    MOST_SECONDS_APART,
    NOTED_SECONDS_APART,
    OpeningCheck,
    _duration,
)
from mtcd.federation.node.refusal import UnableError
from mtcd.federation.node.rpc import RpcClient
from mtcd.federation.psi_process import AlignmentProgress
from own_parts import model_section
from problems import MODELS, make_data

RIDGE = MODELS[0]
HUGE = json.dumps({"block": 1e308, "longest": 1e308}).encode()
WRONG = [
    b"",
    b"\0" * 40,
    b"x",
    b"[]",
    b"11",
    b"-1",
    b"NaN",
    b"9" * 5000,
    b"[" * 5000,
    b"\xff" * 64,
    HUGE,
]


@pytest.mark.parametrize("alignment", ["given order", "hashed", "psi"])
@pytest.mark.parametrize("kind", ["check", "align", "prepare"])
def test_who_answers_nonsense_is_named(
    kind: str, alignment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = make_data(RIDGE, 10, [2, 1, 2], seed=3)
    method = {"kind": "mtcd", "tokens": 1, "hops": 3, "stepsize": "auto"}
    changes = {
        "model": model_section(RIDGE),
        "method": method,
        "stop": {"iterations": 9},
        "alignment": alignment,
    }
    lies, honestly = 0, RpcClient.ask

    def ask(
        self: RpcClient, asked: str, bodies: Any, then: Any = lambda answers: None, *more: Any
    ) -> None:
        def answered(answers: dict[str, bytes]) -> None:
            nonlocal lies
            for wrong in WRONG if asked == kind else ():
                # who shares no sample, says so in this way
                if (kind, alignment, wrong) != ("align", "hashed", b""):
                    with pytest.raises(DataError, match="c1"):
                        then({**answers, "c1": wrong})
                    assert not (tmp_path / "runs" / "c0" / "agreed.bin").exists()
                    lies += 1
            then(answers)

        honestly(self, asked, bodies, answered, *more)

    monkeypatch.setattr(RpcClient, "ask", ask)
    with Hub(tmp_path, data.clients, linear(data), **changes) as hub:
        hub.train()
    assert lies >= len(WRONG) - 1


FACTS: dict[str, Any] = {"time": 0.0, "mtcd": "1.0", "packages": {"msgpack": "1.1"}}


@pytest.mark.parametrize(
    "changes",
    [
        {"mtcd": 1.0},
        {"mtcd": None},
        {"packages": ["msgpack"]},
        {"packages": {f"p{k}": "1" for k in range(MOST_PACKAGES + 1)}},
        {"time": "now"},
        {"time": True},
        {"time": float("nan")},
        {"time": float("inf")},
        {"time": 10**400},
    ],
    ids=lambda one: str(one)[:40],
)
def test_facts_of_other_kinds_are_not_compared(changes: dict[str, Any]) -> None:
    """A clock that is no number would be neither ahead nor behind."""
    log = SimpleNamespace(say=lambda *said: None)
    check = OpeningCheck(None, SimpleNamespace(model=None, privacy=None), log)  # type: ignore[arg-type]
    check._compare_versions = lambda *theirs: None  # type: ignore[method-assign]
    check._compare("c1", json.dumps(FACTS).encode(), 0.0)
    with pytest.raises(DataError, match="c1 did not answer the check"):
        check._compare("c1", json.dumps(FACTS | changes).encode(), 0.0)


class Comparing:
    """The check of the opening at one party, without a node."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.check: Any = object.__new__(OpeningCheck)
        self.check.config = SimpleNamespace(name="a")
        self.check.log = SimpleNamespace(say=lambda event, sentence: self.notes.append(sentence))
        self.check._compare_versions = lambda *versions: None

    def hears(self, when: Any, arrived: float = 1e9) -> None:
        facts = {"time": when, "mtcd": "1", "packages": {}}
        self.check._compare("b", json.dumps(facts).encode(), arrived)


@pytest.mark.parametrize("side", [1, -1])
def test_clocks_may_be_apart_up_to_a_limit_and_are_noted_before(side: int) -> None:
    party = Comparing()
    party.hears(1e9 + side * NOTED_SECONDS_APART)
    assert party.notes == []
    party.hears(1e9 + side * (NOTED_SECONDS_APART + 1))
    assert party.notes == ["The clock of b is 31 s off that of a."]
    party.hears(1e9 + side * MOST_SECONDS_APART)
    words = {1: "5 min ahead of that of a", -1: "5 min behind that of a"}
    with pytest.raises(UnableError, match=words[side]):
        party.hears(1e9 + side * (MOST_SECONDS_APART + 1))


@pytest.mark.parametrize("when", [-1e-9, LATEST_SECONDS, True, "0", None])
def test_a_moment_that_no_clock_shows_is_refused(when: Any) -> None:
    party = Comparing()
    party.hears(0, arrived=0.0)
    with pytest.raises(DataError, match="b did not answer the check"):
        party.hears(when, arrived=0.0)


def test_an_answer_may_be_so_long_and_name_so_many_packages() -> None:
    party = Comparing()
    facts = {"time": 1e9, "mtcd": "1", "packages": dict.fromkeys(map(str, range(MOST_PACKAGES)))}
    shortest = len(json.dumps(facts))
    party.check._compare("b", json.dumps(facts).encode() + b" " * (LONGEST_BYTES - shortest), 1e9)
    with pytest.raises(DataError, match="b did not answer the check"):
        party.check._compare(
            "b", json.dumps(facts).encode() + b" " * (LONGEST_BYTES - shortest + 1), 1e9
        )
    facts["packages"] = dict.fromkeys(map(str, range(MOST_PACKAGES + 1)))
    with pytest.raises(DataError, match="b did not answer the check"):
        party.check._compare("b", json.dumps(facts).encode(), 1e9)


def test_times_are_told_in_words() -> None:
    told = {119: "119 s", 120: "2 min", 7199: "120 min", 7200: "2.0 h"}
    assert {seconds: _duration(seconds) for seconds in told} == told


class Told:
    """A request of a leader."""

    def __init__(self, sender: str, body: bytes) -> None:
        self.sender, self.body, self.direct = sender, body, True
        self.happened: list[Any] = []

    def answer(self, body: bytes = b"") -> None:
        self.happened.append(body)

    def drop(self) -> None:
        self.happened.append("dropped")


def follower(alignment: str, *, samples: int = 3) -> tuple[Any, list[Any]]:
    """Who follows a in the alignment, and what its loop is given to compute."""
    made: Any = object.__new__(AlignmentFollower)
    work: list[Any] = []
    made.rpc = SimpleNamespace(
        loop=SimpleNamespace(work=lambda *job: work.append(job)),
        refuse=lambda request, kind, error: request.happened.append((kind, str(error))),
    )
    config = SimpleNamespace(alignment=alignment)
    made.bundle = SimpleNamespace(alignment_secret=lambda: bytes(32), config=config)
    made.leader, made.agreement, made._answering = "a", "digest", False
    made.part = SimpleNamespace(ids=["x", "y", "z"][:samples], samples=samples)
    made.log = SimpleNamespace(say=lambda *said: None)
    made.progress = AlignmentProgress()
    return made, work


def leads(*parts: bytes, sender: str = "a", agreement: str = "digest") -> Told:
    return Told(sender, wrap({"agreement": agreement}, *parts))


def test_a_follower_answers_its_leader_about_the_agreed_settings_alone() -> None:
    made, _ = follower("given order")
    for request, why in (
        (leads(b"", sender="b"), "sender is not the leader"),
        (leads(b"", agreement="other"), "agreement is another one"),
        (leads(), "sizes are not those of its parts"),
    ):
        with pytest.raises(WireError, match=why):
            made._align(request)
        assert request.happened == []
    request = leads(b"")
    made._align(request)
    assert request.happened == [b"3"]


@pytest.mark.parametrize(
    ("alignment", "announcement", "rows"),
    [
        ("given order", b"", [0, 1, 2]),
        ("hashed", b'["x", "z"]', [0, 2]),
        ("given order", b'["x"]', None),
        ("hashed", b"", None),
    ],
)
def test_rows_are_announced_by_ids_unless_the_order_is_given(
    alignment: str, announcement: bytes, rows: list[int] | None
) -> None:
    made, _ = follower(alignment)
    if rows is not None:
        assert list(made.rows(announcement)) == rows
        return
    with pytest.raises(WireError, match="does not fit the alignment of this federation"):
        made.rows(announcement)


def test_a_follower_computes_one_answer_at_a_time() -> None:
    made, work = follower("hashed")
    asking = HashedAsker(["x", "q"], bytes(32))
    first, second = leads(asking.request()), leads(asking.request())
    made._align(first)
    made._align(second)
    assert second.happened == ["dropped"]
    ((respond, answered, _),) = work
    answered(respond())
    assert asking.shared(first.happened[0]) == {"x"}
    made._align(leads(asking.request()))
    assert len(work) == 2
    work[1][2](DataError("is not sorted"))
    made._align(leads(asking.request()))
    assert len(work) == 3, "after an error, too"


def test_a_request_that_cannot_be_computed_is_refused() -> None:
    made, work = follower("hashed")
    request = leads(b"")
    made._align(request)
    work[0][2](DataError("is not sorted"))
    assert request.happened == [("align", "is not sorted")]


def test_in_the_given_order_all_must_have_as_many_samples() -> None:
    leader: Any = object.__new__(AlignmentLeader)
    leader.part, leader.me, told = SimpleNamespace(samples=3), "a", []
    leader._same_number({"b": b"3", "c": b"3"}, told.append)
    assert told == [b""]
    for answer in (b"4", b"3.0", b" 3", b"x" * 100):
        with pytest.raises(DataError, match="c has .* samples, but a has 3") as error:
            leader._same_number({"b": b"3", "c": answer}, told.append)
        assert len(str(error.value)) < 200
    assert told == [b""]
