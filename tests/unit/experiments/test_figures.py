"""Pictures, tables and the page, from made-up results of every shape."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import imread
from matplotlib.text import Text
from rich.console import Console

from made_up_results import (
    ITERATIONS,
    NOTE,
    accuracies,
    curve,
    experiment,
    long_labels,
    never_there,
    nothing_moves,
    one_panel,
    own_curves,
    results,
    six_cases,
    ten_curves,
    three_costs,
    trained,
)
from mtcd.core.errors import ConfigError, MtcdError
from mtcd.plots.paper import Paper, parse_style
from mtcd_experiments.accuracy import accuracy_at_end
from mtcd_experiments.claims import Claim
from mtcd_experiments.curve_styles import curve_styles
from mtcd_experiments.figures import draw, write_figure
from mtcd_experiments.numbers import POINTS, lines_csv
from mtcd_experiments.page import write_page
from mtcd_experiments.results import CurveResult, Results, TrainedCurve
from mtcd_experiments.tables import results_table, table_csv

SHAPES = (
    one_panel,
    six_cases,
    own_curves,
    ten_curves,
    long_labels,
    three_costs,
    never_there,
    nothing_moves,
    accuracies,
)
Shape = Callable[[], Results]
every_shape = pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)


@cache
def drawn(shape: Shape) -> Figure:
    """The figure, laid out; several tests look at it."""
    figure = draw(shape())
    figure.draw_without_rendering()
    return figure


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Shape], list[Path]]:
    """Writes the files of a figure, once for all tests."""
    folder = tmp_path_factory.mktemp("figures")
    return cache(lambda shape: write_figure(shape(), folder / shape.__name__))


def axes_by_case(shape: Shape) -> dict[str, list[Axes]]:
    result, figure = shape(), drawn(shape)
    cases, panels = result.case_names(), len(result.experiment.panels)
    assert len(figure.axes) == len(cases) * panels
    return {case: figure.axes[i * panels : (i + 1) * panels] for i, case in enumerate(cases)}


def said(figure: Figure) -> str:
    """All text of a figure, on one line."""
    return " ".join(" ".join(text.get_text() for text in figure.findobj(Text)).split())  # type: ignore[attr-defined]


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


@pytest.mark.long
@every_shape
def test_all_files_are_written(shape: Shape, written: Callable[[Shape], list[Path]]) -> None:
    name, files = shape().name, written(shape)
    assert [file.name for file in files] == [
        f"{name}{end}" for end in (".png", ".svg", ".pdf", ".csv", "-table.csv")
    ]
    assert sorted(files[0].parent.iterdir()) == sorted(files)
    assert all(file.stat().st_size > 200 for file in files)
    assert [file.read_text() for file in files[3:]] == [lines_csv(shape()), table_csv(shape())]


@pytest.mark.long
def test_the_same_results_give_the_same_bytes(
    written: Callable[[Shape], list[Path]], tmp_path: Path
) -> None:
    again = write_figure(three_costs(), tmp_path)
    assert [file.read_bytes() for file in written(three_costs)] == [
        file.read_bytes() for file in again
    ]


@pytest.mark.long
@every_shape
def test_every_curve_is_in_every_panel_of_its_case(shape: Shape) -> None:
    result = shape()
    styles = curve_styles(result.experiment, result.case_names())
    for case, panels in axes_by_case(shape).items():
        looks = {styles[case, name] for name in result.experiment.shown(case)}
        assert len({(look.colour, str(look.dash)) for look in looks}) == len(looks)
        for axes, panel in zip(panels, result.experiment.panels, strict=True):
            lines = [line for line in axes.get_lines() if not str(line.get_label()).startswith("_")]
            labels = [result.curves[case, name].label for name in result.experiment.shown(case)]
            assert [line.get_label() for line in lines] == labels
            usual = "log" if result.experiment.measure == "gap" else "linear"
            assert (axes.get_xscale(), axes.get_yscale()) == (panel.scale or usual, usual)
            for line, name in zip(lines, result.experiment.shown(case), strict=True):
                _check_points(
                    line.get_xydata(),
                    result,
                    panel.x,
                    panel.ratio or 100.0,
                    result.curves[case, name],
                )
                if panel.x != "ratio":
                    left, _ = axes.get_xlim()
                    assert left <= np.max(line.get_xdata())
                    assert np.min(line.get_xdata()) >= left


def _check_points(points: Any, result: Results, x: str, ratio: float, made: CurveResult) -> None:
    target = result.experiment.target
    if x == "ratio":
        costs = [(one, made.reach(target, "cost", one)) for one in result.experiment.ratios]
        expected = [(one, cost.mean) for one, cost in costs if cost]
        np.testing.assert_allclose(points, np.array(expected).reshape(-1, 2))
    else:
        np.testing.assert_allclose(points[-1, 1], made.line(x, ratio).value[-1])
        np.testing.assert_allclose(points[0, 1], made.line(x, ratio).value[0])


@every_shape
def test_nothing_is_cut_off_and_panels_keep_their_room(shape: Shape) -> None:
    figure = drawn(shape)
    for axes in figure.axes:
        inches = axes.get_window_extent().size / figure.dpi
        assert inches[0] > 2
        assert inches[1] > 1.6
    parts = _parts(figure)
    outside = [
        one
        for part in parts
        for one in (part._suptitle, part._supxlabel, *part.legends)
        if one is not None
    ]
    boxes = [one.get_window_extent() for one in outside] + [
        axes.get_tightbbox() for axes in figure.axes
    ]
    assert min(box.x0 for box in boxes) >= 0
    assert min(box.y0 for box in boxes) >= 0
    assert max(box.x1 for box in boxes) <= figure.bbox.width
    assert max(box.y1 for box in boxes) <= figure.bbox.height


@every_shape
def test_title_legend_and_small_print_are_apart(shape: Shape) -> None:
    figure = drawn(shape)
    legends = [legend for part in _parts(figure) for legend in part.legends]
    assert legends
    for legend in legends:
        box = legend.get_window_extent()
        assert box.y0 >= figure._supxlabel.get_window_extent().y1  # type: ignore[attr-defined]
        for axes in figure.axes:
            assert not box.overlaps(axes.get_tightbbox())


def _parts(figure: Any) -> list[Any]:
    return [figure, *(part for child in figure.subfigs for part in _parts(child))]


def test_limits_are_shared_where_cases_can_be_compared() -> None:
    panels = axes_by_case(six_cases)
    for place in (0, 1):
        assert len({(row[place].get_xlim(), row[place].get_ylim()) for row in panels.values()}) == 1
    own = axes_by_case(own_curves)
    assert own["methods"][0].get_xlim() != own["hops"][0].get_xlim()
    assert own["methods"][0].get_ylim() == own["hops"][0].get_ylim()
    assert own["hops"][0].get_ylim()[0] == 1e-6


def test_the_picture_says_what_a_reader_must_know() -> None:
    assert NOTE in said(drawn(six_cases))
    assert "5 seeds" in said(drawn(six_cases))
    assert "one seed" in said(drawn(one_panel))
    assert "quick" not in said(drawn(six_cases)).lower()
    ten = said(drawn(ten_curves))
    assert "Quick version: smaller than the paper's." in ten
    assert "η=1e-05" in ten
    assert "diverged: g8average; g4visitors; g8visitors" in ten
    own = said(drawn(own_curves))
    assert "not reached: dcpa" in own
    assert "reached by some seeds: s256" in own
    assert "ring: stopped there" in own


@pytest.mark.parametrize(
    ("ends", "marks"),
    [
        (("converged", "converged"), []),
        (("converged", "iterations"), ["o"]),
        (("converged", "diverged"), ["x"]),
        (("iterations", "diverged"), ["x"]),
    ],
)
def test_a_line_that_ends_early_is_marked_and_the_mark_explained(
    ends: tuple[str, str], marks: list[str]
) -> None:
    given = experiment({"path": {}}, {"mtcd": {}}, [ITERATIONS])
    ones = tuple(trained(1e-4, seed, end=2000, status=status) for seed, status in enumerate(ends))
    figure = draw(results("ends", given, lambda case, name: CurveResult("mtcd", ones)))
    (axes,) = {axes for part in _parts(figure) for axes in part.axes}
    assert [line.get_marker() for line in axes.get_lines() if line.get_label() == "_end"] == marks
    assert ("ring: stopped there" in said(figure)) == (marks == ["o"])
    assert ("cross: diverged" in said(figure)) == (marks == ["x"])


def test_a_dollar_is_a_dollar(tmp_path: Path) -> None:
    odd = r"costs $5 and $\bad{$"
    given = experiment(
        {"path": {"title": odd}}, {"mtcd": {"label": odd}}, [ITERATIONS | {"title": odd}], title=odd
    )
    made = results("odd", given, lambda case, name: curve(odd, 0.004), notes=(odd,))
    assert len(write_figure(made, tmp_path)) == 5


def test_step_sizes_that_differ_by_case_are_given_as_a_range() -> None:
    given = experiment({"a": {}, "b": {}}, {"mtcd": {}}, [ITERATIONS])

    def make(case: str, name: str) -> CurveResult:
        one = trained(0.01)
        step = 1e-5 if case == "a" else 4e-5
        return CurveResult(
            "MTCD", (TrainedCurve(0, "converged", step, 1.0, one.columns),), {step: "best"}
        )

    text = said(draw(results("range", given, make)))
    assert "MTCD, η=1e-05 to 4e-05" in text
    assert "tuned, case by case" in text


def test_families_have_a_colour_and_rules_a_dash() -> None:
    result = ten_curves()
    styles = {
        name: style for (case, name), style in curve_styles(result.experiment, ["S1"]).items()
    }
    for tokens in (1, 2, 4, 8):
        assert styles[f"g{tokens}average"].colour == styles[f"g{tokens}visitors"].colour
        assert styles[f"g{tokens}average"].dash == styles["g1average"].dash
        assert styles[f"g{tokens}visitors"].dash == styles["g1visitors"].dash


def test_the_csv_holds_the_lines() -> None:
    result = own_curves()
    points = rows(lines_csv(result))
    assert {row["panel"] for row in points} == {"iterations", "cost R=100", "ratio"}
    line = result.curves["hops", "s64"].line("cost", 100.0, points=POINTS)
    kept = [
        row
        for row in points
        if (row["case"], row["curve"], row["panel"]) == ("hops", "s64", "cost R=100")
    ]
    for column, values in (
        ("x", line.x),
        ("value", line.value),
        ("low", line.low),
        ("high", line.high),
    ):
        np.testing.assert_allclose([float(row[column]) for row in kept], values, rtol=1e-5)
    spread = result.curves["methods", "svfl"].reach(1e-4, "cost", 20)
    kept = [
        row for row in points if (row["curve"], row["panel"], row["x"]) == ("svfl", "ratio", "20")
    ]
    numbers = [float(kept[0][column]) for column in ("value", "low", "high")]
    assert numbers == pytest.approx([spread.mean, spread.least, spread.most], rel=1e-5)
    assert not [row for row in points if (row["curve"], row["panel"]) == ("dcpa", "ratio")]


def test_the_csv_of_the_table() -> None:
    result = three_costs()
    row = next(row for row in rows(table_csv(result)) if row["curve"] == "svfl")
    made = result.curves["path", "svfl"]
    for prefix, spread in (
        ("iterations", made.reach(1e-4)),
        *((f"cost_R{ratio}", made.reach(1e-4, "cost", ratio)) for ratio in (100, 20, 10, 5)),
    ):
        numbers = [float(row[f"{prefix}_{what}"]) for what in ("mean", "least", "most")]
        assert numbers == [spread.mean, spread.least, spread.most]
    assert row["tuned"] == "1e-05: 1e-6 after 812; 1e-04: diverged"
    assert (row["seeds"], row["reached"], row["status"], row["seconds"]) == (
        "5",
        "5",
        "converged",
        "7.5",
    )
    assert float(row["final_gap"]) == made.final_gap


def test_what_was_there_stays_if_writing_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = write_figure(one_panel(), tmp_path)
    before = [file.read_bytes() for file in files]

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(MtcdError, match="No space left"):
        write_figure(one_panel(), tmp_path)
    assert [file.read_bytes() for file in files] == before
    assert sorted(tmp_path.iterdir()) == sorted(files)


def test_the_picture_has_the_resolution_asked_for(written: Callable[[Shape], list[Path]]) -> None:
    pixels = imread(written(one_panel)[0])
    assert pixels.shape[1] == pytest.approx(6.4 * 150, abs=2)


@pytest.mark.parametrize("width", [60, 80, 100, 120])
@every_shape
def test_the_table_fits_and_cuts_no_number(shape: Shape, width: int) -> None:
    result = shape()
    console = Console(width=width, file=io.StringIO())
    console.print(results_table(result))
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "…" not in shown
    for made in result.curves.values():
        if made.measure == "accuracy":
            assert f"{accuracy_at_end(made).mean:.1%}" in shown
            continue
        assert f"{made.final_gap:.1e}" in shown
        spread = made.reach(1e-4)
        if spread and spread.mean >= 100:
            assert f"{spread.mean:,.0f}" in shown
        if spread and not spread.everywhere:
            assert f"({spread.reached} of {spread.seeds})" in shown


def test_the_page(tmp_path: Path) -> None:
    made = {result.name: result for result in (own_curves(), ten_curves(), six_cases())}
    claims = [
        Claim("own-curves", "a | b", "12 times", "yes"),
        Claim("gone", "c", "not run", "open"),
    ]
    page, figures = tmp_path / "docs" / "reproduction.md", tmp_path / "fi gures"
    figures.mkdir()
    for name in made:
        for ending in (".png", ".svg", ".pdf", ".csv", "-table.csv"):
            (figures / f"{name}{ending}").touch()
    write_page(made, claims, page, figures, {"gone": "its data\nis not there"})
    text = page.read_text()
    assert "| a \\| b | 12 times | yes | [own-curves](#own-curves) |" in text
    assert "| c | not run | open | gone |" in text
    assert '<a id="own-curves"></a>' in text
    assert "- gone: its data is not there" in text
    assert NOTE in text
    seconds = sum(one.seconds for result in made.values() for one in result.curves.values())
    assert (
        f"Training took {seconds // 60:.0f} min {seconds % 60:.0f} s, all curves and seeds added "
        f"up." in text
    )
    assert text.count("Quick version") == 2  # at the top and at its figure
    assert "(edge of the grid) | 1e-05: 1e-6 after 812; 1e-04: diverged |" in text
    links = [part.split(")")[0] for part in text.split("](")[1:]]
    for link in links:
        if not link.startswith(("http", "#")):
            assert (page.parent / link.replace("%20", " ")).exists(), link


def test_a_page_without_anything_is_a_page(tmp_path: Path) -> None:
    write_page({}, [], tmp_path / "page.md", tmp_path, {"all": "no data"})
    assert "- all: no data" in (tmp_path / "page.md").read_text()


# --- for papers ----------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize(
    ("shape", "style", "width"),
    [
        *((shape, "paper", 3.5) for shape in SHAPES),
        (own_curves, "paper:7.16,9", 7.16),
        (ten_curves, "paper:7.16,9", 7.16),
    ],
)
def test_figures_for_papers(tmp_path: Path, shape: Shape, style: str, width: float) -> None:
    """The width asked for, no title inside, nothing outside the page, and fonts embedded as Type
    42."""
    paper = parse_style(style)
    figure = draw(shape(), paper)
    assert figure.get_size_inches()[0] == width
    assert figure.get_suptitle() == ""
    texts = [
        text for text in figure.findobj(Text) if text.get_text().strip() and text.get_visible()
    ]
    figure.draw_without_rendering()
    page = figure.bbox
    boxes = [
        text.get_window_extent()
        for axes in figure.findobj(Axes)
        for text in (axes.xaxis.label, axes.yaxis.label)
    ]
    assert all(box.x0 >= page.x0 - 1 and box.x1 <= page.x1 + 1 for box in boxes)
    assert max(text.get_fontsize() for text in texts) <= paper.points * 1.01
    if shape not in (one_panel, own_curves):  # files take a while
        return
    files = {path.name: path for path in write_figure(shape(), tmp_path, paper)}
    name = shape().name
    assert shape().experiment.title in files[f"{name}-caption.txt"].read_text()
    content = files[f"{name}.pdf"].read_bytes()
    assert b"/Type0" in content
    assert b"/Type3" not in content


@pytest.mark.parametrize(
    "style", ["poster", "paper:wide", "paper:3,8,1", "paper:0.1", "paper:3.5,100", "screen:3"]
)
def test_styles_that_are_refused(style: str) -> None:
    assert (parse_style("paper"), parse_style("screen")) == (Paper(), None)
    with pytest.raises(ConfigError, match="--style"):
        parse_style(style)
