"""The figure of an experiment: a group of panels for each case, drawn from its results and written
to files."""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from mtcd.core.files import write_whole
from mtcd.plots.paper import Paper
from mtcd.plots.styles import plain, scientific
from mtcd_experiments.curve_styles import curve_styles
from mtcd_experiments.dots import add_texts, draw_dots, whole_title
from mtcd_experiments.dots import small_print as dots_print
from mtcd_experiments.numbers import entries, lines_csv, panel_priced
from mtcd_experiments.panels import alike, draw_panel, draw_title, remarks
from mtcd_experiments.results import CurveResult, Results
from mtcd_experiments.tables import table_csv

WIDTHS = {1: 6.4, 2: 9.0, 3: 12.0}  # inches, by the number of panels side by side
WIDEST = 13.0
LINE_HEIGHT = 0.22
END_MARKS = {"done": "", "stopped": "ring: stopped there", "diverged": "cross: diverged"}
VALUE_LABELS = {"gap": r"relative gap $(f-f^\star)/f^\star$", "accuracy": "test accuracy"}
LETTERS = 11.5  # of a legend, in an inch
FORMATS: dict[str, dict[str, Any]] = {  # without dates: the same results give the same bytes
    "png": {"dpi": 150},
    "svg": {"metadata": {"Date": None}},
    "pdf": {"metadata": {"CreationDate": None}},
}


def write_figure(results: Results, out: Path, paper: Paper | None = None) -> list[Path]:
    """The picture as PNG, SVG and PDF, the numbers behind its lines and its table as CSV; dots are
    in the table.

    Of a figure for a paper, title and small print are in a file of their own, for the caption.
    """
    figure = draw(results, paper)
    contents: dict[str, bytes | str] = {}
    for kind, options in FORMATS.items():
        buffer = io.BytesIO()
        with mpl.rc_context({"svg.hashsalt": results.name, "pdf.fonttype": 42}):
            figure.savefig(buffer, format=kind, **options)
        contents[f"{results.name}.{kind}"] = buffer.getvalue()
    if results.experiment.layout == "lines":
        contents[f"{results.name}.csv"] = lines_csv(results)
    contents[f"{results.name}-table.csv"] = table_csv(results)

    if paper is not None:
        if results.experiment.layout == "dots":
            said = dots_print(results)
        else:
            said = "\n".join(_small_print(results, 10_000))  # a line for each text
        caption = f"{results.experiment.title}.\n{said}\n{_remarks(results)}"
        contents[f"{results.name}-caption.txt"] = caption

    for name, content in contents.items():  # only now, when nothing can go wrong any more
        write_whole(out / name, content)
    return [out / name for name in contents]


def _remarks(results: Results) -> str:
    """A line for each panel from which curves are missing."""
    lines = []
    for case in results.case_names():
        said = [" ".join(remarks(results, panel, case)) for panel in results.experiment.panels]
        lines += [f"{results.experiment.cases[case].title}, {text}.\n" for text in said if text]
    return "".join(lines)


def draw(results: Results, paper: Paper | None = None) -> Figure:
    """The figure, as its experiment lays it out."""
    drawing = draw_lines
    if results.experiment.layout == "dots":
        drawing = draw_dots
    if paper is None:
        return drawing(results)
    with paper.fonts():
        figure = drawing(results, paper)
        paper.shrink(figure)
    return figure


def draw_lines(results: Results, paper: Paper | None = None) -> Figure:
    """The whole figure: a title, rows of cases, legends outside the panels, and what to know below.

    For a paper, panels that would be too narrow stand below each other, and there is neither title
    nor small print.
    """
    cases, side_by_side = results.case_names(), len(results.experiment.panels)
    columns = min(results.experiment.cases_per_row, len(cases))
    if paper is not None and paper.stacked(columns * side_by_side):
        columns = 1
        if paper.stacked(side_by_side):
            side_by_side = 1
    rows, panels = math.ceil(len(cases) / columns), columns * side_by_side

    width, scale, least = WIDTHS.get(panels, WIDEST), 1.0, 2.6
    fonts: Any = {"font.size": 8.5 + width / 6}
    if paper is not None:
        width, scale, least = paper.width, paper.scale, 1.9
        fonts = {}  # those of the paper hold already

    title, small_print = [], []
    with mpl.rc_context(fonts):
        figure = Figure(layout="constrained")
        if paper is None:
            title = textwrap.wrap(whole_title(results), int(width * 7))
            small_print = _small_print(results, int(width * 16))
            add_texts(figure, title, small_print)
        # a legend for all cases is the body's: title and small print are the figure's, and keep
        # clear of it
        body = figure.add_subfigure(figure.add_gridspec(1, 1)[0])
        groups = body.subfigures(rows, columns, squeeze=False)
        first = _draw_cases(groups, results, side_by_side, remarked=paper is None)
        if alike(results):
            lines = _legend(body, first[cases[0]], _legend_texts(results, cases), width / scale)
        else:
            texts = {case: _legend_texts(results, [case]) for case in cases}
            wide = width / scale / columns
            heights = [
                _legend(axes.figure, axes, texts[case], wide) for case, axes in first.items()
            ]
            lines = rows * max(heights)

        rows *= len(results.experiment.panels) // side_by_side
        height = scale * 0.5 + min(max(0.62 * width / panels, least), 3.6)
        text = (lines + len(title) + len(small_print)) * LINE_HEIGHT * scale
        figure.set_size_inches(width, 0.25 * scale + rows * height + text)
    return figure


def _draw_cases(
    groups: Any, results: Results, side_by_side: int, remarked: bool
) -> dict[str, Axes]:
    """All cases, each a group of panels under its title. Returns the first panel of each."""
    experiment, cases = results.experiment, results.case_names()
    styles = curve_styles(experiment, cases)
    said = {}
    for case in cases:
        said[case] = [remarks(results, panel, case) * remarked for panel in experiment.panels]

    # all panels leave the same room
    most = max(len(lines) for row in said.values() for lines in row)
    first: dict[str, Axes] = {}
    for case, group in zip(cases, groups.flat, strict=False):
        letters = 26 * len(experiment.panels)  # a panel is at least three inches wide
        group.suptitle(
            plain(textwrap.fill(experiment.cases[case].title, letters)), fontsize="medium"
        )
        row = group.subplots(
            len(experiment.panels) // side_by_side, side_by_side, squeeze=False
        ).ravel()
        for axes, panel, lines in zip(row, experiment.panels, said[case], strict=True):
            draw_panel(axes, results, panel, case, styles)
            draw_title(axes, panel, [*lines, *[" "] * (most - len(lines))])
        _label_values(row, results, every=side_by_side == 1)
        first[case] = row[0]
    return first


def _label_values(row: Sequence[Axes], results: Results, every: bool = False) -> None:
    """The axis of gaps or accuracies is the same in all panels, so numbers at the first one do."""
    labelled = False
    for axes, panel in zip(row, results.experiment.panels, strict=True):
        if panel.x == "ratio":
            per = ""
            if panel_priced(results, panel) == "float-cost":
                per = " per float"
            axes.set_ylabel(f"cost{per} to a gap of {results.experiment.target:g}")
        elif every or not labelled:
            axes.set_ylabel(VALUE_LABELS[results.experiment.measure])
            labelled = True
        else:
            axes.tick_params(labelleft=False)


def _legend(host: Figure | SubFigure, axes: Axes, texts: Sequence[str], width: float) -> int:
    """A legend below the panels, in as many columns as fit. Returns its number of lines."""
    letters = int(width * LETTERS)
    wrapped = [textwrap.fill(text, letters - 8) for text in texts]
    longest = max(len(line) for text in wrapped for line in text.splitlines())
    columns = max(1, letters // (longest + 7))
    rows = math.ceil(len(texts) / columns)
    host.legend(
        axes.get_legend_handles_labels()[0],
        wrapped,
        loc="outside lower center",
        ncols=math.ceil(len(texts) / rows),
        frameon=False,
        handlelength=3.6,
        columnspacing=1.6,
    )
    return rows + sum(text.count("\n") for text in wrapped)


def _legend_texts(results: Results, cases: Sequence[str]) -> list[str]:
    """Each curve's label; where the step size was tuned, also what was chosen."""
    texts = []
    for name in results.experiment.shown(cases[0]):
        curves = [results.curves[case, name] for case in cases if (case, name) in results.curves]
        if curves:
            texts.append(plain(curves[0].label) + _tuned_text(curves))
    return texts


def _tuned_text(curves: Sequence[CurveResult]) -> str:
    chosen = sorted(
        {curve.stepsize for curve in curves if curve.tuned and curve.stepsize is not None}
    )
    if not chosen:
        return ""
    if len(chosen) == 1:
        return f", η={scientific(chosen[0])}"
    return f", η={scientific(chosen[0])} to {scientific(chosen[-1])}"


def _small_print(results: Results, letters: int) -> list[str]:
    """The caption of the figure, with notes for the reader."""
    said = []
    if results.quick:
        said.append("Quick version: smaller than the paper's.")

    if results.experiment.measure == "accuracy":
        said += _said_of_accuracies(results)
    else:
        said += _said_of_gaps(results)

    if any(entry.result.tuned for entry in entries(results)):
        each = ""
        if len(results.case_names()) > 1:
            each = ", case by case"
        said.append(f"Step sizes η in the legend: tuned{each}.")

    lines = textwrap.wrap(" ".join(said), letters)
    for note in dict.fromkeys(results.notes):  # several cases may have the same
        lines += textwrap.wrap(plain(note), letters)

    return lines


def _said_of_gaps(results: Results) -> list[str]:
    said = []
    target = f"{results.experiment.target:g}"
    axes = {panel.x for panel in results.experiment.panels}
    if axes - {"ratio"}:
        said.append(_said_of_lines(results, "geometric mean", f"a gap of {target}"))
    if "ratio" in axes:
        said.append(f"Against $R_C$: the mean cost of the seeds that reach a gap of {target}.")
    if results.seeds > 1:
        said.append(
            "Bands: from the least to the most of the seeds; one that has converged stays at its "
            "last gap."
        )
    return said


def _said_of_accuracies(results: Results) -> list[str]:
    dotted = ""
    if results.experiment.target_accuracy:
        dotted = f"{results.experiment.target_accuracy:.0%}"
    said = [_said_of_lines(results, "mean", dotted)]
    if results.seeds > 1:
        said.append("Bands: from the least to the most of the seeds.")
    return said


def _said_of_lines(results: Results, mean: str, dotted: str) -> str:
    said = [f"{mean} over {results.seeds} seeds"]
    if results.seeds == 1:
        said = ["one seed"]
    if dotted:
        said.append(f"dotted: {dotted}")

    said += sorted({END_MARKS[entry.result.ending] for entry in entries(results)} - {""})
    return f"Lines: {'; '.join(said)}."
