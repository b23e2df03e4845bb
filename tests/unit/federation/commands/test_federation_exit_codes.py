"""What the operator's commands say, and their exit codes: all parties, some, or none."""

import re
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from bundles_on_disk import found
from federation_commands import run
from mtcd.cli.app import app
from mtcd.core.errors import MtcdError
from mtcd.federation.commands.exit_codes import EXIT_CODES
from mtcd.federation.credentials.credentials import read_credentials
from mtcd.federation.node import operator
from mtcd.federation.node.operator import Timeouts, ask_everybody, operator_bundle
from project import ROOT
from waiting import PATIENCE

DOCS = ROOT / "docs" / "federation.md"
ROW = re.compile(r"^\| ((?:`mtcd [a-z ]+`(?:, )?)+) \| (\d+) \| (.+) \|$", re.MULTILINE)


@pytest.fixture
def bundles(tmp_path: Path) -> Path:
    return found(tmp_path / "f")


def answering(monkeypatch: pytest.MonkeyPatch, answers: dict[str, Any]) -> None:
    monkeypatch.setattr(operator.Operator, "ask", lambda self, kind, timeouts=None: answers)


def test_dead_parties_are_given_up_without_waiting(bundles: Path) -> None:
    """Their connections are refused: the test would not end in time if each waited for its
    answer."""
    assert (
        ask_everybody(
            operator_bundle(bundles, read_credentials), "status", Timeouts(PATIENCE, PATIENCE)
        )
        == {}
    )


@pytest.mark.parametrize(
    ("answers", "code", "outcomes"),
    [
        (
            {
                "a": {"phase": "training"},
                "b": {"phase": "ended"},
                "c": {"phase": "opening"},
                "server": {},
            },
            0,
            ["stopping", "already finished", "stopping", "stopping"],
        ),
        (
            {"b": {"phase": "ended"}, "c": MtcdError("not now"), "server": {"phase": "training"}},
            3,
            ["not reached", "already finished", "refuses: not now", "stopping"],
        ),
        ({}, 1, ["not reached"] * 4),
        ({"a": MtcdError("no")}, 1, ["refuses: no", *["not reached"] * 3]),
    ],
)
def test_stop_says_what_it_reached(
    answers: dict[str, Any],
    code: int,
    outcomes: list[str],
    bundles: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answering(monkeypatch, answers)
    ended, out, _ = run(capsys, "stop", bundles)
    told = dict(line.split(": ", 1) for line in out.splitlines()[:4])
    assert list(told) == ["a", "b", "c", "server"]
    assert list(told.values()) == outcomes
    assert ended == code
    assert ("not reached learns of the end" in out) == (code == 3)
    assert ("No party answers" in out) == (code == 1)


@pytest.mark.parametrize(("reached", "code"), [(["a", "b", "c", "server"], 0), (["b"], 3), ([], 1)])
def test_logs_tell_who_is_missing(
    reached: list[str],
    code: int,
    bundles: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    event = {"time": "2026-01-01T10:00:00.000+00:00", "event": "up", "text": "Up."}
    answering(monkeypatch, {name: [{**event, "party": name}] for name in reached})
    ended, out, err = run(capsys, "logs", bundles)
    assert ended == code
    assert [line.split()[1] for line in out.splitlines()] == [f"{name}:" for name in reached]
    assert ("Reached 1 of 4: b. Not reached within 5 s: a, c, server." in err) == (code == 3)
    assert ("log.jsonl" in err) == (code == 1)


OPENING = {"phase": "opening", "connected": [], "waiting_for": []}


@pytest.mark.parametrize(("reached", "code"), [(["a", "b", "c", "server"], 0), (["b"], 3), ([], 1)])
def test_status_tells_all_some_or_none(
    reached: list[str],
    code: int,
    bundles: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answering(monkeypatch, {name: {**OPENING, "name": name} for name in reached})
    ended, out, _ = run(capsys, "status", bundles)
    assert ended == code
    phases = dict(re.findall(r"(?m)^(a|b|c|server)\s+(opening|not reached)", out))
    assert phases == {
        name: "opening" if name in reached else "not reached" for name in ("a", "b", "c", "server")
    }


def test_a_bundle_that_is_not_the_operators_is_invalid_input(
    bundles: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in ("status", "stop", "logs"):
        code, _, err = run(capsys, command, bundles / "a")
        assert code == 2
        assert "operator's bundle" in err


def test_exit_codes_are_documented() -> None:
    documented: dict[str, dict[int, str]] = {}
    for commands, code, text in ROW.findall(DOCS.read_text(encoding="utf-8")):
        for command in re.findall(r"`mtcd ([a-z ]+)`", commands):
            documented.setdefault(command, {})[int(code)] = text
    assert documented == EXIT_CODES


def test_the_help_of_every_command_of_a_federation_states_its_exit_codes() -> None:
    top: Any = get_command(app)
    known = {f"federation {name}": one for name, one in top.commands["federation"].commands.items()}
    known |= {name: top.commands[name] for name in ("party", "server")}
    assert known.keys() == EXIT_CODES.keys()
    for name, command in known.items():
        assert all(f"{code} {text}" in command.epilog for code, text in EXIT_CODES[name].items()), (
            name
        )
