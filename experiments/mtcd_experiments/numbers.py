"""The numbers behind a figure: its lines, and the iterations and cost to the target, as rows of
plain values."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from mtcd.plots.styles import scientific
from mtcd_experiments.results import CurveResult, Line, Results, Spread
from mtcd_experiments.schema import Panel

POINTS = 150


@dataclass(frozen=True, eq=False)
class CurveEntry:
    """A curve in a case, with the names people read."""

    case: str
    curve: str
    title: str
    result: CurveResult


def entries(results: Results, case: str | None = None) -> list[CurveEntry]:
    """All curves that were run, or those of one case, in the order of the experiment."""
    experiment = results.experiment
    found = []
    names = results.case_names()
    if case is not None:
        names = [case]
    for name in names:
        title = experiment.cases[name].title
        for curve in experiment.shown(name):
            if (name, curve) in results.curves:
                found.append(CurveEntry(name, curve, title, results.curves[name, curve]))

    return found


def panel_ratio(results: Results, panel: Panel) -> float:
    """R_C of a panel."""
    return panel.ratio or results.ratio


def panel_scale(results: Results, panel: Panel) -> Literal["log", "linear"]:
    """The axis of a panel: the configured one, or the default of the measure."""
    if panel.x == "ratio":
        return "log"
    if panel.scale:
        return panel.scale
    return value_scale(results)


def value_scale(results: Results) -> Literal["log", "linear"]:
    """The axis of what is measured: gaps fall by factors, accuracies rise by shares."""
    if results.experiment.measure == "gap":
        return "log"
    return "linear"


def panel_axis(results: Results, panel: Panel) -> str:
    """The axis of a panel: of costs, that per message or that per float."""
    return results.axis(panel.x, panel.per)


def shown_costs(results: Results) -> dict[str, tuple[str, float]]:
    """Each cost that a panel shows, axis and R_C by its name in tables; the config's if none
    does."""
    panels = [panel for panel in results.experiment.panels if panel.x == "cost"]
    shown = [(panel_axis(results, panel), panel_ratio(results, panel)) for panel in panels]
    return {cost_name(*one): one for one in shown or [(results.axis("cost"), results.ratio)]}


def cost_name(axis: str, ratio: float) -> str:
    """The name of a cost in tables and on screen.

    >>> cost_name("cost", 100.0), cost_name("float-cost", 20.0)
    ('cost R=100', 'float cost R=20')
    """
    return f"{axis.replace('-', ' ')} R={ratio:g}"


def column_name(name: str) -> str:
    """The name of an amount in the header of a CSV file.

    >>> column_name("float cost R=20")
    'float_cost_R20'
    """
    return name.replace(" R=", "_R").replace(" ", "_")


def targets(results: Results) -> list[float]:
    """The gaps to which things are counted."""
    return [results.experiment.target, *results.experiment.further_targets]


def amounts(results: Results) -> dict[str, tuple[str, float]]:
    """What is counted, by its name in tables: the axis and the ratio."""
    experiment = results.experiment
    counted = {"iterations": True, "messages": experiment.messages, "floats": experiment.floats}
    return {name: (name, 1.0) for name, wanted in counted.items() if wanted} | shown_costs(results)


def panel_name(results: Results, panel: Panel) -> str:
    """A name for the CSV: iterations, cost R=100, ratio."""
    if panel.x == "ratio":
        return "ratio" if panel_priced(results, panel) == "cost" else "ratio, float cost"
    axis = panel_axis(results, panel)
    if panel.x == "cost":
        return cost_name(axis, panel_ratio(results, panel))
    return axis


def panel_priced(results: Results, panel: Panel) -> str:
    """The axis of the costs that a panel against R_C shows."""
    return results.axis("cost", panel.per)


def panel_line(results: Results, panel: Panel, curve: CurveResult) -> Line:
    """What is drawn for a curve in a panel. Against the ratio it is the cost; without points if
    never reached."""
    if panel.x != "ratio":
        return curve.line(panel_axis(results, panel), panel_ratio(results, panel), POINTS)
    target, axis = results.experiment.target, panel_priced(results, panel)
    points = []
    for ratio in sorted(results.experiment.ratios):
        cost = curve.reach(target, axis, ratio)
        if cost:
            points.append((ratio, cost.mean, cost.least, cost.most))

    # also without points an array of four columns
    return Line(*np.array(points, dtype=float).reshape(-1, 4).T)


def lines_csv(results: Results) -> str:
    """Every point of every line, to six digits."""
    return as_csv(
        list(_points(results)), ("case", "curve", "label", "panel", "x", "value", "low", "high")
    )


def _points(results: Results) -> Iterator[dict[str, Any]]:
    panels = {panel_name(results, panel): panel for panel in results.experiment.panels}
    for entry in entries(results):
        for name, panel in panels.items():
            line = panel_line(results, panel, entry.result)
            for point in zip(line.x, line.value, line.low, line.high, strict=True):
                x, value, low, high = (f"{one:.6g}" for one in point)
                yield {
                    "case": entry.case,
                    "curve": entry.curve,
                    "label": entry.result.label,
                    "panel": name,
                    "x": x,
                    "value": value,
                    "low": low,
                    "high": high,
                }


def grid(curve: CurveResult) -> str:
    """The step sizes that were tried and what each led to; empty if none were."""
    tried = sorted((curve.tuned or {}).items())
    return "; ".join(f"{scientific(step)}: {outcome}" for step, outcome in tried)


def spread_columns(name: str, spread: Spread | None) -> dict[str, Any]:
    """Mean, least and most, in three columns; empty where nothing got there."""
    values: tuple[Any, Any, Any] = ("", "", "")
    if spread:
        values = (spread.mean, spread.least, spread.most)

    names = (f"{name}_mean", f"{name}_least", f"{name}_most")
    return dict(zip(names, values, strict=True))


def mean_cost(spread: Spread | None) -> str:
    """The mean of iterations or cost, as text."""
    if spread is None:
        return "-"
    if spread.mean >= 100:
        return f"{spread.mean:,.0f}"
    return f"{spread.mean:.3g}"


def some_seeds(spread: Spread | None) -> str:
    """How many seeds got there, if not all did."""
    if spread is None or spread.everywhere:
        return ""
    return f" ({spread.reached} of {spread.seeds})"


def as_csv(rows: Sequence[dict[str, Any]], columns: Sequence[str]) -> str:
    """The rows as the text of a file."""
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
