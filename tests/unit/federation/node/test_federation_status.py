"""What the operator is told, also of parties that are busy, that have ended, or that lie."""

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mtcd.config.schema import CostsSection
from mtcd.core.errors import DataError
from mtcd.federation.commands.operator import log_lines, stop_all
from mtcd.federation.node.aligning import AlignmentFollower
from mtcd.federation.node.ending import Watched
from mtcd.federation.node.log import Log
from mtcd.federation.node.loop import Loop
from mtcd.federation.node.operator import _Asking
from mtcd.federation.node.overview import _gap, _seen_by_others, in_words, is_dead, summarise
from mtcd.federation.psi_process import AlignmentProgress
from mtcd.protocol.ledger.ledger import Ledger
from waiting import PATIENCE

CONFIG = SimpleNamespace(
    federation="clinics",
    peers={"a": 1, "b": 2},
    parties=["a", "b"],
    costs=CostsSection(),
    links=[("a", "b")],
)
TRAINED = {
    "name": "a",
    "phase": "ended",
    "connected": [],
    "waiting_for": [],
    "run": "abc",
    "gone": [],
    "tokens": [{"token": 0, "sync": 0, "hop": 7, "seconds_ago": 0.1}],
    "ended": "iterations",
    "heard_end": ["b"],
    "ledger": Ledger().to_dict(),
    "iteration": 7,
    "syncs": 0,
    "objective": 1.0,
    "gap_part": None,
}


def test_a_party_answers_others_while_it_computes_for_long() -> None:
    loop, go, order = Loop(), threading.Event(), []

    def long() -> str:
        assert go.wait(PATIENCE)
        return "done"

    def then(found: str) -> None:
        order.append(found)
        loop.stop()

    loop.work(long, then)
    loop.call(lambda: order.append("answered"))
    loop.call(go.set)
    loop.run()
    assert order == ["answered", "done"]


def test_an_error_of_a_long_computation_is_told_or_ends_the_loop() -> None:
    def fails() -> None:
        raise DataError("wrong")

    loop, told = Loop(), []

    def failed(error: Any) -> None:
        told.append(str(error))
        loop.stop()

    loop.work(fails, told.append, failed)
    loop.run()
    assert told == ["wrong"]
    loop = Loop()
    loop.work(fails, told.append)
    with pytest.raises(DataError, match="wrong"):
        loop.run()


def test_alignment_leaves_the_loop_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """The long part, encrypting ids, is outside: status is answered meanwhile."""
    loop, go, log = Loop(), threading.Event(), []

    class Slow:
        def respond(self, request: bytes) -> bytes:
            assert go.wait(PATIENCE)
            return b"response"

    monkeypatch.setattr("mtcd.federation.node.aligning.answerer_apart", lambda *given: Slow())
    config = SimpleNamespace(alignment="psi")
    led = AlignmentFollower.__new__(AlignmentFollower)
    led.rpc = SimpleNamespace(loop=loop)  # type: ignore[assignment]
    led.bundle, led.part, led.log = (
        SimpleNamespace(config=config),
        SimpleNamespace(ids=["x"]),
        Log("b", None),
    )  # type: ignore
    led._answering, led.progress = False, AlignmentProgress()
    monkeypatch.setattr(led, "read", lambda asked, parts: ({}, [b"request"]), raising=False)

    def answer(body: bytes) -> None:
        log.append(body)
        loop.stop()

    first = SimpleNamespace(sender="a", answer=answer)
    again = SimpleNamespace(sender="a", drop=lambda: log.append(b"let go"))
    loop.call(lambda: led._align(first))  # type: ignore[arg-type]
    loop.call(lambda: led._align(again))  # type: ignore[arg-type]
    loop.call(lambda: log.append(b"status"))
    loop.call(go.set)
    loop.run()
    assert log == [b"let go", b"status", b"response"]


def test_what_is_refused_again_and_again_is_said_in_words_and_seldom() -> None:
    said: list[str] = []
    log = Log("b", None, said.append)
    for _ in range(100):  # five minutes
        log.refused("a", "align", "agreement: is another one")
    assert "Refused a request to align samples from a: agreement: is another one" in said[0]
    assert len(said) == 7


def test_events_of_a_kind_are_told_ten_times_and_then_at_powers_of_two() -> None:
    told: list[str] = []
    log = Log("b", None, told.append)
    written = []
    for number in range(1, 70):
        log.throttled(("event", "a"), f"{number}")
        if told and told[-1].endswith(f": {number}"):
            written.append(number)
    assert written == [*range(1, 11), 16, 32, 64]
    log.throttled(("event", "b"), "another kind")
    assert told[-1].endswith(": another kind")


def test_kinds_that_others_invent_are_counted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mtcd.federation.node.log.KINDS", 2)
    told: list[str] = []
    log = Log("b", None, told.append)
    for number in range(1, 9):
        log.throttled(("refused", "a", f"text {number}"), f"{number}", often=1)
    counted = [line.rpartition(": ")[2] for line in told]
    assert counted == ["1", "2", "3", "4", "6"], "from the third on, the 1st, 2nd and 4th of them"


def test_who_has_left_after_the_end_has_ended() -> None:
    told = summarise(CONFIG, {"a": TRAINED})
    assert told["parties"]["b"] == {"phase": "ended"}
    assert told["status"] == "iterations"
    silent = summarise(CONFIG, {"a": TRAINED | {"heard_end": []}})
    assert silent["parties"]["b"] == {"phase": "not reached"}


def test_what_was_ended_before_is_not_forgotten() -> None:
    before = summarise(CONFIG, {"a": TRAINED, "b": TRAINED | {"name": "b", "heard_end": ["a"]}})
    told = summarise(CONFIG, {}, before["parties"])
    assert {one["phase"] for one in told["parties"].values()} == {"ended"}
    assert told["parties"]["a"]["ended"] == "iterations"


BAD: list[Any] = [None, -1, "x", [], {}, [[]], float("nan"), "\x1b[2J"]


@pytest.mark.parametrize("key", [key for key in TRAINED if key not in ("name", "run")])
def test_answers_of_liars_are_told_apart(key: str) -> None:
    for bad in BAD:
        lie = {**TRAINED, key: bad}
        told = summarise(CONFIG, {"a": lie, "b": TRAINED | {"name": "b"}})
        assert told["parties"]["b"]["phase"] == "ended"
        assert "\x1b" not in str(told)
    for spoilt in (
        {"hops": [1]},
        {"message_counts": 3},
        {"message_counts": [1]},
        {"hops": -1},
        {"more": 1},
    ):
        lie = {**TRAINED, "ledger": {**Ledger().to_dict(), **spoilt}}
        assert summarise(CONFIG, {"a": lie})["parties"]["a"] == {"phase": "not readable"}, spoilt
    for answer in ([], 3, "x", {}, {key: TRAINED[key]}):
        assert summarise(CONFIG, {"a": answer})["parties"]["a"] == {"phase": "not readable"}


def test_logs_of_liars_cannot_steer_the_terminal() -> None:
    good = {"time": "2026-01-01T10:00:00.000+00:00", "party": "a", "event": "up", "text": "Up."}
    bad = [
        {**good, "text": "\x1b[2J\u202egone"},
        {**good, "party": 3},
        {"text": "x"},
        7,
        None,
        {**good, "time": None},
    ]
    lines = log_lines({"a": [good, *bad], "b": "nonsense"})
    assert lines[0] == "10:00:00.000 a: Up."
    assert len(lines) == 2
    assert "\x1b" not in "".join(lines)
    assert "\u202e" not in "".join(lines)


OPENING = {"name": "a", "phase": "opening", "connected": [], "waiting_for": ["b"]}


def test_since_when_a_party_is_not_reached_is_known_from_the_others_and_from_its_last_answer() -> (
    None
):
    told = summarise(CONFIG, {"a": OPENING | {"lost": {"b": 1_700_000_000}}})["parties"]["b"]
    assert told == {"phase": "not reached", "since": "2023-11-14T22:13:20+00:00"}
    assert in_words(told) == "not reached since 2023-11-14 22:13:20 UTC"
    assert is_dead(told)

    answered = {"b": {"phase": "training", "answered": "2023-11-14T23:00:00+00:00"}}
    later = summarise(CONFIG, {}, answered)["parties"]["b"]
    assert later["since"] == "2023-11-14T23:00:00+00:00"
    assert summarise(CONFIG, {}, {"b": later})["parties"]["b"] == later  # it stays


def test_a_party_to_which_others_are_connected_is_said_to_be_so() -> None:
    peers = {"a": SimpleNamespace(address="h:1"), "b": SimpleNamespace(address=None)}
    config: Any = SimpleNamespace(**{**vars(CONFIG), "peers": peers})
    told = summarise(config, {"a": OPENING | {"connected": ["b"]}})["parties"]["b"]
    assert in_words(told) == "not reached from here, but connected to a"
    assert not is_dead(told)  # it dials out only, so nobody can reach it from here
    peers["b"].address = "h:2"
    assert is_dead(summarise(config, {"a": OPENING | {"connected": ["b"]}})["parties"]["b"])


@pytest.mark.parametrize("bad", [{"b": -1}, {"b": 10**30}, {"b": "x"}, [], 3])
def test_a_moment_that_is_none_makes_an_answer_unreadable(bad: Any) -> None:
    assert summarise(CONFIG, {"a": OPENING | {"lost": bad}})["parties"]["a"] == {
        "phase": "not readable"
    }


def test_an_operator_that_watches_is_waited_for_and_one_that_asked_once_is_not() -> None:
    now = [0.0]
    loop = Loop(lambda: now[0])
    left: list[str] = []
    once = Watched(loop)
    once.asked()
    once.leave(lambda: left.append("once"))
    assert left == ["once"]

    watched = Watched(loop)
    for moment in (0.0, 1.0, 2.0):
        now[0] = moment
        watched.asked()
    now[0] = 2.5
    watched.leave(lambda: left.append("watched"))
    assert left == ["once"]
    assert 0 < watched.silence_seconds < 10

    watched.asked()  # it learns of the end
    now[0] = 3.5
    loop.call(loop.stop)
    loop.run()
    loop._stopped = False
    loop.later(0.0, loop.stop)
    loop.run()
    assert left == ["once", "watched"]


class Answering:
    """An operator to whom some parties answer."""

    def __init__(self, answers: dict[str, dict[str, Any]]) -> None:
        self.answers = answers

    def __enter__(self) -> "Answering":
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def ask(self, kind: str, timeouts: object) -> dict[str, Any]:
        return self.answers.get(kind, {})


def test_stop_says_whom_it_reached_and_what_then_happens(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    peers = dict.fromkeys("abcde")
    bundle = SimpleNamespace(config=SimpleNamespace(peers=peers))
    here = dict.fromkeys("abd", OPENING)
    monkeypatch.setattr(
        "mtcd.federation.node.operator.operator_bundle", lambda folder, read: bundle
    )
    monkeypatch.setattr(
        "mtcd.federation.node.operator.Operator",
        lambda bundle: Answering({"status": here, "stop": {name: {} for name in "abd"}}),
    )
    monkeypatch.setattr(
        "mtcd.federation.commands.operator.known_statuses", lambda bundle, answers: {}
    )
    assert stop_all(Path("bundles"), 7.0) == 3
    told = capsys.readouterr().out
    assert "Reached 3 of 5: a, b, d. Not stopped, after 7 s: c, e." in told
    assert "learns of the end from the others" in told
    assert "--timeout" in told


def test_the_gap_is_the_sum_of_the_parts_over_the_smallest_objective() -> None:
    parts: list[dict[str, Any]] = [
        {"gap_part": 0.25, "objective": -2.0},
        {"gap_part": 0.5, "objective": 4.0},
        {"gap_part": 0.0},
    ]
    assert _gap(parts, 3) == 0.375
    assert _gap(parts, 4) is None, "one has not told its part"
    assert _gap([{"gap_part": 0.25}], 1) is None, "nobody knows f"
    assert _gap([{"gap_part": -0.25, "objective": 2.0}], 1) == 0.0


@pytest.mark.parametrize(("reached", "until"), [(True, 103.0), (False, 100.0), (None, 101.0)])
def test_the_operator_waits_for_those_who_accept_a_connection(
    reached: bool | None, until: float
) -> None:
    asking: Any = object.__new__(_Asking)
    asking.began, asking.until = 100.0, {"a": 101.0}
    asking.timeouts = SimpleNamespace(connection=1.0, answer=3.0)
    asking.link = SimpleNamespace(reached={} if reached is None else {"a": reached})
    asking._judge("a")
    assert asking.until == {"a": until}


def test_those_who_are_connected_are_named_in_order() -> None:
    answers = {name: {"connected": ["z"]} for name in ("c", "a", "d", "b")}
    answers["d"] = {"connected": []}
    assert _seen_by_others("z", {**answers, "e": None}, {}) == {"linked": ["a", "b", "c"]}
