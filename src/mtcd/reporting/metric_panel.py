"""The panel of metrics in the picture of a run."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from mtcd.models.metrics import METRICS
from mtcd.plots.styles import COLOURS, plain
from mtcd.training.history import History

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
    other = axes.twinx() if better and errors else axes
    for number, name in enumerate(names):
        for part, dash in (("train", "--"), ("test", "-")):
            column = f"{part}_{name}"
            if column in history.metrics:
                on = axes if name in better else other
                values = history[column]
                there = np.isfinite(values)
                label = plain(column.replace("_", " "))
                on.plot(
                    history[far][there],
                    values[there],
                    dash,
                    color=COLOURS[number % len(COLOURS)],
                    label=label,
                )
    axes.set_xlabel("epochs" if far == "epoch" else "iterations (hops per token)")
    axes.set_ylabel("metrics" if better else "errors")
    if better:
        axes.set_ylim(bottom=max(axes.get_ylim()[0], LOWEST))
    if other is not axes:
        other.set_ylabel(f"errors ({', '.join(plain(name.replace('_', ' ')) for name in errors)})")
    if far != "epoch":
        axes.set_xscale("symlog", linthresh=1.0)
    axes.set_xlim(left=0)
    axes.grid(alpha=0.25)
    drawn = [
        one
        for on in dict.fromkeys((axes, other))
        for one in zip(*on.get_legend_handles_labels(), strict=True)
    ]
    place: dict[str, Any] = {
        "loc": "center left",
        "bbox_to_anchor": (1.02 if other is axes else 1.22, 0.5),
    }
    if not roomy:
        above = {
            "loc": "lower center",
            "bbox_to_anchor": (0.5, 1.0),
            "ncols": 2,
            "columnspacing": 1.0,
        }
        place = {"loc": "best"} if other is axes else above
    other.legend(*zip(*drawn, strict=True), frameon=False, fontsize=8, **place)
