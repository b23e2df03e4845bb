"""Figures of dots, tables with several targets, and claims of so many times less."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from claim_readers import reaches, reader, two
from made_up_results import curve, experiment, results
from mtcd_experiments import checks
from mtcd_experiments.dots import draw_dots
from mtcd_experiments.figures import draw, write_figure
from mtcd_experiments.numbers import entries
from mtcd_experiments.reading import FigureReader
from mtcd_experiments.results import Results
from mtcd_experiments.tables import cells, headings

DOTS = {"layout": "dots", "messages": True, "further_targets": [1e-6]}
PANELS = [{"x": "messages"}, {"x": "cost"}]
RATES = {"fast": 0.05, "slow": 0.002}


def dotted(**more: object) -> Results:
    """Two cases; the slow curve does not reach the target in the second."""
    given = experiment(
        {"path": {}, "cycle": {}}, {"fast": {}, "slow": {}}, **{"panels": PANELS, **DOTS, **more}
    )

    def make(case: str, name: str):
        end = 200 if (case, name) == ("cycle", "slow") else 20_000
        return curve(name, RATES[name], end=end, status="stopped" if end == 200 else "converged")

    return results("dotted", given, make)


def test_every_amount_is_a_dot_in_the_row_of_its_case() -> None:
    found = dotted()
    axes = draw_dots(found).subfigs[0].axes[0]
    dots = {
        (round(float(line.get_ydata()[0])), round(float(line.get_xdata()[0]))): line.get_fillstyle()
        for line in axes.lines
        if len(line.get_xdata()) == 1
    }
    read = FigureReader(found)
    for row, case in enumerate(("path", "cycle")):
        for name in RATES:
            amount = read.amount(case, name, "messages")
            assert dots[row, round(amount.value)] == ("full" if amount.exact else "none")
    assert [label.get_text() for label in axes.get_yticklabels()] == ["path", "cycle"]


def test_curves_with_one_label_share_a_look_and_a_place_in_the_legend() -> None:
    given = experiment(
        {"a": {"curves": ["one"]}, "b": {"curves": ["two"]}},
        {"one": {"label": "the same"}, "two": {"label": "the same"}},
        [{"x": "cost"}],
        layout="dots",
    )
    body = draw(results("shared", given, lambda case, name: curve("the same", 0.01))).subfigs[0]
    assert [text.get_text() for text in body.legends[0].get_texts()] == ["the same"]
    dots = [line for line in body.axes[0].lines if len(line.get_xdata())]
    assert len({(line.get_color(), line.get_marker()) for line in dots}) == 1


def test_the_legend_is_clear_of_the_small_print() -> None:
    figure = draw_dots(dotted())
    figure.draw_without_rendering()
    legend = figure.subfigs[0].legends[0].get_window_extent()
    said = figure._supxlabel.get_window_extent()
    assert said.y1 <= legend.y0


@pytest.mark.long
def test_tables_count_to_every_target(tmp_path: Path) -> None:
    found = dotted()
    assert headings(found)[3:9] == [
        f"{what} to {gap}"
        for gap in ("0.0001", "1e-06")
        for what in ("iterations", "messages", "cost R=100")
    ]
    fast = entries(found, "path")[0]
    row = cells(found, fast)
    later = [float(cell.replace(",", "")) for cell in (row[3], row[6])]
    assert later[1] > later[0]
    written = {path.name for path in write_figure(found, tmp_path)}
    # there are no lines
    assert written == {"dotted.png", "dotted.svg", "dotted.pdf", "dotted-table.csv"}
    with (tmp_path / "dotted-table.csv").open() as file:
        first = next(csv.DictReader(file))
    exact = np.mean([one.reach(1e-6, "messages") for one in fast.result.trained])
    assert float(first["messages_to_1e-06_mean"]) == pytest.approx(exact)


def test_dots_have_no_axis_of_ratios() -> None:
    with pytest.raises(ValidationError, match="layout: dots"):
        experiment({"a": {}}, {"b": {}}, [{"x": "ratio"}], layout="dots")


@pytest.mark.long
def test_floats_are_an_axis_a_column_and_a_claim(tmp_path: Path) -> None:
    found = dotted(
        panels=[{"x": "messages"}, {"x": "floats"}, {"x": "cost"}], floats=True, further_targets=[]
    )
    read, fast = FigureReader(found), entries(found, "path")[0]
    amount, messages = (
        read.amount("path", "fast", "floats"),
        read.amount("path", "fast", "messages"),
    )
    assert amount.value == pytest.approx(messages.value * (1000 + 500 * 0.05))  # as made up
    axes = draw_dots(found).subfigs[0].axes[1]
    assert axes.get_xlabel() == "numbers sent"
    assert (
        min(abs(line.get_xdata()[0] - amount.value) for line in axes.lines if len(line.get_xdata()))
        < 1e-6
    )
    assert (
        dict(zip(headings(found), cells(found, fast), strict=True))["floats"]
        == f"{amount.value:,.0f}"
    )
    write_figure(found, tmp_path)
    with (tmp_path / "dotted-table.csv").open() as file:
        assert float(next(csv.DictReader(file))["floats_mean"]) == pytest.approx(amount.value)
    said, holds = checks.times_less("fast", ["slow"], {"path": 2}, "floats")(read)
    assert holds == "yes"
    assert said.startswith("numbers sent to 0.0001")


@pytest.mark.parametrize(
    ("amounts", "factor", "holds"),
    [
        ((10, 1000, 10, 200), 20, "yes"),
        ((10, 1000, 10, 200), 50, "in part"),
        ((100, 200, 100, 200), 3, "no"),
        ((10, None, 10, None), 50, "yes"),  # never reached within 1000
        ((10, None, 10, None), 200, "open"),
        ((None, 10, None, 10), 1, "open"),
    ],
)
def test_so_many_times_less(amounts, factor: float, holds: str) -> None:
    claim = checks.times_less("us", ["them"], {"one": factor, "two": factor}, "messages")
    assert claim(two(*amounts))[1] == holds


def test_what_is_less_is_said_with_its_factor() -> None:
    read = reader({("one", "us"): reaches(10.0), ("one", "them"): reaches(None)})
    said = checks.times_less("us", ["them"], {"one": 2}, "messages")(read)[0]
    assert "messages between clients to 0.0001" in said
    assert "more than 100 times" in said
