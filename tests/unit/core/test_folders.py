"""Folders that results are written into: what may be in them, and whether a training has ended."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from mtcd.core.errors import ConfigError
from mtcd.core.files import CHECKPOINTS, MARKER, check_folder, check_unfinished


def test_other_files_are_named_in_order(tmp_path: Path) -> None:
    """The order of a folder is that of the file system: a message that differs from call to call
    cannot be looked up."""
    for name in ("h", "b", "g", "a", "f", "c", "e", "d", MARKER):
        (tmp_path / name).touch()
    with pytest.raises(ConfigError, match=r"other files \(a, b, c and 5 more\)"):
        check_folder(tmp_path)


def test_files_that_will_be_replaced_may_be_there(tmp_path: Path) -> None:
    (tmp_path / "plot.svg").touch()
    check_folder(tmp_path, known=["plot.svg", "table.csv"])
    with pytest.raises(ConfigError, match=r"other files \(plot.svg\)"):
        check_folder(tmp_path)

    # those of a run are then as foreign as any
    (tmp_path / MARKER).touch()
    with pytest.raises(ConfigError, match=rf"other files \({MARKER}\)"):
        check_folder(tmp_path, known=["plot.svg"])


@pytest.mark.parametrize("name", CHECKPOINTS)
@pytest.mark.parametrize(
    ("status", "later", "ended"),
    [
        ("iterations", -1, True),
        # both may be written within one tick of the clock of the file system
        ("iterations", 0, True),
        ("iterations", 1, False),
        ("interrupted", -1, False),
        (None, -1, False),
    ],
)
def test_a_training_has_ended_unless_its_checkpoint_is_newer(
    tmp_path: Path, name: str, status: str | None, later: int, ended: bool
) -> None:
    marker, checkpoint = tmp_path / MARKER, tmp_path / name
    marker.write_text(json.dumps({"status": status} if status else {}))
    checkpoint.touch()
    os.utime(marker, (1000, 1000))
    os.utime(checkpoint, (1000 + later, 1000 + later))
    if ended:
        check_unfinished(tmp_path, resume=False)
    else:
        with pytest.raises(ConfigError, match="was not finished"):
            check_unfinished(tmp_path, resume=False)
    check_unfinished(tmp_path, resume=True)


def test_there_must_be_something_to_resume(tmp_path: Path) -> None:
    check_unfinished(tmp_path, resume=False)
    with pytest.raises(ConfigError, match="no checkpoint"):
        check_unfinished(tmp_path, resume=True)


def test_a_folder_below_a_file_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    check_folder(tmp_path / "new" / "folder")
    with pytest.raises(ConfigError, match=r"below cannot be written \(Not a directory\)"):
        check_folder(tmp_path / "file" / "below")
    with pytest.raises(ConfigError, match="is a file: choose another folder"):
        check_folder(tmp_path / "file")
