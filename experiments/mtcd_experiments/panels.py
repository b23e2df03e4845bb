"""One panel of a figure: the gap or the accuracy along an axis, or the cost to the target against
R_C."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import EngFormatter, MaxNLocator, PercentFormatter

from mtcd.plots.styles import Style, plain
from mtcd_experiments.numbers import (
    entries,
    panel_axis,
    panel_line,
    panel_ratio,
    panel_scale,
    value_scale,
)
from mtcd_experiments.results import CurveResult, Line, Results
from mtcd_experiments.schema import Panel

X_LABELS = {
    "ratio": "cost ratio $R_C$ (server : client)",
    "iterations": "iterations (hops per token)",
    "messages": "messages between clients",
    "floats": "numbers sent",
    "epochs": "epochs",
    "bytes": "communication in bytes",
}
"""The labels of axes; that of costs depends on the prices."""
MOVED = 0.15  # a log axis starts where the first curve has moved this much from its first value
TALLEST = 10.0  # a diverging curve may rise to this many times the largest first gap


@dataclass(frozen=True)
class Limits:
    """The part of the plane that a panel shows."""

    left: float
    right: float
    bottom: float
    top: float


def value_range(results: Results) -> tuple[float, float]:
    """The axis of gaps or accuracies that all panels share."""
    if results.experiment.measure == "accuracy":
        return _accuracy_range(results)
    return _gap_range(results)


def _gap_range(results: Results) -> tuple[float, float]:
    experiment = results.experiment
    bottom = experiment.lowest_gap or experiment.target / 3
    trained = [one.columns["gap"] for entry in entries(results) for one in entry.result.trained]
    first = max((float(gaps[0]) for gaps in trained), default=1.0)
    largest = max((float(gaps.max()) for gaps in trained), default=1.0)
    return bottom, max(2 * min(largest, TALLEST * first), 10 * bottom)


def _accuracy_range(results: Results) -> tuple[float, float]:
    """From the least to the most accurate, with the target, and a little room. What guessing gives,
    before any training, would squeeze all the rest.
    """
    shown: list[Any] = []
    for entry in entries(results):
        for one in entry.result.trained:
            values = one.columns["test_accuracy"]
            shown.append(values[min(1, len(values) - 1) :])  # without the first, if there are more
    if results.experiment.target_accuracy:
        shown.append([results.experiment.target_accuracy])

    values = np.concatenate(shown)
    room = max(0.04 * float(np.ptp(values)), 0.005)
    return float(values.min()) - room, float(values.max()) + room


def alike(results: Results) -> bool:
    """Whether all cases show the same curves: they then share a legend and the limits of their
    axes."""
    return len({tuple(results.experiment.shown(case)) for case in results.case_names()}) == 1


def panel_limits(results: Results, panel: Panel, case: str) -> Limits:
    """What a panel shows: the same in all cases where these can be compared, curve by curve."""
    shown = entries(results, case)
    if alike(results):
        shown = entries(results)
    lines = [panel_line(results, panel, entry.result) for entry in shown]
    if panel.x == "ratio":
        ratios = results.experiment.ratios
        costs = np.concatenate([[], *(line.low for line in lines), *(line.high for line in lines)])
        low, high = 1.0, 10.0  # of a panel without any curve
        if len(costs):
            low, high = costs.min(), costs.max()
        return Limits(min(ratios) / 1.2, max(ratios) * 1.2, low / 2, high * 2)

    bottom, top = value_range(results)
    right = max((_last_seen(line, bottom) for line in lines), default=1.0) or 1.0
    if panel_scale(results, panel) == "linear":
        return Limits(0, right * 1.03, bottom, top)

    places = np.zeros(0)
    axis, ratio = panel_axis(results, panel), panel_ratio(results, panel)
    for entry in shown:
        for one in entry.result.trained:
            places = np.append(places, one.along(axis, ratio))
    measured = places[places > 0].min(initial=right)
    left = min((x for line in lines if (x := _first_move(line)) > 0), default=right / 100)
    # a decade at least
    return Limits(min(max(left, measured) / 1.3, right / 10), right * 1.15, bottom, top)


def _first_move(line: Line) -> float:
    """Where a line first leaves its first value; its end if it does not."""
    with np.errstate(divide="ignore", invalid="ignore"):  # an accuracy may be 0
        moved = np.flatnonzero(np.abs(np.log(line.value / line.value[0])) > MOVED)
    if not len(moved):
        return float(line.x[-1])
    return float(line.x[moved[0]])


def _last_seen(line: Line, bottom: float) -> float:
    """Where a line leaves the panel at the bottom; its end if it does not."""
    below = np.flatnonzero(line.value < bottom)
    if not len(below) or below[0] == 0:  # an accuracy comes in there
        return float(line.x[-1])
    return float(line.x[below[0]])


def draw_panel(
    axes: Axes, results: Results, panel: Panel, case: str, styles: Mapping[tuple[str, str], Style]
) -> None:
    """All curves of a case in one panel, with its axes."""
    limits = panel_limits(results, panel, case)
    shown = entries(results, case)
    axes.set_xscale(panel_scale(results, panel))
    axes.set_yscale(value_scale(results))
    axes.set_xlim(limits.left, limits.right)
    axes.set_ylim(limits.bottom, limits.top)
    axes.set_xlabel(x_label(results, panel))
    axes.grid(alpha=0.25, linewidth=0.6)
    for place, entry in enumerate(shown):
        line = panel_line(results, panel, entry.result)
        style = styles[entry.case, entry.curve].line()
        # markers of neighbouring curves are at different places, so that curves on top of each
        # other show both
        every = None
        if panel.x != "ratio":
            every = (0.28 * (place + 0.5) / len(shown), 0.28)
        x = np.maximum(line.x, limits.left)  # a log axis has no 0: it is the left edge
        axes.plot(x, line.value, **style, markevery=every, label=plain(entry.result.label))
        if len(entry.result.trained) > 1:
            axes.fill_between(x, line.low, line.high, color=style["color"], alpha=0.16, linewidth=0)
        if panel.x != "ratio":
            _mark_end(axes, entry.result, line, limits, style["color"])

    target: float | None = results.experiment.target
    if results.experiment.measure == "accuracy":
        target = results.experiment.target_accuracy
    if panel.x != "ratio" and target:
        axes.axhline(target, color="0.35", linestyle=":", linewidth=0.9, zorder=1, label="_target")
    _number_axes(axes, results, panel)


def _number_axes(axes: Axes, results: Results, panel: Panel) -> None:
    """Accuracies in percent, bytes and floats with their prefixes, few enough numbers of many
    digits."""
    if results.experiment.measure == "accuracy":
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        if panel_scale(results, panel) == "linear":
            axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    if panel.x == "bytes":
        axes.xaxis.set_major_formatter(EngFormatter("B"))
    elif (
        panel_axis(results, panel) in ("floats", "float-cost")
        and panel_scale(results, panel) == "linear"
    ):
        axes.xaxis.set_major_formatter(EngFormatter())


def _mark_end(axes: Axes, curve: CurveResult, line: Line, limits: Limits, colour: str) -> None:
    """A cross where a curve diverged, a ring where a limit stopped it; nothing where it came to its
    end."""
    if line.value[-1] < limits.bottom or curve.ending == "done":
        return
    mark, size = "o", 5.5
    if curve.ending == "diverged":
        mark, size = "x", 7.0
    looks: dict[str, Any] = {
        "marker": mark,
        "markersize": size,
        "markerfacecolor": "white",
        "markeredgewidth": 1.6,
    }
    x, gap = max(float(line.x[-1]), limits.left), min(float(line.value[-1]), limits.top)
    axes.plot(x, gap, **looks, color=colour, clip_on=False, zorder=5, label="_end")


def remarks(results: Results, panel: Panel, case: str) -> list[str]:
    """Short notes on curves that are missing in the panel."""
    shown = [entry.result for entry in entries(results, case)]
    if panel.x == "ratio":
        reached = [(curve.label, curve.reach(results.experiment.target)) for curve in shown]
        partly = [(label, spread) for label, spread in reached if spread and not spread.everywhere]
        never = [label for label, spread in reached if spread is None]
        some = [f"{label} ({spread.reached} of {spread.seeds})" for label, spread in partly]
        return _listed("not reached", never) + _listed("reached by some seeds", some)
    if panel != next(one for one in results.experiment.panels if one.x != "ratio"):
        return []  # said once is enough
    return _listed("diverged", [curve.label for curve in shown if curve.ending == "diverged"])


def _listed(what: str, labels: Sequence[str]) -> list[str]:
    if not labels:
        return []
    return textwrap.wrap(plain(f"{what}: {'; '.join(labels)}"), 46)


def draw_title(axes: Axes, panel: Panel, lines: Sequence[str]) -> None:
    """The panel's own title, if it has one, and remarks above it."""
    if panel.title:
        axes.set_title(plain(panel.title), fontsize="medium")
    if not lines:
        return

    text = "\n".join(lines)
    if panel.title:
        text += "\n"  # above the title
    axes.set_title(text, fontsize="small", loc="left", style="italic", color="0.25")


def x_label(results: Results, panel: Panel) -> str:
    """The label of an axis."""
    if panel.x in X_LABELS:
        return X_LABELS[panel.x]

    per = ""
    if panel_axis(results, panel) == "float-cost":
        per = " per float"
    return f"communication cost{per} ($R_C$ = {panel_ratio(results, panel):g})"
