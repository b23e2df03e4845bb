"""Summaries of runs that are missing, of another version, or damaged."""

import json
from pathlib import Path

import pytest

from mtcd.core.errors import MtcdError
from mtcd.federation.participant.keeping import FORMAT, SUMMARY, read_summary


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
