"""Summaries of runs: what is kept and read, and what is missing, of another version, or damaged."""

import json
import math
import stat
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from mtcd.core.errors import MtcdError
from mtcd.federation.participant.keeping import (
    FORMAT,
    METRICS,
    OWN_METRICS,
    SUMMARY,
    Summary,
    keep_metrics,
    keep_run,
    read_metrics,
    read_summary,
)
from mtcd.protocol.ledger.costs import Costs
from mtcd.protocol.ledger.ledger import Ledger


def test_a_folder_without_a_summary_has_no_run_that_has_ended(tmp_path: Path) -> None:
    with pytest.raises(MtcdError, match=rf"There is no {SUMMARY} in {tmp_path}: its run has not"):
        read_summary(tmp_path)


def test_a_summary_of_another_format_is_refused_with_both(tmp_path: Path) -> None:
    (tmp_path / SUMMARY).write_text(json.dumps({"format": FORMAT + 1}))
    with pytest.raises(MtcdError, match=rf"its format is {FORMAT + 1}, but .* reads {FORMAT}"):
        read_summary(tmp_path)


@pytest.mark.parametrize("damage", ["", "{", "[]", "{}", json.dumps({"format": FORMAT})])
def test_a_damaged_summary_is_refused(damage: str, tmp_path: Path) -> None:
    (tmp_path / SUMMARY).write_text(damage)
    with pytest.raises(MtcdError, match=rf"{tmp_path / SUMMARY} cannot be read \("):
        read_summary(tmp_path)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode) & 0o077


def summary(**changes: Any) -> Summary:
    facts: dict[str, Any] = {
        "federation": "clinics",
        "party": "a",
        "status": "iterations",
        "method": "stcd",
        "stepsize": 0.5,
        "iterations": 7,
        "syncs": 2,
        "ledger": Ledger(),
        "costs": Costs(),
        "seconds": 1.5,
        "objective": 0.25,
        "notes": ("one", "two"),
        "metrics": {"train_auc": 0.75},
        "unjudged": "Not known.",
    }
    return Summary(**{**facts, **changes})


def test_what_is_kept_is_for_its_owner_only_and_read_as_it_was(tmp_path: Path) -> None:
    keep_metrics(tmp_path, {"train_auc": 0.75})
    keep_metrics(tmp_path, {"test_auc": 0.5}, OWN_METRICS)
    keep_run(tmp_path, summary(), {"theta.bin": b"1"})
    names = {path.name: mode_of(path) for path in tmp_path.iterdir()}
    assert names == dict.fromkeys([METRICS, OWN_METRICS, SUMMARY, "theta.bin"], 0)
    assert read_metrics(tmp_path) == {"train_auc": 0.75}
    assert read_summary(tmp_path) == summary()


@pytest.mark.parametrize("objective", [None, math.nan, math.inf])
def test_an_objective_that_is_no_number_is_kept_as_none(
    objective: float | None, tmp_path: Path
) -> None:
    keep_run(tmp_path, summary(objective=objective), {})
    assert read_summary(tmp_path).objective is None


def test_a_summary_without_metrics_is_one_of_an_earlier_version(tmp_path: Path) -> None:
    keep_run(tmp_path, summary(), {})
    stored = json.loads((tmp_path / SUMMARY).read_text())
    del stored["metrics"], stored["unjudged"]
    (tmp_path / SUMMARY).write_text(json.dumps(stored))
    assert read_summary(tmp_path) == summary(metrics={}, unjudged="")


def test_a_summary_warns_of_what_is_not_known_unless_the_run_diverged() -> None:
    ended = "Stopped at the limit of iterations after 7 iterations and 2 syncs."
    assert summary().message == f"{ended} Not known."
    assert summary(unjudged="").message.endswith("2 syncs.")
    assert "Not known" not in summary().diverged().message
    assert summary().diverged().metrics == {}


def test_a_summary_consists_of_plain_values() -> None:
    plain = summary(metrics=MappingProxyType({"train_auc": 0.75})).to_dict()
    assert plain["notes"] == ["one", "two"]
    assert type(plain["metrics"]) is dict
    assert json.loads(json.dumps(plain)) == plain
