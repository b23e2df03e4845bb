"""Pictures of runs. Matplotlib is imported here and nowhere else, without its global state."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mtcd.history import History
from mtcd.report.styles import COLOURS
from mtcd.run import Run


def plot_runs(runs: Mapping[str, Run], path: Path, title: str = "") -> None:
    """The gap (or the objective) of each run against iterations and against communication cost."""
    figure = Figure(figsize=(9.5, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    relative = all(run.gap is not None for run in runs.values())
    for (label, run), colour in zip(runs.items(), COLOURS * len(runs), strict=False):
        style: dict[str, Any] = {"label": label, "color": colour, "linewidth": 1.8}
        _curve(left, run.history, "iteration", relative, style)
        _curve(right, run.history, "cost", relative, style)
    ratio = next(iter(runs.values())).costs.ratio
    left.set_xlabel("iterations (hops per token)")
    right.set_xlabel(f"communication cost (client-server message = {ratio:g} hops)")
    left.set_ylabel("relative gap (f - f*) / f*" if relative else "objective f")
    for axes in (left, right):
        axes.set_yscale("log")
        axes.set_xscale("symlog", linthresh=1.0)
        axes.set_xlim(left=0)
        axes.grid(alpha=0.25)
    right.legend(frameon=False, fontsize=9)
    if title:
        figure.suptitle(title, fontsize=11)
    figure.savefig(path, dpi=150)


def _curve(axes: Axes, history: History, x: str, relative: bool, style: dict[str, Any]) -> None:
    values = history["gap" if relative else "objective"]
    shown = np.where(values > 0, values, np.nan)  # a gap of rounding size can be below 0
    axes.plot(history[x], shown, **style)
