"""Writes the measurements of a training to a CSV file while it runs."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mtcd.core.errors import ConfigError, raised_as
from mtcd.core.files import check_writable, write_whole
from mtcd.core.rows import Rows
from mtcd.training.callbacks.callback import CALLBACKS, Callback, Moment, RunInfo

HEADER = b"iteration,"
"""What a history begins with."""


@CALLBACKS.register("csv")
@dataclass
class CsvWriter(Callback):
    """Writes a row for each measurement to a file, as they are measured.

    Its columns are those of history.csv.

    Parameters
    ----------
    file : str or Path, default 'history.csv'
        The file.

    Examples
    --------
    >>> import mtcd, pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "history.csv"
    >>> data = mtcd.synthetic("ridge", samples=50, features=8, clients=4)
    >>> run = mtcd.train(
    ...     data,
    ...     mtcd.Glm("ridge"),
    ...     "path",
    ...     mtcd.STCD(),
    ...     mtcd.Stop(iterations=3),
    ...     callbacks=[mtcd.CsvWriter(file)],
    ... )
    >>> len(file.read_text().splitlines())  # a heading, the start and three iterations
    5
    """

    file: str | Path = "history.csv"

    def on_start(self, info: RunInfo) -> None:
        path = Path(self.file)
        # Before anything is trained: hours later it would be too late to hear of it.
        check_writable(path.parent)
        self._check_ours(path)
        # A training that is resumed writes its earlier rows again: the file may be from after the
        # checkpoint.
        self._rows = Rows(row.row() for row in info.history)
        self._write_all()

    @staticmethod
    def _check_ours(path: Path) -> None:
        """Reject an existing file that is not such a history."""
        try:
            # By its first bytes: a name that was given by mistake must not cost a table.
            if path.exists():
                with path.open("rb") as file:
                    start = file.read(len(HEADER))
                if start not in (b"", HEADER):
                    raise ConfigError(
                        f"{path} is another file, not a history: choose another name."
                    )
        except OSError as error:
            raise ConfigError(
                f"{path} cannot be used ({error.strerror}): choose another file."
            ) from None

    def on_measure(self, moment: Moment) -> None:
        row = moment.measurement.row()
        self._rows.append(row)
        # A column that is new stands in the header too, so that all is written again.
        if set(row) <= set(self._columns):
            self._append(row)
        else:  # the first row, or a metric that was not there before
            self._write_all()

    def _append(self, row: Mapping[str, Any]) -> None:
        with (
            raised_as(f"{self.file} could not be written"),
            Path(self.file).open("a", newline="") as file,
        ):
            csv.DictWriter(file, self._columns).writerow(row)

    def _write_all(self) -> None:
        self._columns = self._rows.columns
        text = ""  # before the first measurement, it is not known which columns there will be
        if self._rows:
            text = self._rows.to_csv()
        write_whole(Path(self.file), text)
