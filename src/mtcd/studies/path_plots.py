"""The picture of a regularisation path: coefficients and metric against the penalty."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mtcd.plots.scripts import any_script
from mtcd.plots.styles import COLOURS, DASHES, curve_style, plain
from mtcd.studies.path import RegularisationPath

# columns with a name in the legend: those with the largest coefficients; the others are grey
NAMED = 8
SHORT = 24  # letters of a name


@any_script()
def plot_path(path: RegularisationPath, file: Path) -> None:
    """Coefficients on the left; on the right the metric of training and test samples, if there is a
    test set."""
    figure = Figure(figsize=(7.5, 4.2), layout="constrained")
    if path.metric is None:
        _coefficients(figure.subplots(), path)
    else:
        figure.set_size_inches(12, 4.2)
        left, right = figure.subplots(1, 2)
        _coefficients(left, path)
        _metric(right, path)

    scale = "log"
    if not (path.values > 0).all():
        scale = "symlog"  # with a place for no penalty at all
    for one in figure.axes:
        one.set_xscale(scale)
        one.invert_xaxis()  # from strong to weak, as it was trained
        one.set_xlabel(f"{path.over} (strong to weak)")
        one.grid(alpha=0.25)
    figure.savefig(file, dpi=150)


def _coefficients(axes: Axes, path: RegularisationPath) -> None:
    values, what = path.coefficients, "coefficient"
    if values.ndim == 3:
        # one line for each column, whatever the classes are
        values, what = np.linalg.norm(values, axis=2), "norm over classes"

    largest = np.argsort(-np.abs(values).max(axis=0), kind="stable")[:NAMED].tolist()
    for j in range(values.shape[1]):
        if j not in largest:
            axes.plot(path.values, values[:, j], color="#BBBBBB", linewidth=0.8, zorder=1)
    for place, j in enumerate(largest):
        label = _short(path.column_names[j])
        axes.plot(path.values, values[:, j], label=label, linewidth=1.6, **curve_style(place))

    title = None
    if values.shape[1] > NAMED:
        title = f"largest\n({values.shape[1] - NAMED} others grey)"

    axes.set_ylabel(what)
    axes.legend(
        frameon=False,
        fontsize=8,
        title=title,
        title_fontsize=8,
        loc="center left",
        bbox_to_anchor=(1.0, 0.5),
    )


def _metric(axes: Axes, path: RegularisationPath) -> None:
    name = str(path.metric).removeprefix("test_")
    for part, colour, dash in (("test", COLOURS[1], "-"), ("train", COLOURS[0], DASHES[1])):
        found = [one.get(f"{part}_{name}", np.nan) for one in path.metrics]
        axes.plot(
            path.values, found, color=colour, linestyle=dash, marker="o", markersize=3.5, label=part
        )
    axes.axvline(
        path.best_value,
        color="#555555",
        linewidth=0.9,
        linestyle=":",
        label=f"best: {path.best_value:.3g}",
    )
    axes.set_ylabel(name.replace("_", " "))
    axes.legend(frameon=False, fontsize=9)


def _short(name: str) -> str:
    if len(name) > SHORT:
        name = f"{name[: SHORT - 1]}…"
    return plain(name)
