"""The pictures of docs/beijing-air.md, drawn from the CSV files that the measurements left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.dates import DateFormatter
from matplotlib.figure import Figure
from training import LINKS

import mtcd
from mtcd.network.clusters import find_clusters
from mtcd.plots.styles import COLOURS, MARKERS
from mtcd_experiments.datasets.air_forecast import distances
from mtcd_experiments.datasets.beijing_air import POSITIONS

MODELS = {
    "persistence": "as now (persistence)",
    "alone": "from its own past alone",
    "together": "from all 12 stations",
}
LOOKS = dict(zip(MODELS, (("#999999", "x"), ("#E69F00", "s"), ("#0072B2", "o")), strict=True))
# where names stand beside their stations, in points: the side, and how far right and up
LABELS_AT = {
    "Dingling": ("center", 4, 10),
    "Dongsi": ("left", 9, -13),
    "Guanyuan": ("right", -6, 8),
    "Gucheng": ("center", 0, -17),
    "Nongzhanguan": ("left", 9, -4),
    "Tiantan": ("left", 8, -9),
    "Wanliu": ("right", -9, 3),
    "Wanshouxigong": ("right", -8, -9),
}


def draw(folder: Path, target: str, hours: int) -> None:
    """All pictures, from the tables in the folder, into it."""
    accuracy, curves, days = (
        pl.read_csv(folder / f"beijing-air-{name}.csv") for name in ("accuracy", "curves", "days")
    )
    figures = {
        "map": map_of_stations(target),
        "stations": accuracy_by_station(accuracy),
        "curves": error_by_bytes(curves, accuracy, target, hours),
        "days": some_days(days, target, hours),
    }
    for name, figure in figures.items():
        figure.savefig(folder / f"beijing-air-{name}.png", dpi=130)


def map_of_stations(target: str) -> Figure:
    """The network where the stations are, with the length of its links."""
    figure = Figure(figsize=(7, 6.4), layout="constrained")
    axes = figure.subplots()
    names = list(POSITIONS)
    between = distances(np.array(list(POSITIONS.values())))
    for link in pl.read_csv(LINKS).iter_rows(named=True):
        (x1, y1), (x2, y2) = POSITIONS[link["source"]], POSITIONS[link["target"]]
        axes.plot([x1, x2], [y1, y2], color="#9FB6CD", linewidth=1.8, zorder=1)
        length = between[names.index(link["source"]), names.index(link["target"])]
        if length > 20:
            box = {"facecolor": "white", "edgecolor": "none", "pad": 1}
            middle = ((x1 + x2) / 2, (y1 + y2) / 2)
            axes.annotate(
                f"{length:.0f} km",
                middle,
                ha="center",
                va="center",
                fontsize=8,
                color="#5B7083",
                bbox=box,
            )
    network = mtcd.read_network(LINKS, names)
    for colour, cluster in zip(
        ("#0072B2", "#009E73", "#CC79A7", "#E69F00"), find_clusters(network), strict=False
    ):
        for name in (names[k] for k in cluster):
            side, right, up = LABELS_AT.get(name, ("left", 8, 5))
            style: dict[str, Any] = {
                "ha": side,
                "fontsize": 9.5,
                "weight": "bold" if name == target else "normal",
            }
            axes.annotate(name, POSITIONS[name], (right, up), textcoords="offset points", **style)
            axes.scatter(*POSITIONS[name], s=60, color=colour, zorder=2)
    axes.scatter(
        *POSITIONS[target], s=190, facecolors="none", edgecolors="#D55E00", linewidths=2, zorder=3
    )
    axes.set_aspect(1 / np.cos(np.radians(40.05)))
    axes.set_xlim(116.13, 116.79)
    axes.set(
        xlabel="degrees east",
        ylabel="degrees north",
        title=f"12 stations and 18 links; predicted is {target}; a colour is a cluster",
    )
    _tidy(axes)
    return figure


def accuracy_by_station(rows: pl.DataFrame) -> Figure:
    """A panel for each horizon: the error of the three ways to predict, station by station."""
    horizons = rows["hours"].unique().sort().to_list()
    figure = Figure(figsize=(max(7.0, 2.2 + 2.3 * len(horizons)), 4.6), layout="constrained")
    panels = figure.subplots(1, len(horizons), sharey=True, squeeze=False)[0]
    order = (
        rows.filter(pl.col("model") == "alone", pl.col("hours") == horizons[0])
        .sort("rmse")["target"]
        .to_list()
    )
    for axes, hours in zip(panels, horizons, strict=True):
        for model, (colour, marker) in LOOKS.items():
            shown = rows.filter(pl.col("hours") == hours, pl.col("model") == model)
            error = dict(shown.select("target", "rmse").iter_rows())
            places = [error[name] for name in order]
            axes.scatter(
                places,
                range(len(order)),
                color=colour,
                marker=marker,
                s=34,
                label=MODELS[model],
                zorder=2,
            )
        axes.set_title(f"{hours} hour{'s' if hours > 1 else ''} ahead", fontsize=10)
        axes.margins(x=0.12)
        _tidy(axes)
    panels[0].set_yticks(range(len(order)), order)
    figure.supxlabel("RMSE on the test year, µg/m³ of PM2.5", fontsize=10)
    figure.legend(
        *panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False
    )
    return figure


def error_by_bytes(curves: pl.DataFrame, accuracy: pl.DataFrame, target: str, hours: int) -> Figure:
    """How the error and the gap fall with what all parties have sent."""
    figure = Figure(figsize=(10.5, 4.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    for k, name in enumerate(curves["method"].unique(maintain_order=True)):
        run = curves.filter(pl.col("method") == name, pl.col("megabytes") > 0)
        look: dict[str, Any] = {
            "color": COLOURS[k],
            "marker": MARKERS[k],
            "markersize": 3.5,
            "linewidth": 1.6,
        }
        measured = run.filter(pl.col("rmse").is_not_null())
        left.plot(measured["megabytes"], measured["rmse"], label=name, **look)
        right.plot(run["megabytes"], run["gap"], **{**look, "marker": ""})
    here = accuracy.filter(pl.col("target") == target, pl.col("hours") == hours)
    level = dict(here.select("model", "rmse").iter_rows())
    for model, said in (
        ("persistence", "as now"),
        ("alone", f"{target} alone"),
        ("together", "central training"),
    ):
        left.axhline(level[model], color="#666666", linewidth=0.9, linestyle=(0, (4, 2)), zorder=0)
        place: dict[str, Any] = {
            "xy": (0.58, level[model]),
            "xycoords": ("axes fraction", "data"),
            "ha": "center",
        }
        up = -11 if model == "together" else 3
        left.annotate(
            f"{said}: {level[model]:.1f}",
            xytext=(0, up),
            textcoords="offset points",
            fontsize=8,
            **place,
        )
    left.set(
        ylabel="RMSE on the test year, µg/m³",
        ylim=(0.94 * level["together"], 1.25 * level["persistence"]),
    )
    right.set(ylabel="relative gap of the objective", yscale="log", ylim=(5e-4, 10))
    for axes in (left, right):
        axes.set(xscale="log", xlabel="sent by all parties, MB")
        _tidy(axes)
    figure.legend(
        *left.get_legend_handles_labels(),
        loc="outside upper center",
        ncols=3,
        frameon=False,
        fontsize=9,
    )
    return figure


def some_days(days: pl.DataFrame, target: str, hours: int) -> Figure:
    """What was measured, and what the federation had predicted."""
    figure = Figure(figsize=(10.5, 3.4), layout="constrained")
    axes = figure.subplots()
    times = days["time"].str.to_datetime("%Y-%m-%dT%H:%M").to_numpy()
    axes.fill_between(times, days["measured"], color="#D9D9D9", label="measured")
    axes.plot(times, days["alone"], color="#E69F00", linewidth=1.3, label=MODELS["alone"])
    axes.plot(times, days["together"], color="#0072B2", linewidth=1.6, label=MODELS["together"])
    axes.set(
        ylabel="PM2.5, µg/m³", title=f"{target}, {hours} hours ahead, predicted in the test year"
    )
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False, ncols=3, fontsize=9)
    axes.xaxis.set_major_formatter(DateFormatter("%-d %b %Y"))
    axes.margins(x=0.01)
    _tidy(axes)
    return figure


def _tidy(axes: Axes) -> None:
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_axisbelow(True)
