"""Console output of a training: progress bar, notes, table of runs."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich import filesize
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from mtcd.config.read import table_files
from mtcd.config.schema import Config
from mtcd.core.errors import DataWarning, listing
from mtcd.core.terminal.screen import aside
from mtcd.core.terminal.table import ScreenTable
from mtcd.training.history import PARTS, Measurement
from mtcd.training.observer import Watch
from mtcd.training.run import Run


@contextmanager
def live_progress(title: str, quiet: bool = False) -> Iterator[Watch | None]:
    """A bar with gap (or objective), iterations, cost and time left, on standard error."""
    if quiet:
        yield None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[state]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=aside, transient=True, refresh_per_second=8) as bar:
        task = bar.add_task(title, total=1.0, state="getting ready")

        def watch(now: Measurement, fraction: float) -> None:
            state = f"{_value(now)}  {_progress(now)}  cost {now.cost:,.0f}"
            bar.update(task, completed=fraction, state=state)

        yield watch


def _value(now: Measurement) -> str:
    """How good the model is: the gap or objective, and the accuracy where it is known."""
    value = f"objective {now.objective:.5g}"
    if now.gap is not None:
        value = f"gap {now.gap:.2e}"

    accuracy = now.test_accuracy
    if accuracy is None:
        accuracy = now.accuracy
    if accuracy is None:
        return value
    return f"{value}  accuracy {accuracy:.1%}"


def _progress(now: Measurement) -> str:
    """How far the training is."""
    if now.epoch is None:
        return f"{now.iteration:,} iterations"
    return f"{now.epoch:g} epochs"


@contextmanager
def reading(config: Config, quiet: bool = False) -> Iterator[None]:
    """A line on standard error while the tables of a config are read: their names and sizes, and
    the time so far."""
    files = table_files(config)
    if quiet or not files or not aside.is_terminal:
        yield
        return

    sizes = []
    for path in files:
        if path.is_file():  # one that is not there is reported when it is read
            sizes.append(f"{path.name} ({filesize.decimal(path.stat().st_size)})")

    # no markup: a name of a file may have brackets in it
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=aside, transient=True) as line:
        line.add_task(f"Reading {listing(sizes, 3)}")
        yield


@contextmanager
def data_warnings() -> Iterator[list[str]]:
    """Collect warnings about data, which the command line prints as notes; each is told once."""
    told: list[str] = []
    # as notes at the end: a warning between two lines of a progress bar is not seen
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DataWarning)
        yield told

    for one in caught:
        if not issubclass(one.category, DataWarning):
            # not ours to hide: again, outside of the recording
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
        elif str(one.message) not in told:
            told.append(str(one.message))


def measured(value: float | None, digits: int) -> str:
    """A metric with so many digits; of larger numbers, all digits before the point. None is a
    metric that the labels do not define.

    >>> measured(0.912, 4), measured(23456.7, 4), measured(-0.5, 6), measured(1234.0, 4)
    ('0.9120', '23,457', '-0.500000', '1,234')
    """
    if value is None:
        return "not defined"
    if 10 ** (digits - 1) <= abs(value) < 1e15:
        return f"{value:,.0f}"
    return f"{value:#.{digits}g}"


def metrics_table(run: Run) -> ScreenTable | None:
    """A row for each metric of the last measurement: on the training samples, and on the test set
    if there is one."""
    last = run.final.metrics
    if not last:
        return None

    # keys are PART_METRIC; a dict keeps the order in which metrics were asked for
    split = [name.partition("_") for name in last]
    measured_parts = {part for part, _, _ in split}
    names = dict.fromkeys(name for _, _, name in split)
    parts = [part for part in PARTS if part in measured_parts]

    rows = []
    for name in names:
        values = [measured(last.get(f"{part}_{name}"), 4) for part in parts]
        rows.append([name.replace("_", " "), *values])
    return ScreenTable(["metric", *parts], rows, words=["metric"])


def _learnt(runs: Sequence[Run]) -> list[str]:
    """The accuracy that all runs have, of new samples if possible; none of linear models, which
    have a table of metrics instead."""
    if any(run.final.accuracy is None for run in runs):
        return []
    if any(run.final.test_accuracy is None for run in runs):
        return ["accuracy"]
    return ["test_accuracy"]


def runs_table(runs: Sequence[Run]) -> ScreenTable:
    """One row per run: method, status, iterations, hops, syncs, gap (or objective), cost,
    seconds."""
    # the columns of numbers: their title, and how a value of theirs is written
    columns: dict[str, tuple[str, str]] = {}
    learnt = _learnt(runs)
    if learnt and all(run.final.epoch is not None for run in runs):
        columns |= {"epoch": ("epochs", ",.10g")}
    else:
        columns |= {"iteration": ("iterations", ",.10g"), "hops": ("hops", ",.10g")}
    columns |= {"syncs": ("syncs", ",.10g")}

    # gaps only if all have one: numbers of two kinds in a column would be compared
    if all(run.gap is not None for run in runs):
        columns |= {"gap": ("gap", ".2e")}
    else:
        columns |= {"objective": ("objective", ".6g")}
    columns |= {name: (name.replace("_", " "), ".1%") for name in learnt}
    columns |= {"cost": ("cost", ",.1f"), "seconds": ("seconds", ".1f")}

    rows = []
    for run in runs:
        values = [format(getattr(run.final, name), how) for name, (_, how) in columns.items()]
        rows.append([run.method, run.status, *values])
    titles = [title for title, _ in columns.values()]
    return ScreenTable(["method", "status", *titles], rows, words=["method", "status"])
