"""A dot plot: the amount that each curve needed to reach the target, a row per case, on a
logarithmic axis."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mtcd.plots.paper import Paper
from mtcd.plots.styles import COLOURS, plain
from mtcd_experiments.numbers import entries, panel_axis, panel_ratio
from mtcd_experiments.panels import x_label
from mtcd_experiments.reading import FigureReader
from mtcd_experiments.results import Results
from mtcd_experiments.schema import Panel

WIDTH = 11.5
ROW = 0.36  # inches
MARKERS = "os^Dv*hX<>P"
SIZES = dict.fromkeys(MARKERS, 9.0) | {"*": 13.0}


def draw_dots(results: Results, paper: Paper | None = None) -> Figure:
    """Panels side by side, rows with the same cases, a legend below. Curves with the same label
    look the same."""
    width, scale, columns = WIDTH, 1.0, 3
    fonts: Any = {"font.size": 9.5}
    if paper is not None:
        width, scale, columns = paper.width, paper.scale, 2
        fonts = {}  # those of the paper hold already
        if paper.stacked(2):
            columns = 1

    cases = results.case_names()
    labels = list(dict.fromkeys(entry.result.label for entry in entries(results)))
    panels = results.experiment.panels
    title, said = [], []
    with mpl.rc_context(fonts):
        figure = Figure(layout="constrained")
        if paper is None:
            title = textwrap.wrap(whole_title(results), int(WIDTH * 8))
            said = [plain(line) for line in textwrap.wrap(small_print(results), int(WIDTH * 14))]
            add_texts(figure, title, said)
        figure.set_size_inches(
            width, scale * (2.2 + ROW * len(cases)) + 0.2 * (len(title) + len(said))
        )
        # the legend is the body's: title and small print are the figure's, and keep clear of it
        body = figure.add_subfigure(figure.add_gridspec(1, 1)[0])
        row = body.subplots(1, len(panels), squeeze=False, sharey=True)[0]
        for axes, panel in zip(row, panels, strict=True):
            _draw_panel(axes, results, panel, labels)
        row[0].set_yticks(
            range(len(cases)), [plain(results.experiment.cases[case].title) for case in cases]
        )
        row[0].invert_yaxis()
        handles = row[0].get_legend_handles_labels()[0]
        body.legend(
            handles,
            [plain(label) for label in labels],
            loc="outside lower center",
            ncols=columns,
            frameon=False,
        )
    return figure


def whole_title(results: Results) -> str:
    """The title of a figure, which says whether it is the quick version."""
    if results.quick:
        return f"{results.experiment.title} (quick version)"
    return results.experiment.title


def add_texts(figure: Figure, title: Sequence[str], small_print: Sequence[str]) -> None:
    """The lines of the title above a figure, and what to know below it."""
    figure.suptitle(plain("\n".join(title)), fontsize="large", fontweight="bold")
    figure.supxlabel("\n".join(small_print), fontsize="small", x=0.01, ha="left", color="0.25")


def _draw_panel(axes: Axes, results: Results, panel: Panel, labels: list[str]) -> None:
    read, ratio = FigureReader(results), panel_ratio(results, panel)
    axes.set_xscale("log")
    for label, colour, marker in zip(labels, COLOURS, MARKERS, strict=False):
        axes.plot(
            [],
            [],
            linestyle="",
            marker=marker,
            color=colour,
            markersize=SIZES[marker],
            label=plain(label),
        )
    for place, case in enumerate(results.case_names()):
        for entry in entries(results, case):
            i = labels.index(entry.result.label)
            amount = read.amount(case, entry.curve, panel_axis(results, panel), ratio)
            if amount.value <= 0:  # no messages of this kind: nowhere on a logarithmic axis
                continue
            marker = MARKERS[i % len(MARKERS)]
            look: dict[str, Any] = {
                "color": COLOURS[i % len(COLOURS)],
                "marker": marker,
                "markersize": SIZES[marker],
            }
            if amount.exact:
                axes.plot(amount.value, place, **look, markeredgecolor="white", zorder=3)
            else:
                axes.plot(amount.value, place, **look, fillstyle="none", zorder=2)
                arrow = {"arrowstyle": "->", "color": look["color"]}
                axes.annotate(
                    "", (amount.value * 2, place), (amount.value, place), arrowprops=arrow
                )
    axes.set_xlabel(x_label(results, panel))
    axes.grid(alpha=0.25, linewidth=0.6)
    axes.set_axisbelow(True)


def small_print(results: Results) -> str:
    """What to know of the figure, for its caption."""
    read, shown = FigureReader(results), entries(results)
    seeds = f"means over {results.seeds} seeds"
    if results.seeds == 1:
        seeds = "one seed"
    said = f"To a relative gap of {results.experiment.target:g}, {seeds}."
    if any(not read.amount(entry.case, entry.curve).exact for entry in shown):
        said += " Hollow, with an arrow: not reached, it takes more."
    if any(entry.result.tuned for entry in shown):
        said += " Step sizes are the best of a grid, case by case."
    return " ".join([said, *dict.fromkeys(results.notes)])
