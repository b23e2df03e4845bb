"""The command ``mtcd sweep``: a config over a grid of settings and seeds."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from statistics import fmean
from typing import Any

from mtcd.cli.train import RUNS
from mtcd.core.terminal.options import ConfigOptions
from mtcd.core.terminal.progress import trainings_progress
from mtcd.core.terminal.screen import aside, screen, show_notes
from mtcd.core.terminal.table import ScreenTable
from mtcd.core.terminal.text import escape
from mtcd.core.workers import Backend
from mtcd.studies.command_select import plain_rows, shown
from mtcd.studies.grid import parse_over
from mtcd.studies.running import FAILED
from mtcd.studies.sweep import BEST, TRAININGS, Sweep, sweep

ROWS = 20  # settings in the table on the screen
REASONS = 3  # of failures, on the screen


def sweep_config(
    options: ConfigOptions, over: list[str], seeds: int, by: str | None, backend: Backend
) -> int:
    """Train the grid, write and show the outcome; returns the exit code."""
    out = options.out or RUNS / f"{options.config.stem}-sweep"
    values = parse_over(over)
    changes = list(options.changes)
    if options.seed is not None:
        changes.append(f"seed={options.seed}")

    with trainings_progress(options.quiet) as (show, _):
        try:
            found = sweep(
                options.config, values, seeds, out, backend.workers, backend.ray, by, changes, show
            )
        except KeyboardInterrupt:
            # no error: what is finished is on disk, and the same command goes on from there
            aside.print(escape(_interrupted(out)), highlight=False, soft_wrap=True)
            return 130

    failed = sum(record["row"]["status"] == FAILED for record in found.records)
    if options.as_json:
        print(json.dumps(_summary(found, failed, out)))  # noqa: T201
    elif not options.quiet:
        _show(found, failed, out)
    if failed == len(found.records):
        return 2  # of invalid input: a sweep of which something succeeded is a success
    return 0


def _summary(found: Sweep, failed: int, out: Path) -> dict[str, Any]:
    """What JSON says of a sweep."""
    config = None
    if found.best is not None:
        config = str(out / BEST)
    return {
        "trainings": len(found.points),
        "kept": found.kept,
        "failed": failed,
        "by": found.by,
        "best": found.best,
        "config": config,
        "rows": plain_rows(found.rows()),
        "out": str(out),
    }


def _show(found: Sweep, failed: int, out: Path) -> None:
    if found.kept:
        show_notes([f"{found.kept} of {len(found.points)} trainings were finished before."])
    screen.print(settings_table(found))

    rows = [record["row"] for record in found.records]
    # one slip fails many trainings: its reason is shown once
    reasons = dict.fromkeys(row["reason"] for row in rows if row["status"] == FAILED)
    show_notes(f"Failed: {reason}" for reason in list(reasons)[:REASONS])
    if failed:
        show_notes(
            [f"{failed} of {len(found.points)} trainings failed: sweep.csv has the reasons."]
        )
    if found.best is not None:
        screen.print(escape(found.best_sentence), highlight=False, soft_wrap=True)
    screen.print(escape(f"Folder: {out}"), highlight=False, soft_wrap=True)


def settings_table(found: Sweep) -> ScreenTable:
    """A row for each setting, the best first: means over its seeds."""
    columns = list(dict.fromkeys([found.value_column, found.by, "cost", "seconds"]))
    # one row each, by the settings that the trainings of a group share
    rows = []
    for group in sorted(found.groups, key=found.rank)[:ROWS]:
        outcomes = [found.records[number]["row"] for number in group]
        states = [row["status"] for row in outcomes]
        said = [f"{count} {state}" for state, count in Counter(states).items()]
        settings = [shown(value) for value in found.points[group[0]].settings.values()]
        means = [_mean(name, outcomes) for name in columns]
        rows.append([*settings, ", ".join(said), *means])

    titles = [*found.keys, "seeds", *(name.replace("_", " ") for name in columns)]
    return ScreenTable(titles, rows, words=[*found.keys, "seeds"], best=True)


def _mean(name: str, outcomes: list[dict[str, Any]]) -> str:
    """The mean of a column, over the trainings that have a value in it."""
    known = [row[name] for row in outcomes if row.get(name) is not None]
    if not known:
        return "-"
    return f"{fmean(known):.4g}"


def _interrupted(out: Path) -> str:
    kept = len(list((out / TRAININGS).glob("*.json")))
    return (
        f"Interrupted: {kept} finished trainings are kept in {out / TRAININGS}. Run the same command "
        f"to continue."
    )
