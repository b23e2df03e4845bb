"""mtcd predict RUN and mtcd evaluate RUN: a trained run on a new table."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
from numpy.typing import NDArray

from mtcd.cli.show import data_warnings, measured
from mtcd.config.read import read_config
from mtcd.config.runs import CONFIG, load_run
from mtcd.config.schema import TableData
from mtcd.core.errors import ConfigError, DataError, check_known
from mtcd.core.files import MARKER, write_whole
from mtcd.core.terminal.screen import screen, show_notes
from mtcd.core.terminal.table import ScreenTable
from mtcd.core.terminal.text import escape
from mtcd.data.svmlight import is_svmlight, read_new_svmlight
from mtcd.data.table_files import Table, read_table
from mtcd.data.table_values import labels_of
from mtcd.training.run import Run


def is_run(folder: Path) -> bool:
    """Whether this is the folder of a run, and not the bundle of a party."""
    return (folder / MARKER).is_file()


def check_run(folder: Path) -> None:
    """Refuse any other folder."""
    if not is_run(folder):
        raise ConfigError(
            f"{folder} is not a run folder, as it has no {MARKER}: give one that mtcd train wrote."
        )


@dataclass(frozen=True)
class LoadedSamples:
    """A run and new samples for it: ``X`` as in ``run.predict``; an svmlight file has no ``table``,
    but ``labels``."""

    run: Run
    rows: int
    X: Any
    table: Table | None
    labels: NDArray[Any] | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class OnTable:
    """A run, and a table of new samples: ``run`` is its folder. ``run_code``: see
    :func:`mtcd.load_run`."""

    run: Path
    table: Path
    run_code: bool = False

    def loaded(self) -> LoadedSamples:
        """The run, and the samples of the table."""
        check_run(self.run)
        run = load_run(self.run, run_code=self.run_code)
        run.trained()  # a run without its model is refused before a large table is read
        if is_svmlight(self.table):
            return self._from_svmlight(run)

        # with a preparation, codes such as 007 stay text, as they were when it was fitted
        codes_but = None
        if run.trained().preparations is not None:
            codes_but = (self._named("label"),)

        # with the id of the training, if the new table has it under the same name
        table = read_table(self.table, self._named("id"), codes_but)
        return LoadedSamples(run, table.rows, pl.DataFrame(list(table.columns.values())), table)

    def _from_svmlight(self, run: Run) -> LoadedSamples:
        if not run.trained().takes_sparse:
            raise ConfigError(
                "Samples for a split network are CSV or Parquet tables, not svmlight files."
            )
        X, labels, notes = read_new_svmlight(self.table, run.column_names)
        return LoadedSamples(run, len(labels), X, None, labels, notes)

    def _named(self, key: str) -> str | None:
        """A column that the config of the run names; None where it has none."""
        if not (self.run / CONFIG).exists():
            return None  # it was trained in Python, and saved

        # read, not built: nothing that the config names is run
        data = read_config(self.run / CONFIG).data
        if not isinstance(data, TableData):
            return None
        named: str | None = getattr(data, key)
        return named

    def labels(self, asked: str | None, samples: LoadedSamples) -> NDArray[Any]:
        """The labels of the samples: a column of the table, or those inside an svmlight file."""
        if samples.table is None:
            assert samples.labels is not None
            return samples.labels

        # two predictions may well have the same label: only a training needs different ones
        column = samples.table.columns[self._label(asked, samples.table)]
        return labels_of(samples.table.path, column, may_be_equal=True)[0]

    def _label(self, asked: str | None, table: Table) -> str:
        """The label column of the table."""
        label = asked or self._named("label")
        if label is None:
            raise ConfigError(
                "Which column holds the labels? The run's config names none: give --label COLUMN."
            )
        problem = f"{table.path} has no label column {label!r}:"
        check_known(label, table.columns, problem, DataError)
        return label


def predict_table(given: OnTable, out: Path, quiet: bool) -> None:
    """Write the predictions for a table, with ids if the run has some, and probabilities."""
    if out.is_dir() or not out.absolute().parent.is_dir():
        raise DataError(f"{out} cannot be written: give a file in a folder that exists (--out).")

    new = given.loaded()
    with data_warnings() as told:
        columns: dict[str, Any] = new.run.trained().columns_of(new.X)
    if not quiet:
        show_notes([*new.notes, *told])

    if new.table is not None and new.table.ids.width:
        # ids are kept in their own order, for joins; predictions are in that of the rows
        columns = {"id": new.table.ids.sort("row")["id"], **columns}
    write_whole(out, pl.DataFrame(columns).write_csv().encode())

    if quiet:
        return
    what = f"{new.rows:,} predictions are"
    if new.rows == 1:
        what = "1 prediction is"
    screen.print(f"{what} in {escape(str(out))}.", highlight=False, soft_wrap=True)


def evaluate_table(given: OnTable, label: str | None, as_json: bool, plot: Path | None) -> None:
    """Print the metrics of a run on a table with labels, and draw its curves if asked to."""
    new = given.loaded()
    labels = given.labels(label, new)
    drawn: list[Path] = []
    with data_warnings() as told:
        found = new.run.evaluate(new.X, labels)
        if plot is not None:
            drawn = new.run.plot_evaluation(new.X, labels, plot)
    show_notes([*new.notes, *told])

    # NaN is a metric that these labels do not define, such as AUC of one class
    known: dict[str, float | None] = dict(found)
    for name, value in found.items():
        if math.isnan(value):
            known[name] = None

    if as_json:
        plots = [str(path) for path in drawn]
        said: dict[str, Any] = {"samples": new.rows, "metrics": known, "plots": plots}
        print(json.dumps(said))  # noqa: T201
        return

    shown = [[name.replace("_", " "), measured(value, 6)] for name, value in known.items()]
    screen.print(ScreenTable(["metric", f"of {new.rows:,} samples"], shown, words=["metric"]))
    for path in drawn:
        screen.print(f"Picture: {escape(str(path))}", highlight=False, soft_wrap=True)


def export_run(folder: Path, path: Path, run_code: bool, after_preparation: bool) -> None:
    """Write the model of a run as ONNX, and tell the files."""
    check_run(folder)
    run = load_run(folder, run_code=run_code)
    for written in run.export_onnx(path, after_preparation):
        screen.print(f"Written: {escape(str(written))}", highlight=False, soft_wrap=True)
