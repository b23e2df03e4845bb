"""Pictures of runs. Matplotlib is used without its global state."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from mtcd.core.errors import MtcdError
from mtcd.models.metrics import METRICS
from mtcd.plots.paper import Paper
from mtcd.plots.styles import COLOURS, plain
from mtcd.protocol.ledger.costs import Costs
from mtcd.training.history import History
from mtcd.training.run import Run

NAMES = {
    "gap": "relative gap (f - f*) / f*",
    "test_accuracy": "test accuracy",
    "accuracy": "accuracy (training samples)",
    "objective": "objective f",
}
SHARES = ("test_accuracy", "accuracy")
SCREEN_SIZES = {2: (9.5, 3.8), 3: (15.0, 3.8)}
"""Inches, by the number of panels."""


def plot_run(run: Run, file: str | Path | None = None) -> Figure:
    """The picture of the run, as a figure of Matplotlib: gap or objective against iterations and
    cost, and metrics.

    With a ``file`` (PNG, PDF, SVG) it is written there too.
    """
    figure = draw_runs({run.method: run})
    if file is not None:
        try:
            figure.savefig(Path(file), dpi=150)
        except (OSError, ValueError) as error:
            raise MtcdError(f"The picture cannot be written to {file}: {error}") from None
    return figure


def plot_runs(
    runs: Mapping[str, Run], path: Path, title: str = "", paper: Paper | None = None
) -> None:
    """The gap (or the accuracy, or the objective) of each run against iterations and communication
    cost.

    For a paper there is no title, and no legend of a single run.
    """
    if paper is None:
        draw_runs(runs, title).savefig(path, dpi=150)
        return
    metadata = None
    if path.suffix == ".pdf":
        metadata = {"CreationDate": None}  # the same runs give the same file
    with paper.fonts():
        figure = draw_runs(runs, "", paper)
        paper.shrink(figure)
        figure.savefig(path, dpi=300, metadata=metadata)


def draw_runs(runs: Mapping[str, Run], title: str = "", paper: Paper | None = None) -> Figure:
    """The figure of ``plot_runs``."""
    # all runs of a picture have the same costs
    first = next(iter(runs.values()))
    panels = 2
    if len(runs) == 1 and first.history.metrics:
        panels = 3
    figure, stacked = _empty_figure(panels, paper)
    left, right, *third = figure.axes

    shown = _shown(runs)

    far = "iteration"
    if shown in SHARES and all(run.final.epoch is not None for run in runs.values()):
        far = "epoch"
    for (label, run), colour in zip(runs.items(), COLOURS * len(runs), strict=False):
        style: dict[str, Any] = {"label": label, "color": colour, "linewidth": 1.8}
        _curve(left, run.history, far, shown, style)
        _curve(right, run.history, "cost", shown, style)

    left.set_xlabel(x_label(far))
    right.set_xlabel(_cost_label(first.costs))
    left.set_ylabel(NAMES[shown])
    if stacked:  # side by side, the panels share their axis
        right.set_ylabel(NAMES[shown])
    for axes in (left, right):
        _scale(axes, shown)

    if paper is None:
        right.legend(frameon=False, fontsize=9)
    elif len(runs) > 1:
        right.legend(frameon=False)
    for axes in third:
        plot_metrics(axes, first.history, far, roomy=paper is None)
    if paper is not None:
        for axes in figure.axes:  # what is in brackets stands below
            axes.set_xlabel(axes.get_xlabel().replace(" (", "\n("))
    if title:
        figure.suptitle(title, fontsize=11)
    return figure


def _empty_figure(panels: int, paper: Paper | None) -> tuple[Figure, bool]:
    """A figure with so many panels, and whether they are stacked, as in a column of a paper."""

    figure = Figure(figsize=SCREEN_SIZES[panels], layout="constrained")
    stacked = False
    if paper is not None:
        stacked = paper.stacked(panels)
        height = paper.width * 1.05 / panels
        if stacked:
            height = paper.width * 0.65 * panels
        figure.set_size_inches(paper.width, height)

    if stacked:
        left, right, *_ = figure.subplots(panels, 1)
    else:
        left, right, *_ = figure.subplots(1, panels)
    right.sharey(left)
    right.tick_params(which="both", labelleft=stacked)
    return figure, stacked


def _cost_label(costs: Costs) -> str:
    equal = f"{costs.ratio:g} of a hop"
    if costs.per == "message":
        equal = f"{costs.ratio:g} hops"
    return f"communication cost (client-server {costs.per} = {equal})"


def _scale(axes: Axes, shown: str) -> None:
    if shown in SHARES:
        axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    else:
        axes.set_yscale("log")
        axes.set_xscale("symlog", linthresh=1.0)  # with a place for 0, the start
    axes.set_xlim(left=0)
    axes.grid(alpha=0.25)


def _shown(runs: Mapping[str, Run]) -> str:
    """The quantity by which all runs can be compared. Split networks have an accuracy in every
    row."""
    finals = [run.final for run in runs.values()]
    # runs of networks and of linear models have only the objective in common
    of_networks = all(last.accuracy is not None for last in finals)
    names = [name for name in NAMES if name not in SHARES or of_networks]
    return next(name for name in names if all(getattr(last, name) is not None for last in finals))


def _curve(axes: Axes, history: History, x: str, shown: str, style: dict[str, Any]) -> None:
    values = history[shown]
    if shown not in SHARES:
        values = np.where(values > 0, values, np.nan)  # a gap of rounding size can be below 0
    axes.plot(history[x], values, **style)


LOWEST = -0.05  # an R2 at the start of a training may be far below


def plot_metrics(axes: Axes, history: History, far: str, roomy: bool = True) -> None:
    """Metrics of which more is better on the left axis, errors on the right; solid on the test set,
    dashed in training.

    ``far`` is the column to draw them against: iteration or epoch. The legend is beside the panel
    where that is ``roomy``, else inside, or above where two axes leave it no place that is certain
    to be free.
    """
    names = list(dict.fromkeys(name.partition("_")[2] for name in history.metrics))
    better = [name for name in names if name in METRICS and METRICS[name].higher_is_better]
    errors = [name for name in names if name not in better]

    # two scales only where both kinds are there
    other = axes
    if better and errors:
        other = axes.twinx()
    axis = dict.fromkeys(better, axes) | dict.fromkeys(errors, other)

    for number, name in enumerate(names):
        for part, dash in (("train", "--"), ("test", "-")):
            column = f"{part}_{name}"
            if column in history.metrics:
                colour = COLOURS[number % len(COLOURS)]
                _draw(axis[name], history, column, far, dash=dash, colour=colour)

    axes.set_xlabel(x_label(far))
    axes.set_ylabel("errors")
    if better:
        axes.set_ylabel("metrics")
        # the way up from far below would flatten all the rest
        axes.set_ylim(bottom=max(axes.get_ylim()[0], LOWEST))
    if other is not axes:
        shown = ", ".join(plain(name.replace("_", " ")) for name in errors)
        other.set_ylabel(f"errors ({shown})")
    if far != "epoch":
        axes.set_xscale("symlog", linthresh=1.0)
    axes.set_xlim(left=0)
    axes.grid(alpha=0.25)
    _add_legend(axes, other, roomy)


def x_label(far: str) -> str:
    """The title of the axis of iterations or epochs."""
    if far == "epoch":
        return "epochs"
    return "iterations (hops per token)"


def _draw(axes: Axes, history: History, column: str, far: str, dash: str, colour: str) -> None:
    values = history[column]
    there = np.isfinite(values)  # a metric is not in every measurement
    label = plain(column.replace("_", " "))
    axes.plot(history[far][there], values[there], dash, color=colour, label=label)


def _add_legend(axes: Axes, other: Axes, roomy: bool) -> None:
    """One legend for both axes, on the one that is drawn last: no curve lies over it."""
    handles, labels = axes.get_legend_handles_labels()
    place: dict[str, Any] = {"loc": "best"}
    if other is not axes:
        more_handles, more_labels = other.get_legend_handles_labels()
        handles, labels = handles + more_handles, labels + more_labels
        place = {
            "loc": "lower center",
            "bbox_to_anchor": (0.5, 1.0),
            "ncols": 2,
            "columnspacing": 1.0,
        }

    if roomy:
        beside = 1.02
        if other is not axes:
            beside = 1.22  # beyond the numbers of the second axis
        place = {"loc": "center left", "bbox_to_anchor": (beside, 0.5)}
    other.legend(handles, labels, frameon=False, fontsize=8, **place)
