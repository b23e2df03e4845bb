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
from mtcd.reporting.metric_panel import plot_metrics
from mtcd.training.history import History
from mtcd.training.run import Run

NAMES = {
    "gap": "relative gap (f - f*) / f*",
    "test_accuracy": "test accuracy",
    "accuracy": "accuracy (training samples)",
    "objective": "objective f",
}
SHARES = ("test_accuracy", "accuracy")


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
    with paper.fonts():
        figure = draw_runs(runs, "", paper)
        paper.shrink(figure)
        figure.savefig(
            path, dpi=300, metadata={"CreationDate": None} if path.suffix == ".pdf" else None
        )


def draw_runs(runs: Mapping[str, Run], title: str = "", paper: Paper | None = None) -> Figure:
    """The figure of ``plot_runs``."""
    measured = next(iter(runs.values())).history if len(runs) == 1 else None
    wide = measured is not None and bool(measured.metrics)
    panels = 3 if wide else 2
    stacked = paper is not None and paper.stacked(panels)
    figure = Figure(figsize=(15 if wide else 9.5, 3.8), layout="constrained")
    if paper is not None:
        figure.set_size_inches(
            paper.width, paper.width * (0.65 * panels if stacked else 1.05 / panels)
        )
    left, right, *third = figure.subplots(*((panels, 1) if stacked else (1, panels)))
    right.sharey(left)
    right.tick_params(which="both", labelleft=stacked)
    shown = _shown(runs)
    if all(run.final.epoch is not None for run in runs.values()) and shown in SHARES:
        far = "epoch"
    else:
        far = "iteration"
    for (label, run), colour in zip(runs.items(), COLOURS * len(runs), strict=False):
        style: dict[str, Any] = {"label": label, "color": colour, "linewidth": 1.8}
        _curve(left, run.history, far, shown, style)
        _curve(right, run.history, "cost", shown, style)
    costs = next(iter(runs.values())).costs
    left.set_xlabel("epochs" if far == "epoch" else "iterations (hops per token)")
    equal = f"{costs.ratio:g} hops" if costs.per == "message" else f"{costs.ratio:g} of a hop"
    right.set_xlabel(f"communication cost (client-server {costs.per} = {equal})")
    for axes in (left, right) if stacked else (left,):
        axes.set_ylabel(NAMES[shown])
    for axes in (left, right):
        if shown in SHARES:
            axes.yaxis.set_major_formatter(PercentFormatter(1.0))
        else:
            axes.set_yscale("log")
            axes.set_xscale("symlog", linthresh=1.0)
        axes.set_xlim(left=0)
        axes.grid(alpha=0.25)
    if paper is None or len(runs) > 1:
        right.legend(frameon=False, fontsize=9 if paper is None else None)
    if measured is not None and third:
        plot_metrics(third[0], measured, far, roomy=paper is None)
    if paper is not None:
        for axes in figure.axes:  # what is in brackets stands below
            axes.set_xlabel(axes.get_xlabel().replace(" (", "\n("))
    if title:
        figure.suptitle(title, fontsize=11)
    return figure


def _shown(runs: Mapping[str, Run]) -> str:
    """The quantity by which all runs can be compared. Split networks have an accuracy in every
    row."""
    finals = [run.final for run in runs.values()]
    of_networks = all(last.accuracy is not None for last in finals)
    names = [name for name in NAMES if name not in SHARES or of_networks]
    return next(name for name in names if all(getattr(last, name) is not None for last in finals))


def _curve(axes: Axes, history: History, x: str, shown: str, style: dict[str, Any]) -> None:
    values = history[shown]
    if shown not in SHARES:
        values = np.where(values > 0, values, np.nan)  # a gap of rounding size can be below 0
    axes.plot(history[x], values, **style)
