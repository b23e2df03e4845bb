"""The log of a party goes through the standard logging: levels, lines of JSON, rotation, and
handlers of a program."""

import io
import json
import logging
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mtcd.core.errors import ConfigError
from mtcd.federation.node import log as party_log
from mtcd.federation.node.log import KEPT_FILES, LEVELS, LOGGER, TAIL, JsonLines, Log, LogFile
from project import ROOT


@pytest.fixture
def programs() -> Iterator[io.StringIO]:
    """What a handler that a program adds has written."""
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setLevel(logging.WARNING)
    handler.setFormatter(JsonLines())
    logging.getLogger(LOGGER).addHandler(handler)
    yield written
    logging.getLogger(LOGGER).removeHandler(handler)


def lines_of(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


def test_every_event_is_a_line_of_json_with_its_level(tmp_path: Path) -> None:
    shown: list[str] = []
    log = Log("a", tmp_path / "log.jsonl", shown.append)
    before = datetime.now(UTC)
    log.say("link", "100% up.", peer="b", up=True)
    log.say("progress", "9 iterations, 50%s done.", iteration=9)
    log.refused("b", "envelope", "hop: is negative")
    log.say("failed", "Failed.", why="DataError")
    log.say("ended")
    log.close()
    events = lines_of((tmp_path / "log.jsonl").read_text())
    assert events == list(log.tail)
    assert [event["level"] for event in events] == ["debug", "info", "warning", "error", "info"]
    assert list(events[1]) == ["time", "level", "party", "event", "text", "iteration"]
    assert (events[0]["peer"], events[0]["up"], "text" in events[4]) == ("b", True, False)
    assert abs((datetime.fromisoformat(str(events[0]["time"])) - before).total_seconds()) < 60
    assert [line[9:] for line in shown] == [
        "a: 9 iterations, 50%s done.",
        "a: Refused an envelope from b: hop: is negative",
        "a: Failed.",
    ]


def test_a_program_adds_a_handler_and_chooses_the_level(programs: io.StringIO) -> None:
    one, other = Log("a", None), Log("b", None)
    one.say("progress", "On the way.")
    one.say("lost", "c is unreachable.", peer="c")
    other.say("failed", "Failed.")
    told = lines_of(programs.getvalue())
    assert [(line["party"], line["event"]) for line in told] == [("a", "lost"), ("b", "failed")]


def test_logs_of_parties_in_one_process_do_not_mix(tmp_path: Path) -> None:
    first, again = Log("a", tmp_path / "1"), Log("a", tmp_path / "2")
    first.say("up", "Up.")
    again.say("ended", "Ended.")
    for log in (first, again):
        log.close()
    assert [lines_of((tmp_path / name).read_text())[0]["event"] for name in "12"] == ["up", "ended"]
    assert (len(first.tail), len(again.tail)) == (1, 1)
    first.say("left", "After the end.")  # a closed log writes nothing
    assert len((tmp_path / "1").read_text().splitlines()) == 1


def test_nothing_is_printed_without_handlers(capfd: pytest.CaptureFixture[str]) -> None:
    Log("a", None).say("failed", "Failed.")
    assert capfd.readouterr() == ("", "")


def test_a_file_that_is_full_is_rotated_and_the_oldest_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(party_log, "FILE_BYTES", 1000)
    log = Log("a", tmp_path / "log.jsonl")
    for i in range(200):
        log.say("progress", "On the way.", iteration=i)
    log.close()
    names = ["log.jsonl", *(f"log.jsonl.{i}" for i in range(1, KEPT_FILES + 1))]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    kept = [
        int(str(line["iteration"]))
        for name in reversed(names)
        for line in lines_of((tmp_path / name).read_text())
    ]
    assert kept == list(range(kept[0], 200))
    for name in names:
        assert (tmp_path / name).stat().st_size <= 1000
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o600
    assert len(log.tail) == 200 < TAIL
    longer = Log("a", tmp_path / "log.jsonl")
    longer.say("resumed")
    longer.close()
    assert lines_of((tmp_path / "log.jsonl").read_text())[-1]["event"] == "resumed"


def test_a_full_disk_is_told_once_and_ends_nothing() -> None:
    shown: list[str] = []
    log = Log("a", Path("/dev/full"), shown.append)
    for _ in range(3):
        log.say("link", peer="b", up=True)
    log.close()
    (told,) = shown
    assert "cannot be written (No space left on device): make room" in told
    assert len(log.tail) == 3


def test_a_log_that_cannot_be_opened_is_told_in_words(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="make it writable, or give another folder"):
        Log("a", tmp_path)


def test_the_page_names_every_event_with_its_level() -> None:
    page = (ROOT / "docs" / "operations.md").read_text()
    for level in (logging.ERROR, logging.WARNING, logging.DEBUG):
        name = logging.getLevelName(level).lower()
        (row,) = [line for line in page.splitlines() if line.startswith(f"| `{name}` |")]
        told = set(re.findall(r"`(\w+)`", row.split("|")[2]))
        assert told == {event for event, one in LEVELS.items() if one == level}


def test_a_mistake_in_the_code_does_not_pass_for_a_full_disk(tmp_path: Path) -> None:
    class Unprintable:
        def __str__(self) -> str:
            raise ValueError("in the code")

    shown: list[str] = []
    log = Log("a", tmp_path / "log.jsonl", shown.append)
    (file,) = [one for one in log._logger.handlers if isinstance(one, LogFile)]
    record = logging.LogRecord("a", logging.INFO, "", 0, Unprintable(), None, None)
    with pytest.raises(ValueError, match="in the code"):
        file.emit(record)
    assert shown == []
    log.close()
