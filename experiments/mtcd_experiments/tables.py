"""Results as tables: the amount that each curve needed to reach the target, or its accuracy and
cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mtcd.core.terminal.table import ScreenTable
from mtcd.plots.styles import scientific
from mtcd_experiments.accuracies import CAPTION, accuracy_cells, accuracy_headings, accuracy_summary
from mtcd_experiments.numbers import (
    CurveEntry,
    amounts,
    as_csv,
    column_name,
    cost_name,
    entries,
    grid,
    mean_cost,
    shown_costs,
    some_seeds,
    spread_columns,
    targets,
)
from mtcd_experiments.results import Results

WORDS = ("case", "curve")  # may wrap; the other columns are numbers, and must not


def results_table(results: Results) -> ScreenTable:
    """One row per case and curve, for the screen. A single case needs no column."""
    caption = f"{results.name}: {_what(results)}, means over seeds"
    several = len(results.case_names()) > 1
    first = int(not several)
    rows = [cells(results, entry, brief=True)[first:] for entry in entries(results)]
    return ScreenTable(headings(results, brief=True)[first:], rows, WORDS, caption, grouped=several)


def _what(results: Results) -> str:
    if results.experiment.measure == "accuracy":
        return "test accuracy after so many epochs, cost at the end, of SVFL's per epoch"
    return f"iterations and cost to a gap of {results.experiment.target:g}"


def caption(results: Results) -> str:
    """The caption of a table."""
    if results.experiment.measure == "accuracy":
        return CAPTION
    gaps = " and ".join(f"{gap:g}" for gap in targets(results))
    return f"What it took to reach a gap of {gaps}, as means over the seeds that did:"


def headings(results: Results, brief: bool = False) -> list[str]:
    """The titles of the columns. Of several gaps, a brief table is about the first."""
    if results.experiment.measure == "accuracy":
        return [*WORDS, *accuracy_headings(results, brief)]
    gaps = _gaps(results, brief)
    found = list(amounts(results))
    if len(gaps) > 1:
        found = [f"{name} to {gap:g}" for gap in gaps for name in amounts(results)]
    return [*WORDS, "step size", *found, "final gap", "seconds"]


def _gaps(results: Results, brief: bool) -> Sequence[float]:
    if brief:
        return targets(results)[:1]
    return targets(results)


def cells(results: Results, entry: CurveEntry, brief: bool = False) -> list[str]:
    """One row, as text."""
    curve = entry.result
    if results.experiment.measure == "accuracy":
        return [entry.title, curve.label, *accuracy_cells(results, entry)]
    found = []
    for gap in _gaps(results, brief):
        spreads = [curve.reach(gap, *axis) for axis in amounts(results).values()]
        found += [mean_cost(spreads[0]) + some_seeds(spreads[0]), *map(mean_cost, spreads[1:])]
    ends = (f"{curve.final_gap:.1e}", f"{curve.seconds:.1f}")
    return [entry.title, curve.label, scientific(curve.stepsize), *found, *ends]


def table_csv(results: Results) -> str:
    """One row per case and curve: settings, results and amounts."""
    summary = _summary
    if results.experiment.measure == "accuracy":
        summary = accuracy_summary
    rows = [summary(results, entry) for entry in entries(results)]
    return as_csv(rows, list(next(iter(rows), {})))


def _summary(results: Results, entry: CurveEntry) -> dict[str, Any]:
    curve, target = entry.result, results.experiment.target
    iterations, reached = curve.reach(target), 0
    if iterations is not None:
        reached = iterations.reached
    row = {
        "case": entry.case,
        "curve": entry.curve,
        "label": curve.label,
        "stepsize": curve.stepsize,
        "tuned": grid(curve),
        "seeds": len(curve.trained),
        "target": target,
        "reached": reached,
        **spread_columns("iterations", iterations),
    }
    config = results.axis("cost"), results.ratio
    for name, axis in ({cost_name(*config): config} | shown_costs(results)).items():
        row |= spread_columns(column_name(name), curve.reach(target, *axis))
    for name in ("messages", "floats"):
        if getattr(results.experiment, name):
            row |= spread_columns(name, curve.reach(target, name))
    for gap in results.experiment.further_targets:
        for name, axis in amounts(results).items():
            row |= spread_columns(f"{column_name(name)}_to_{gap:g}", curve.reach(gap, *axis))
    return row | {
        "final_gap": curve.final_gap,
        "status": curve.status,
        "seconds": round(curve.seconds, 3),
    }
