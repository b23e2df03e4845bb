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
from mtcd.plots.paper import Paper
from mtcd.plots.styles import COLOURS
from mtcd.protocol.ledger.costs import Costs
from mtcd.reporting.metric_panel import plot_metrics, x_label
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
