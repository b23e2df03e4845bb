"""Time: slider, buttons, keys and speed, against a count of the hops in Python."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

import made_up_reports as made_up
from shown import Shown, visits_after

Open = Callable[..., Shown]
STEPS = 5 * (4 + 1)  # iterations of four hops and the way back to the server


@pytest.mark.parametrize("server", [True, False])
def test_visits_at_the_time_of_the_slider_are_those_of_the_trace(
    open_report: Open, server: bool
) -> None:
    run = made_up.run(server=server)
    last = STEPS if server else STEPS - 5
    shown = open_report(made_up.report(run))
    assert shown.visits() == visits_after(run, last)
    for step in (0, 1, 7, last - 1, 3, last):
        shown.slide(step)
        assert shown.visits() == visits_after(run, step)
    assert {client["name"]: client["visits"] for client in run["clients"]} == shown.visits()


def test_the_age_of_a_visit_is_counted_in_iterations(open_report: Open) -> None:
    run = made_up.run()
    shown = open_report(made_up.report(run))
    step = 12
    shown.slide(step)
    rows = step * run["trace"]["tokens"]
    now = run["trace"]["iteration"][rows - 1]
    for number, said in enumerate(shown.column("Last visit")):
        visited = [
            i
            for i, s in zip(run["trace"]["iteration"][:rows], run["trace"]["sender"], strict=False)
            if s == number
        ]
        age = now - visited[-1] if visited else None
        known = {None: "never", 0: "this iteration", 1: "1 iteration ago"}
        assert said == known.get(age, f"{age} iterations ago")


def test_where_each_token_is_and_how_far_it_came(open_report: Open) -> None:
    run = made_up.run()
    shown = open_report(made_up.report(run))
    shown.slide(3)
    # after a message of the server, which is no hop, and two hops
    places = run["trace"]["receiver"][6:9]
    assert shown.page.locator("#tokens li").all_inner_texts() == [
        f"token\n{token}\n{run['clients'][place]['name']}\n2 hops"
        for token, place in enumerate(places)
    ]


def test_arrows_step_and_space_plays_wherever_the_focus_is_free_or_on_the_picture(
    open_report: Open,
) -> None:
    shown = open_report(made_up.report(made_up.run()))
    keys = shown.page.keyboard
    keys.press("ArrowLeft")
    shown.at_step(STEPS - 1)
    shown.page.locator("#canvas").focus()
    keys.press("Home")
    shown.at_step(0)
    keys.press("ArrowRight")
    keys.press("Shift+ArrowRight")
    shown.at_step(11)
    keys.press(" ")
    expect(shown.page.locator("#play")).to_have_text("Pause")
    keys.press(" ")
    expect(shown.page.locator("#play")).to_have_text("Play")
    keys.press("End")
    shown.at_step(STEPS)


def test_play_runs_to_the_end_and_starts_anew_from_there(open_report: Open) -> None:
    run = made_up.run()
    shown = open_report(made_up.report(run))
    shown.page.locator("#speed").select_option("16")
    shown.page.locator("#play").click()
    expect(shown.page.locator("#play")).to_have_text("Pause")
    expect(shown.page.locator("#play")).to_have_text("Play")
    shown.at_step(STEPS)
    assert shown.visits() == visits_after(run, STEPS)
    shown.page.locator("#speed").select_option("1")
    shown.page.locator("#play").click()
    expect(shown.page.locator("#clock")).to_contain_text(re.compile("step ([1-9]|1[0-9]) of"))
    shown.page.locator("#play").click()
    step = int(shown.page.locator("#slider").input_value())
    assert shown.visits() == visits_after(run, step)


def test_buttons_of_single_steps(open_report: Open) -> None:
    shown = open_report(made_up.report(made_up.run()))
    shown.slide(4)
    shown.page.locator("#forward").click()
    shown.at_step(5)
    shown.page.locator("#back").click()
    shown.page.locator("#back").click()
    shown.at_step(3)


def test_stretches_of_a_thinned_trace_follow_each_other_and_the_page_says_so(
    open_report: Open,
) -> None:
    run = made_up.run()
    kept = [*range(0, 30), *range(60, 75)]
    thin = {
        key: [run["trace"][key][n] for n in kept]
        for key in ("token", "sender", "receiver", "iteration", "seconds")
    }
    run["trace"] |= thin | {"windows": [[0, 30], [30, 45]]}
    shown = open_report(made_up.report(run))
    shown.at_step(15)
    shown.slide(11)
    assert shown.visits() == visits_after(run, 11)
    assert "45 of 75 messages are shown" in shown.text("#network-caption")


def test_with_reduced_motion_tokens_never_stand_between_two_clients(open_report: Open) -> None:
    shown = open_report(made_up.report(made_up.run()), reduced_motion="reduce")
    drawn = """() => new Promise(done => {
      const seen = [], draw = page.Picture.prototype.draw;
      page.Picture.prototype.draw = function (...all) { seen.push(all[1]); draw.apply(this, all); };
      page.at("play").click();
      setTimeout(() => done(seen), 700);
    })"""
    seen = shown.page.evaluate(drawn)
    assert len(seen) > 1
    assert set(seen) == {0}


def exchanged(run: dict[str, Any], rounds: int, server: bool) -> None:
    """A method without tokens: with the server, or all neighbours with each other in every
    round."""
    clients = range(len(run["clients"]))
    there = (
        [(k, -1, k) for k in clients] if server else [(a, a, b) for a, b in run["network"]["edges"]]
    )
    back = (
        [(k, k, -1) for k in clients] if server else [(b, b, a) for a, b in run["network"]["edges"]]
    )
    rows = [(*row, t) for t in range(1, rounds + 1) for row in [*there, *back]]
    names = ("token", "sender", "receiver", "iteration")
    columns = {
        name: list(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)
    }
    run["trace"] = {
        **columns,
        "seconds": [None] * len(rows),
        "tokens": len(clients),
        "total": len(rows),
        "windows": None,
    }


@pytest.mark.parametrize(("server", "steps"), [(True, 12), (False, 6)])
def test_a_method_without_tokens_shows_messages_round_by_round(
    open_report: Open, server: bool, steps: int
) -> None:
    run = made_up.run()
    exchanged(run, 6, server)
    shown = open_report(made_up.report(run))
    shown.at_step(steps)
    assert set(shown.visits().values()) == {6}
    shown.slide(steps // 2)
    assert set(shown.visits().values()) == {3}
    expect(shown.page.locator("#tokens-part")).to_be_hidden()
    moving = shown.page.evaluate("() => page.shown.steps.moving().length")
    assert moving == (12 if server else 2 * len(run["network"]["edges"]))


def test_clients_that_were_visited_at_an_unknown_time_were_not_visited_never(
    open_report: Open,
) -> None:
    """As on the page of a federation that runs: totals are known, and of messages a few."""
    run = made_up.run()
    whole = run["trace"]
    run["trace"] = whole | {
        **{key: whole[key][:15] for key in ("token", "sender", "receiver", "iteration", "seconds")},
        "windows": [[0, 15]],
    }
    for number, client in enumerate(run["clients"]):
        client["visits"] = 500 if number else 0
        client["last_visit"] = None
    shown = open_report(made_up.report(run))
    assert shown.column("Last visit") == ["never", *["\u2013"] * (len(run["clients"]) - 1)]


def test_totals_of_a_thinned_trace_count_the_messages_that_were_left_out(open_report: Open) -> None:
    run = made_up.run()
    whole = run["trace"]
    kept = [*range(0, 30), *range(60, 75)]
    thin = {
        key: [whole[key][n] for n in kept]
        for key in ("token", "sender", "receiver", "iteration", "seconds")
    }
    before = [[0] * 12, [whole["sender"][:60].count(k) for k in range(12)]]
    hops = [7 * (n + 1) for n in kept]
    known = {"hops": hops, "all_hops": [1000, 2000, 3000], "visits_before": before}
    run["trace"] = whole | thin | known | {"windows": [[0, 30], [30, 45]]}
    for client in run["clients"]:
        client["visits"] += 500
        client["last_visit"] = 900
    shown = open_report(made_up.report(run))
    shown.at_step(15)
    told = shown.page.locator("#tokens li").all_inner_texts()
    assert [one.rpartition("\n")[2] for one in told] == ["1,000 hops", "2,000 hops", "3,000 hops"]
    assert shown.visits() == {client["name"]: client["visits"] for client in run["clients"]}
    # the tokens came to iteration 3,000
    assert set(shown.column("Last visit")) == {"2,100 iterations ago"}
    shown.slide(11)  # the first step after the gap
    counted = {
        client["name"]: before[1][k] + whole["sender"][60:63].count(k)
        for k, client in enumerate(run["clients"])
    }
    assert shown.visits() == counted
    assert "count these alone" not in shown.text("#network-caption")


def test_the_numbers_of_an_axis_are_never_the_same(open_report: Open) -> None:
    shown = open_report(made_up.report(made_up.run()))
    for values in (
        [27.7966, 27.7967, 27.7968],
        [27.8 + n * 4e-15 for n in range(5)],
        [1e9 + n for n in range(4)],
        [0.5],
    ):
        told = [
            text for text in shown.page.evaluate("values => page.ticks(values)", values) if text
        ]
        assert told
        assert len(set(told)) == len(told)
