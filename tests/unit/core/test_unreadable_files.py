"""Files that cannot be read or written: the error says which, and why, in the words of the
system."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from mtcd.core.errors import MtcdError
from mtcd.federation.delivery.journal import FileJournal, mapped_numbers
from mtcd.network.csv_files import csv_rows


def journal_read(path: Path) -> None:
    FileJournal(path).last()


def journal_written(path: Path) -> None:
    FileJournal(path / "below").commit({"x": 1})


def numbers(path: Path) -> None:
    mapped_numbers(path, (2, 3), fresh=True)


def table(path: Path) -> None:
    list(csv_rows(path, ["source", "target"], "list of links"))


@pytest.mark.parametrize(
    ("use", "occupied", "said", "why"),
    [
        (journal_read, "file.0", "file cannot be read: ", errno.EISDIR),
        (journal_written, "file", "file/below could not be written: ", errno.ENOENT),
        (numbers, "file", "file cannot be used: ", errno.EISDIR),
        (table, "file", "cannot read the list of links ", errno.EISDIR),
        (table, "elsewhere", "cannot read the list of links ", errno.ENOENT),
    ],
)
def test_the_error_has_the_reason(
    tmp_path: Path, use: Callable[[Path], None], occupied: str, said: str, why: int
) -> None:
    if use is not journal_written:
        (tmp_path / occupied).mkdir()
    with pytest.raises(MtcdError) as caught:
        use(tmp_path / "file")
    message = str(caught.value)
    assert said in message
    assert str(tmp_path / "file") in message
    assert message.rstrip(".").endswith(os.strerror(why))
    assert "Errno" not in message


def test_an_error_without_a_reason_of_the_system_is_shown_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise OSError("the disk is asleep")

    monkeypatch.setattr(Path, "read_bytes", fails)
    monkeypatch.setattr(Path, "open", fails)
    monkeypatch.setattr(os, "open", fails)
    for use in (journal_read, numbers, table):
        with pytest.raises(MtcdError, match="the disk is asleep"):
            use(tmp_path / "file")
    monkeypatch.undo()
    monkeypatch.setattr(os, "open", fails)
    with pytest.raises(MtcdError, match="could not be written: the disk is asleep"):
        FileJournal(tmp_path / "file").commit({"x": 1})
