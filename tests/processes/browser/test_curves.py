"""Curves: what against what, both scales, which runs, and values under the pointer."""

import math
from collections.abc import Callable
from typing import Any

from playwright.sync_api import expect

import made_up_reports as made_up
from shown import Shown, number

Open = Callable[..., Shown]
HOSTILE = "<img src=x onerror=alert(1)> & 'b'"
VIEW = """async () => {
  const { model } = await page.shown.curves.view;
  const scale = kind => model[`${kind}_scale`].type;
  return {
    x: scale("x"), y: scale("y"), labels: model.axes.map(axis => axis.axis_label),
    lines: model.renderers.map(one => one.data_source.data).map(data => [[...data.x], [...data.y], data.run[0]]),
  };
}"""
POINT = """async ([x, y]) => {
  const view = await page.shown.curves.view;
  const box = view.canvas_view.el.getBoundingClientRect();
  return [box.left + view.frame.x_scale.compute(x), box.top + view.frame.y_scale.compute(y)];
}"""

TICKS = """async () => {
  const view = await page.shown.curves.view;
  const axis = view.model.left[0];
  const { major } = axis.ticker.get_ticks(view.model.y_range.start, view.model.y_range.end, view.model.y_range, 0);
  return axis.formatter.doFormat(major, { loc: 0 });
}"""


def objectives(*values: float) -> dict[str, Any]:
    count = [float(n) for n in range(len(values))]
    return {
        "columns": {"iteration": count, "objective": list(values)},
        "x": ["iteration"],
        "y": ["objective"],
    }


def two() -> list[dict[str, Any]]:
    return [made_up.run("short"), made_up.run(HOSTILE) | {"curves": made_up.curves(60, 3.0)}]


def test_what_is_drawn_is_what_was_asked_for(open_report: Open) -> None:
    runs = two()
    shown = open_report(made_up.report(*runs))
    drawn = shown.page.evaluate(VIEW)
    assert (drawn["x"], drawn["y"], drawn["labels"]) == (
        "LinearScale",
        "LogScale",
        ["iteration", "gap"],
    )
    shown.page.locator("#curve-y").select_option("train_accuracy")
    shown.page.locator("#curve-x").select_option("bytes")
    drawn = shown.page.evaluate(VIEW)
    assert (drawn["y"], drawn["labels"]) == ("LinearScale", ["bytes", "train accuracy"])
    for (x, y, name), run in zip(drawn["lines"], runs, strict=True):
        columns = run["curves"]["columns"]
        assert (x, y, name) == (columns["bytes"], columns["train_accuracy"], run["name"])


def test_the_switches_of_the_scales(open_report: Open) -> None:
    shown = open_report(made_up.report(*two()))
    shown.page.get_by_label("log horizontal").check()
    shown.page.get_by_label("log vertical").uncheck()
    drawn = shown.page.evaluate(VIEW)
    assert (drawn["x"], drawn["y"]) == ("LogScale", "LinearScale")
    assert math.isnan(drawn["lines"][0][0][0])  # a logarithmic scale has no place for iteration 0
    assert drawn["lines"][0][0][1:3] == [1, 2]
    expect(shown.page.locator("#plot canvas").first).to_be_visible()
    assert shown.page.locator("#plot > div").count() == 1


def test_the_legend_takes_a_run_away_and_brings_it_back(open_report: Open) -> None:
    shown = open_report(made_up.report(*two()))
    shown.page.get_by_role("checkbox", name="short").uncheck()
    assert [name for *_, name in shown.page.evaluate(VIEW)["lines"]] == [HOSTILE]
    shown.page.get_by_role("checkbox", name="short").check()
    assert [name for *_, name in shown.page.evaluate(VIEW)["lines"]] == ["short", HOSTILE]


def test_the_last_values_are_in_a_table(open_report: Open) -> None:
    shown = open_report(made_up.report(*two()))
    rows = shown.table("#ends")
    assert [row["Run"] for row in rows] == ["short", HOSTILE]
    assert [row["Last iteration"] for row in rows] == ["39", "59"]
    gaps = [number(row["Last gap"]) for row in rows]
    assert gaps == [float(f"{0.8**39:.2e}"), float(f"{3 * 0.8**59:.2e}")]


def test_values_under_the_pointer_with_a_name_that_looks_like_html(open_report: Open) -> None:
    shown = open_report(made_up.report(*two()))
    shown.page.locator("#plot").scroll_into_view_if_needed()
    shown.page.evaluate(VIEW)  # waits for the picture
    x, y = shown.page.evaluate(POINT, [30, 3 * 0.8**30])
    shown.page.mouse.move(x - 20, y)
    shown.page.mouse.move(x, y, steps=4)
    tip = shown.page.locator("body > div").filter(has_text="<img")
    expect(tip).to_contain_text(HOSTILE)
    expect(tip).to_contain_text("30")
    assert tip.locator("img").count() == 0


def test_a_mark_goes_with_the_slider(open_report: Open) -> None:
    run = made_up.run()
    shown = open_report(made_up.report(run))
    mark = "() => [page.shown.curves.span.visible, page.shown.curves.span.location]"
    shown.slide(12)  # five steps in each iteration
    assert shown.page.evaluate(mark) == [True, 3]
    shown.page.locator("#curve-x").select_option("bytes")
    assert shown.page.evaluate(mark) == [True, 2400]
    shown.slide(0)
    assert shown.page.evaluate(mark)[0] is False


def test_a_diverged_run_hides_no_other_run(open_report: Open) -> None:
    usual = made_up.run("usual") | {"curves": objectives(9.0, 5.0, 4.0)}
    diverged = made_up.run("diverged") | {
        "curves": objectives(9.0, 7429988630353069e18),
        "status": "diverged",
    }
    shown = open_report(made_up.report(usual, diverged))
    assert shown.page.evaluate(VIEW)["y"] == "LogScale"
    assert [row["Last objective"] for row in shown.table("#ends")] == ["4", "7.43e33"]
    shown.page.get_by_role("checkbox", name="diverged").uncheck()
    assert [name for *_, name in shown.page.evaluate(VIEW)["lines"]] == ["usual"]


def test_the_numbers_of_a_linear_axis_are_as_long_as_they_must_be(open_report: Open) -> None:
    def ticks(*values: float) -> list[str]:
        return open_report(
            made_up.report(made_up.run() | {"curves": objectives(*values)})
        ).page.evaluate(TICKS)

    assert "200,000" in ticks(377000.0, 1000.0)
    assert "0" in ticks(377000.0, 1000.0)
    assert "25.8926" in ticks(25.8925, 25.8929)
    assert "2e8" in ticks(377000000.0, 1000000.0)
