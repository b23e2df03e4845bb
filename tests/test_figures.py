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

from mtcd.errors import MtcdError
from mtcd.report.figures import draw, write_figure
from mtcd.report.numbers import lines_csv, table_csv
from mtcd.report.page import write_page
from mtcd.report.styles import curve_styles
from mtcd.report.tables import results_table
from mtcd.reproduce.claims import Claim
from mtcd.reproduce.results import CurveResult, Results, Trained
from mtcd.reproduce.schema import Experiment

ITERATIONS, COST, RATIO = {"x": "iterations"}, {"x": "cost"}, {"x": "ratio"}
NOTE = "gisette-like, made from MNIST 4 against 9: not Gisette itself"
LONG = "MTCD with a very long description of its settings, Γ=4 tokens, S=64 hops and combine: visitors"


def trained(rate: float, seed: int = 0, end: int = 20_000, server: float = 0.05, status: str = "converged") -> Trained:
    """A gap that falls like exp(-rate x), a little differently for each seed."""
    x = np.unique(np.concatenate([[0], np.geomspace(1, max(end, 1), 300).astype(int)]))[: None if end else 1]
    rate *= 1 + 0.1 * np.sin(seed)
    gap = 20 * np.exp(-rate * x) * (1 + 0.1 * np.sin(x / 50 + seed))
    if status == "converged":
        x = x[: int(np.argmax(gap < 1e-6)) + 1] if (gap < 1e-6).any() else x
    columns = {"iteration": x, "gap": gap[: len(x)], "client_client": 1.0 * x, "client_server": server * x}
    return Trained(seed, status, 1e-5, 1.5, {name: np.asarray(one, dtype=float) for name, one in columns.items()})


def curve(label: str, rate: float, seeds: int = 5, tuned: bool = False, **settings: Any) -> CurveResult:
    ones = tuple(trained(rate, seed, **settings) for seed in range(seeds))
    return CurveResult(label, ones, {1e-5: "1e-6 after 812", 1e-4: "diverged"} if tuned else None, at_edge=tuned)


def experiment(cases: dict[str, Any], curves: dict[str, Any], panels: list[dict[str, Any]], **more: Any) -> Experiment:
    given = {
        "title": "Ridge regression over six networks",
        "about": "What is compared, and how.",
        "problem": {},
        "cases": {name: {"title": name, **case} for name, case in cases.items()},
        "curves": {name: {"label": name, "method": {"kind": "mtcd"}, **curve} for name, curve in curves.items()},
        "panels": panels,
        "quick": {"changes": {}},
    }
    return Experiment.model_validate(given | more)


def results(name: str, given: Experiment, make: Callable[[str, str], CurveResult], **more: Any) -> Results:
    curves = {(case, name): make(case, name) for case in given.cases for name in given.shown(case)}
    return Results(name, given, curves, **({"seeds": 5, "quick": False, "ratio": 100.0} | more))


def plain(given: Experiment, **settings: Any) -> Callable[[str, str], CurveResult]:
    """Every curve a little faster than the one before."""
    rates = {name: 0.004 * 1.4**i for i, name in enumerate(given.curves)}
    return lambda case, name: curve(given.curves[name].label, rates[name], **settings)


def one_panel() -> Results:
    given = experiment({"path": {}}, {"mtcd": {}, "svfl": {}}, [ITERATIONS])
    return results("one-panel", given, plain(given, seeds=1), seeds=1)


def six_cases() -> Results:
    titles = {f"case{i}": {"title": f"({i}) Erdős-Rényi graph, p = 0.4, Γ = 2"} for i in range(6)}
    given = experiment(titles, {"stcd": {}, "dcpa": {}}, [ITERATIONS, COST], cases_per_row=2)
    return results("six-cases", given, plain(given), notes=(NOTE,))


def own_curves() -> Results:
    """Each case with its own curves; one stops early and never reaches the target, one does in some seeds."""
    cases = {"methods": {"curves": ["stcd", "s64", "dcpa", "svfl"]}, "hops": {"curves": ["s64", "s256"]}}
    names: dict[str, Any] = {name: {} for name in ("stcd", "s64", "dcpa", "svfl", "s256")}
    given = experiment(cases, names, [ITERATIONS, COST, RATIO], lowest_gap=1e-6)

    def make(case: str, name: str) -> CurveResult:
        if name == "dcpa":
            return curve(name, 0.01, end=800, status="iterations")
        if name == "s256":
            return curve(name, 0.0061, end=2000, status="iterations")
        return plain(given)(case, name)

    return results("own-curves", given, make)


def ten_curves() -> Results:
    """Two families; some diverge, after many, two or no iterations."""
    names: dict[str, Any] = {
        f"g{tokens}{rule}": {"method": {"kind": "mtcd", "tokens": tokens, "combine": rule}}
        for rule in ("average", "visitors")
        for tokens in (1, 2, 4, 8)
    }
    names |= {"svfl": {"method": {"kind": "svfl"}}, "stcd": {"method": {"kind": "stcd"}}}
    given = experiment({"S1": {}, "S2": {}}, names, [ITERATIONS, COST])
    ends = {"g8visitors": 2, "g8average": 0, "g4visitors": 900}

    def make(case: str, name: str) -> CurveResult:
        if case == "S2" and name in ends:
            return curve(name, -0.005, end=ends[name], status="diverged")
        return plain(given, tuned=True)(case, name)

    return results("ten-curves", given, make, quick=True)


def long_labels() -> Results:
    names = {"x": {"label": LONG}, "y": {"label": f"{LONG}, twice"}, "z": {"label": LONG}}
    cases = {"a": {"curves": ["x", "y"]}, "b": {"curves": ["z"]}}
    given = experiment(cases, names, [ITERATIONS, RATIO], cases_per_row=2, title=f"{LONG} {LONG}")
    return results("long-labels", given, plain(given), notes=(f"{LONG}. {LONG}.",))


def three_costs() -> Results:
    panels = [{"x": "cost", "ratio": ratio, "title": f"{ratio} times"} for ratio in (20, 10, 5)]
    given = experiment({"path": {}}, {"mtcd": {}, "svfl": {}, "stcd": {}}, panels)
    return results("three-costs", given, plain(given, tuned=True))


def never_there() -> Results:
    given = experiment({"path": {}}, {"mtcd": {}, "svfl": {}}, [RATIO, {"x": "iterations", "scale": "linear"}])
    return results("never-there", given, plain(given, end=3, status="iterations"))


def nothing_moves() -> Results:
    given = experiment({"path": {}}, {"mtcd": {}, "svfl": {}}, [ITERATIONS, COST])
    return results("nothing-moves", given, plain(given, end=0, status="diverged"))


SHAPES = (one_panel, six_cases, own_curves, ten_curves, long_labels, three_costs, never_there, nothing_moves)
Shape = Callable[[], Results]
every_shape = pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)


@cache
def drawn(shape: Shape) -> Figure:
    """The figure, laid out; several tests look at it."""
    figure = draw(shape())
    figure.draw_without_rendering()
    return figure


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


@every_shape
def test_all_files_are_written(shape: Shape, tmp_path: Path) -> None:
    name = shape().name
    files = write_figure(shape(), tmp_path / "new")
    assert [file.name for file in files] == [f"{name}{end}" for end in (".png", ".svg", ".pdf", ".csv", "-table.csv")]
    assert sorted((tmp_path / "new").iterdir()) == sorted(files)
    assert all(file.stat().st_size > 200 for file in files)
    assert [file.read_text() for file in files[3:]] == [lines_csv(shape()), table_csv(shape())]


@pytest.mark.parametrize("shape", [one_panel, three_costs], ids=lambda shape: shape.__name__)
def test_the_same_results_give_the_same_bytes(shape: Shape, tmp_path: Path) -> None:
    once, again = write_figure(shape(), tmp_path / "once"), write_figure(shape(), tmp_path / "again")
    assert [file.read_bytes() for file in once] == [file.read_bytes() for file in again]


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
            assert axes.get_yscale() == "log"
            assert axes.get_xscale() == panel.scale
            for line, name in zip(lines, result.experiment.shown(case), strict=True):
                _check_points(line.get_xydata(), result, panel.x, panel.ratio or 100.0, result.curves[case, name])
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
        np.testing.assert_allclose(points[-1, 1], made.line(x, ratio).gap[-1])
        np.testing.assert_allclose(points[0, 1], made.line(x, ratio).gap[0])


@every_shape
def test_nothing_is_cut_off_and_panels_keep_their_room(shape: Shape) -> None:
    figure = drawn(shape)
    for axes in figure.axes:
        inches = axes.get_window_extent().size / figure.dpi
        assert inches[0] > 2
        assert inches[1] > 1.6
    parts = _parts(figure)
    outside = [one for part in parts for one in (part._suptitle, part._supxlabel, *part.legends) if one is not None]
    boxes = [one.get_window_extent() for one in outside] + [axes.get_tightbbox() for axes in figure.axes]
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


def test_step_sizes_that_differ_by_case_are_given_as_a_range() -> None:
    given = experiment({"a": {}, "b": {}}, {"mtcd": {}}, [ITERATIONS])

    def make(case: str, name: str) -> CurveResult:
        one = trained(0.01)
        step = 1e-5 if case == "a" else 4e-5
        return CurveResult("MTCD", (Trained(0, "converged", step, 1.0, one.columns),), {step: "best"})

    text = said(draw(results("range", given, make)))
    assert "MTCD, η=1e-05 to 4e-05" in text
    assert "tuned, case by case" in text


def test_families_have_a_colour_and_rules_a_dash() -> None:
    result = ten_curves()
    styles = {name: style for (case, name), style in curve_styles(result.experiment, ["S1"]).items()}
    for tokens in (1, 2, 4, 8):
        assert styles[f"g{tokens}average"].colour == styles[f"g{tokens}visitors"].colour
        assert styles[f"g{tokens}average"].dash == styles["g1average"].dash
        assert styles[f"g{tokens}visitors"].dash == styles["g1visitors"].dash


def test_the_csv_holds_the_lines() -> None:
    result = own_curves()
    points = rows(lines_csv(result))
    assert {row["panel"] for row in points} == {"iterations", "cost R=100", "ratio"}
    line = result.curves["hops", "s64"].line("cost", 100.0, points=300)
    kept = [row for row in points if (row["case"], row["curve"], row["panel"]) == ("hops", "s64", "cost R=100")]
    for column, values in (("x", line.x), ("value", line.gap), ("low", line.low), ("high", line.high)):
        np.testing.assert_allclose([float(row[column]) for row in kept], values, rtol=1e-5)
    spread = result.curves["methods", "svfl"].reach(1e-4, "cost", 20)
    kept = [row for row in points if (row["curve"], row["panel"], row["x"]) == ("svfl", "ratio", "20")]
    assert spread is not None
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
        assert spread is not None
        numbers = [float(row[f"{prefix}_{what}"]) for what in ("mean", "least", "most")]
        assert numbers == [spread.mean, spread.least, spread.most]
    assert row["tuned"] == "1e-05: 1e-6 after 812; 1e-04: diverged"
    assert (row["seeds"], row["reached"], row["status"], row["seconds"]) == ("5", "5", "converged", "7.5")
    assert float(row["final_gap"]) == made.final_gap


def test_what_was_there_stays_if_writing_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = write_figure(one_panel(), tmp_path)
    before = [file.read_bytes() for file in files]

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(MtcdError, match="No space left"):
        write_figure(one_panel(), tmp_path)
    assert [file.read_bytes() for file in files] == before
    assert sorted(tmp_path.iterdir()) == sorted(files)


def test_the_picture_has_the_resolution_asked_for(tmp_path: Path) -> None:
    pixels = imread(write_figure(one_panel(), tmp_path)[0])
    assert pixels.shape[1] == pytest.approx(6.4 * 150, abs=2)


@pytest.mark.parametrize("width", [100, 120])
@every_shape
def test_the_table_fits_and_cuts_no_number(shape: Shape, width: int) -> None:
    result = shape()
    console = Console(width=width, file=io.StringIO())
    console.print(results_table(result))
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "…" not in shown
    for made in result.curves.values():
        assert f"{made.final_gap:.1e}" in shown
        spread = made.reach(1e-4)
        if spread and spread.mean >= 100:
            assert f"{spread.mean:,.0f}" in shown
        if spread and not spread.everywhere:
            assert f"({spread.reached} of {spread.seeds})" in shown


def test_the_page(tmp_path: Path) -> None:
    made = {result.name: result for result in (own_curves(), ten_curves(), six_cases())}
    claims = [Claim("own-curves", "a | b", "12 times", "yes"), Claim("gone", "c", "not run", "open")]
    page, figures = tmp_path / "docs" / "reproduction.md", tmp_path / "fi gures"
    figures.mkdir()
    for name in made:
        for ending in (".png", ".svg", ".pdf", ".csv", "-table.csv"):
            (figures / f"{name}{ending}").touch()
    write_page(made, claims, page, figures, 75.0, {"gone": "its data\nis not there"})
    text = page.read_text()
    assert "| a \\| b | 12 times | yes | [own-curves](#own-curves) |" in text
    assert "| c | not run | open | gone |" in text
    assert '<a id="own-curves"></a>' in text
    assert "- gone: its data is not there" in text
    assert NOTE in text
    assert "took 1 min 15 s" in text
    seconds = sum(one.seconds for result in made.values() for one in result.curves.values())
    assert f"took {seconds // 60:.0f} min {seconds % 60:.0f} s in all" in text
    assert text.count("Quick version") == 2  # at the top and at its figure
    assert "(edge of the grid) | 1e-05: 1e-6 after 812; 1e-04: diverged |" in text
    links = [part.split(")")[0] for part in text.split("](")[1:]]
    for link in links:
        if not link.startswith(("http", "#")):
            assert (page.parent / link.replace("%20", " ")).exists(), link


def test_a_page_without_anything_is_a_page(tmp_path: Path) -> None:
    write_page({}, [], tmp_path / "page.md", tmp_path, 1.0, {"all": "no data"})
    assert "- all: no data" in (tmp_path / "page.md").read_text()
