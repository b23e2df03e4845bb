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
