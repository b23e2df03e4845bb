"""One overview of the federation, from what its members answer and from their exit statuses."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("cryptography")

from mtcd.config.schema import CostsSection
from mtcd.federation.node.exit_status import ExitStatus
from mtcd.federation.node.overview import (
    MOST_STATUSES,
    in_words,
    is_dead,
    read_event,
    read_status,
    read_statuses,
    summarise,
)
from mtcd.protocol.ledger.ledger import Ledger

NOW = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)
LONG_AGO = NOW - timedelta(days=3)


class Fixed(datetime):
    """A clock that stands still, so that no test runs over midnight."""

    @classmethod
    def now(cls, tz: Any = None) -> datetime:  # type: ignore[override]
        return NOW


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mtcd.federation.node.overview.datetime", Fixed)


PEERS = {
    "a": SimpleNamespace(address="a:1"),
    "b": SimpleNamespace(address="b:1"),
    "c": SimpleNamespace(address=None),
}
CONFIG: Any = SimpleNamespace(
    costs=CostsSection(), federation="clinics", parties=["a", "b", "c"], peers=PEERS
)


def answer(name: str, **changes: Any) -> dict[str, Any]:
    """Of a party in training."""
    told = {
        "name": name,
        "phase": "training",
        "connected": [],
        "waiting_for": [],
        "lost": {},
        "run": "r1",
        "gone": [],
        "tokens": [],
        "ended": None,
        "heard_end": [],
        "ledger": Ledger().to_dict(),
        "iteration": 4,
        "syncs": 1,
        "objective": None,
        "gap_part": None,
    }
    return told | changes


def status(party: str, outcome: str = "finished", **changes: Any) -> ExitStatus:
    facts = {"run": "r1", "time": 1000, "status": "iterations", "iteration": 9, "objective": 0.5}
    return ExitStatus.model_validate({"party": party, "outcome": outcome, **facts, **changes})


def shown(when: datetime, phase: str, ended: str) -> str:
    return in_words({"ended": ended, "phase": phase, "time": when.isoformat()})


def test_how_a_party_ended_is_told_with_its_day_unless_that_is_today() -> None:
    assert shown(NOW, "finished", "iterations") == f"finished {NOW:%H:%M} UTC (iterations)"
    assert shown(NOW, "stopped", "stopped") == f"stopped {NOW:%H:%M} UTC"
    assert shown(LONG_AGO, "interrupted", "") == f"interrupted {LONG_AGO:%Y-%m-%d %H:%M} UTC"


@pytest.mark.parametrize(
    ("one", "words"),
    [
        ({"phase": "not reached"}, "not reached"),
        (
            {"phase": "not reached", "linked": ["a", "b"]},
            "not reached from here, but connected to a, b",
        ),
        (
            {"phase": "not reached", "since": NOW.isoformat()},
            f"not reached since {NOW:%H:%M:%S} UTC",
        ),
        (
            {"phase": "not reached", "since": LONG_AGO.isoformat()},
            f"not reached since {LONG_AGO:%Y-%m-%d %H:%M:%S} UTC",
        ),
        ({"phase": "ended", "ended": "iterations"}, "ended (iterations)"),
        (
            {"phase": "opening", "aligning": {"step": "blinding", "share": 0.25, "seconds": 3.4}},
            "opening: blinding, 25%, 3 s",
        ),
        ({"phase": "training", "ended": None}, "training"),
    ],
)
def test_a_phase_is_told_in_words(one: dict[str, Any], words: str) -> None:
    assert in_words(one) == words


@pytest.mark.parametrize(
    ("one", "dead"),
    [
        ({"phase": "not reached"}, True),
        ({"phase": "failed"}, True),
        ({"phase": "not reached", "dials_out": True}, False),
        ({"phase": "finished"}, False),
    ],
)
def test_somebody_has_to_look_after_those_that_failed_or_are_not_reached(
    one: dict[str, Any], dead: bool
) -> None:
    assert is_dead(one) == dead


def test_one_that_dials_out_is_not_missing_while_others_are_connected_to_it() -> None:
    for connected, out in ((["c", "b"], True), ([], False)):
        parties = summarise(CONFIG, {"a": answer("a", connected=connected)})["parties"]
        assert parties["c"].get("dials_out", False) == out
        assert "dials_out" not in parties["b"], "it has an address"
        assert "answered" in parties["a"]
        assert "answered" not in parties["b"]


def test_the_latest_that_anybody_knows_counts() -> None:
    ledgers = [Ledger(), Ledger()]
    ledgers[0].record(0, 8)
    answers = {
        "a": answer("a", iteration=7, syncs=2, objective=0.75, ledger=ledgers[0].to_dict()),
        "b": answer("b", iteration=9, syncs=1, ledger=ledgers[1].to_dict()),
    }
    found = summarise(CONFIG, answers)
    assert (found["iteration"], found["syncs"], found["objective"]) == (9, 2, 0.75)
    assert found["status"] is None
    # an exit status of a later iteration has a later objective
    later = summarise(CONFIG, answers, statuses={"c": status("c", iteration=8, objective=0.5)})
    assert (later["objective"], later["status"]) == (0.5, "iterations")
    assert later["parties"]["c"]["phase"] == "finished"
    assert later["parties"]["c"]["time"] == "1970-01-01T00:00:01+00:00"


def test_who_answers_or_runs_again_is_not_told_by_its_exit_status() -> None:
    statuses = {"a": status("a"), "b": status("b", "running"), "c": status("c", "failed")}
    parties = summarise(CONFIG, {"a": answer("a")}, statuses=statuses)["parties"]
    assert {name: one["phase"] for name, one in parties.items()} == {
        "a": "training",
        "b": "not reached",
        "c": "failed",
    }
    found = summarise(CONFIG, {}, statuses={"c": status("c", "failed")})
    assert (found["status"], found["iteration"], found["syncs"]) == (None, None, None)


def test_the_status_of_the_end_is_that_of_a_party_that_has_ended() -> None:
    ended = answer("a", phase="ended", ended="plateau", heard_end=["b"])
    found = summarise(CONFIG, {"a": ended})
    assert found["status"] == "plateau"
    assert found["parties"]["b"]["phase"] == "ended"
    assert summarise(CONFIG, {"a": 3})["parties"]["a"]["phase"] == "not readable"


def test_of_several_visits_of_a_token_the_latest_counts() -> None:
    def visit(sync: int, hop: int) -> list[dict[str, Any]]:
        return [{"token": 0, "sync": sync, "hop": hop, "seconds_ago": 0.0}]

    answers = {
        "a": answer("a", tokens=visit(1, 9)),
        "b": answer("b", tokens=visit(2, 1)),
        "c": answer("c", tokens=visit(2, 0)),
    }
    assert summarise(CONFIG, answers)["tokens"] == {"0": "b"}


@pytest.mark.parametrize(
    "changes",
    [
        {"phase": "asleep"},
        {"iteration": -1},
        {"iteration": 2**53 + 1},
        {"objective": float("nan")},
        {"tokens": [{"token": 0}]},
        {"ledger": {"x": 1}},
        {"lost": {"b": -1}},
        {"lost": {"b": 253_402_300_800}},
    ],
    ids=str,
)
def test_a_status_of_other_values_is_none(changes: dict[str, Any]) -> None:
    assert read_status(answer("a", iteration=2**53, lost={"b": 253_402_300_799})) is not None
    assert read_status(answer("a", **changes)) is None


def test_statuses_come_with_the_run_of_their_bearer_and_not_without_end() -> None:
    assert read_statuses({"run": "r1", "exit_statuses": [1, 2]}) == ("r1", [1, 2])
    assert len(read_statuses({"exit_statuses": [0] * MOST_STATUSES})[1]) == MOST_STATUSES
    for other in ({"exit_statuses": [0] * (MOST_STATUSES + 1)}, {"run": 3}, None):
        assert read_statuses(other) == ("", [])


def test_an_event_has_a_sentence_on_one_line() -> None:
    event = read_event({"time": "now", "party": "a", "text": "one\ntwo"})
    assert event is not None
    assert event.text == "one two"
    assert read_event({"time": "now", "party": "a"}) is None
