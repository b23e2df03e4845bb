"""The pictures of a sweep (curves of the best settings, and the deciding column over the grid) and of a
regularisation path (coefficients and metric against the penalty)."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mtcd.core.arrays import Array
from mtcd.plots.styles import COLOURS, DASHES, any_script, curve_style, plain
from mtcd.studies.path import RegularisationPath
from mtcd.studies.running import FAILED
from mtcd.studies.sweep import Sweep, higher_is_better

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


SHOWN = 8  # settings with curves
LETTERS = 40  # of a label
MOST_TEXTS = 100  # fields of a map with their numbers in them; of more, they would overlap
TITLES = {"gap": "relative gap (f - f*) / f*", "objective": "objective f"}


@any_script()
def plot_sweep(sweep: Sweep, file: Path) -> None:
    """Curves on the left; on the right the deciding column against one key, or a map of the first
    two."""
    figure = Figure(figsize=(12.5, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    _curves(left, sweep)
    if len(sweep.keys) > 1:
        _map(figure, right, sweep)
    else:
        _against(right, sweep)
    figure.savefig(file, dpi=150)


def _curves(axes: Axes, sweep: Sweep) -> None:
    """One seed of each of the best settings: the gap, or the objective, against the cost."""
    what = sweep.value_column
    for place, group in enumerate(sorted(sweep.groups, key=sweep.rank)[:SHOWN]):
        number = next((one for one in group if sweep.records[one]["curve"]), None)
        if number is None:  # all seeds failed
            continue
        curve = sweep.records[number]["curve"]
        cost, values = (np.array(curve[name], dtype=float) for name in ("cost", what))
        shown = np.where(values > 0, values, np.nan)  # a gap of rounding size can be below 0
        label = _label(sweep, number)
        axes.plot(cost, shown, label=label, linewidth=1.6, **curve_style(place))

    axes.set_xscale("symlog", linthresh=1.0)
    axes.set_yscale("log")
    axes.set_xlabel("communication cost")
    axes.set_ylabel(TITLES[what])
    axes.grid(alpha=0.25)
    if axes.lines:
        axes.legend(frameon=False, fontsize=8, title="best settings, first seed", title_fontsize=8)


def _write_values(axes: Axes, table: Array) -> None:
    for (i, j), value in np.ndenumerate(table):
        text = f"{value:.3g}"
        if math.isnan(value):
            text = "failed"
        axes.text(
            j,
            i,
            text,
            ha="center",
            va="center",
            fontsize=8,
            bbox={"color": "white", "alpha": 0.7, "pad": 1},
        )


def _label(sweep: Sweep, number: int) -> str:
    settings = sweep.points[number].settings
    shown = [f"{key.rpartition('.')[2]}={value}" for key, value in settings.items()]
    text = ", ".join(shown) or "the config"
    if len(text) > LETTERS:
        # long labels would leave no room for the curves
        text = f"{text[: LETTERS - 1]}…"
    return plain(text)


def _value(sweep: Sweep, number: int) -> float:
    row = sweep.records[number]["row"]
    value = row.get(sweep.by)
    if row["status"] in (FAILED, "diverged") or value is None:
        return math.nan
    return float(value)


def _mean(sweep: Sweep, group: list[int]) -> float:
    values = [_value(sweep, number) for number in group]
    known = [value for value in values if not math.isnan(value)]
    if not known:
        return math.nan
    return float(np.mean(known))


def _against(axes: Axes, sweep: Sweep) -> None:
    """Every seed as a dot, and the mean."""
    groups, key = sweep.groups, (sweep.keys or ["the config"])[0]
    for place, group in enumerate(groups):
        values = [_value(sweep, number) for number in group]
        # seeds as they are: a mean of two can hide that one failed
        axes.plot([place] * len(values), values, "o", color=COLOURS[0], alpha=0.4, markersize=4)
    axes.plot(
        range(len(groups)),
        [_mean(sweep, group) for group in groups],
        color=COLOURS[1],
        marker="s",
        label="mean",
    )
    shown = [str(next(iter(sweep.points[group[0]].settings.values()), "")) for group in groups]

    axes.set_xticks(range(len(groups)), [plain(text) for text in shown])
    axes.set_xlabel(key)
    axes.set_ylabel(sweep.by.replace("_", " "))
    axes.grid(alpha=0.25)
    axes.legend(frameon=False, fontsize=9)


def _map(figure: Figure, axes: Axes, sweep: Sweep) -> None:
    """The mean over the seeds, for the first two keys; of further keys, the best value counts."""
    across, down = sweep.keys[1], sweep.keys[0]
    names = {}
    for key in (across, down):
        names[key] = list(dict.fromkeys(str(point.settings[key]) for point in sweep.points))

    best: np.ufunc = np.fmin
    bright_is_good = "viridis_r"
    if higher_is_better(sweep.by):
        best, bright_is_good = np.fmax, "viridis"

    table = np.full((len(names[down]), len(names[across])), np.nan)
    for group in sweep.groups:
        settings = sweep.points[group[0]].settings
        place = names[down].index(str(settings[down])), names[across].index(str(settings[across]))
        table[place] = best(table[place], _mean(sweep, group))  # of NaN and a number, the number

    shown = axes.imshow(table, cmap=bright_is_good, aspect="auto")
    if table.size <= MOST_TEXTS:
        _write_values(axes, table)
    axes.set_xticks(range(len(names[across])), [plain(text) for text in names[across]])
    axes.set_yticks(range(len(names[down])), [plain(text) for text in names[down]])
    axes.set_xlabel(across)
    axes.set_ylabel(down)
    figure.colorbar(shown, ax=axes, label=f"mean {sweep.by.replace('_', ' ')} over the seeds")
