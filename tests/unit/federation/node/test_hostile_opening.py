"""Parties that answer nonsense before training: the holder of the labels says who did, and nothing
has begun."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hubs import Hub, linear
from mtcd.core.errors import DataError
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
