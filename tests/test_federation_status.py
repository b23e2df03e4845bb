"""What the operator is told, also of parties that are busy, that have ended, or that lie."""

import threading
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("zenoh")
pytest.importorskip("cryptography")

from mtcd.cli.federation_watch import log_lines
from mtcd.config.schema import CostsSection
from mtcd.errors import DataError
from mtcd.federation.node.aligning import AlignmentFollower
from mtcd.federation.node.log import Log
from mtcd.federation.node.loop import Loop
from mtcd.federation.node.overview import summarise
from mtcd.federation.psi_process import Progress
from mtcd.ledger.ledger import Ledger
from waiting import PATIENCE

CONFIG = SimpleNamespace(
    federation="clinics", peers={"a": 1, "b": 2}, parties=["a", "b"], costs=CostsSection(), links=[("a", "b")]
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
    led.mail = SimpleNamespace(loop=loop)  # type: ignore[assignment]
    led.kit, led.part, led.log = SimpleNamespace(config=config), SimpleNamespace(ids=["x"]), Log("b", None)  # type: ignore
    led._answering, led.progress = False, Progress()
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
    for spoilt in ({"hops": [1]}, {"message_counts": 3}, {"message_counts": [1]}, {"hops": -1}, {"more": 1}):
        lie = {**TRAINED, "ledger": {**Ledger().to_dict(), **spoilt}}
        assert summarise(CONFIG, {"a": lie})["parties"]["a"] == {"phase": "not readable"}, spoilt
    for answer in ([], 3, "x", {}, {key: TRAINED[key]}):
        assert summarise(CONFIG, {"a": answer})["parties"]["a"] == {"phase": "not readable"}


def test_logs_of_liars_cannot_steer_the_terminal() -> None:
    good = {"time": "2026-01-01T10:00:00.000+00:00", "party": "a", "event": "up", "text": "Up."}
    bad = [{**good, "text": "\x1b[2J\u202egone"}, {**good, "party": 3}, {"text": "x"}, 7, None, {**good, "time": None}]
    lines = log_lines({"a": [good, *bad], "b": "nonsense"})
    assert lines[0] == "10:00:00.000 a: Up."
    assert len(lines) == 2
    assert "\x1b" not in "".join(lines)
    assert "\u202e" not in "".join(lines)
