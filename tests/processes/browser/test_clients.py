"""The table of clients: sorted by any column, filtered by name and state, in pages."""

from collections.abc import Callable

from playwright.sync_api import expect

import made_up_reports as made_up
from shown import Shown, visits_after

Open = Callable[..., Shown]


def sort_by(shown: Shown, heading: str) -> None:
    shown.page.get_by_role("button", name=heading, exact=True).click()


def test_a_click_on_a_heading_sorts_and_another_turns_it_round(open_report: Open) -> None:
    run = made_up.run(clients=20)
    shown = open_report(made_up.report(run))
    norms = {client["name"]: client["norm"] for client in run["clients"]}
    sort_by(shown, "Norm of its block")
    order = [norms[name] for name in shown.column("Client")]
    assert order == sorted(norms.values())
    expect(shown.page.locator("th[aria-sort=ascending]")).to_have_text("Norm of its block")
    shown.page.keyboard.press("Enter")  # the heading has kept the focus
    assert [norms[name] for name in shown.column("Client")] == sorted(norms.values(), reverse=True)
    expect(shown.page.locator("th[aria-sort=descending]")).to_have_text("Norm of its block")


def test_sorted_by_visits_the_order_follows_the_slider(open_report: Open) -> None:
    run = made_up.run()
    shown = open_report(made_up.report(run))
    sort_by(shown, "Visits so far")
    sort_by(shown, "Visits so far")
    for step in (2, 9, 25):
        shown.slide(step)
        counted = visits_after(run, step)
        assert list(shown.visits().values()) == sorted(counted.values(), reverse=True)
        assert shown.visits() == counted


def test_a_row_of_numbers_takes_one_line_on_a_phone(open_report: Open) -> None:
    run = made_up.run(iterations=600)
    run["coefficients"][0]["client"] = 60 * "a"
    shown = open_report(made_up.report(run), viewport={"width": 360, "height": 700})
    shown.slide(400)
    heights = [
        box.bounding_box()["height"] for box in shown.page.locator("#client-table tbody tr").all()
    ]
    assert max(heights) < 45
    inside = shown.page.evaluate(
        "() => { const e = page.at('coefficient-table').tBodies[0].rows[0].cells[2];"
        "return e.getBoundingClientRect().right <= innerWidth }"
    )
    assert inside


def test_names_sort_by_their_numbers(open_report: Open) -> None:
    run = made_up.run()
    for k, client in enumerate(run["clients"]):
        client["name"] = f"site {11 - k}"
    shown = open_report(made_up.report(run))
    sort_by(shown, "Client")
    assert shown.column("Client") == [f"site {k}" for k in range(12)]


def test_the_filters_keep_what_they_say(open_report: Open) -> None:
    run = made_up.run(clients=40)
    for k, client in enumerate(run["clients"]):
        client["state"] = "gone" if k % 3 == 0 else "up"
    shown = open_report(made_up.report(run))
    shown.page.get_by_label("Filter").fill("Clinic 1")
    assert shown.column("Client") == [f"clinic {k}" for k in range(10, 20)]
    shown.page.get_by_label("State").select_option("gone")
    assert shown.column("Client") == ["clinic 12", "clinic 15", "clinic 18"]
    assert set(shown.column("State")) == {"gone"}
    shown.page.get_by_label("Filter").fill("nobody")
    assert shown.table() == []
    assert shown.text("#page") == "No client matches the filter."


def test_pages_of_many_clients(open_report: Open) -> None:
    shown = open_report(made_up.report(made_up.run(clients=60)))
    before, after = (shown.page.get_by_role("button", name=name) for name in ("Previous", "Next"))
    expect(before).to_be_disabled()
    seen = shown.column("Client")
    for _ in range(2):
        after.click()
        seen += shown.column("Client")
    expect(after).to_be_disabled()
    assert seen == [f"clinic {k:02d}" for k in range(60)]
    before.click()
    assert shown.text("#page") == "26 to 50 of 60"


def test_a_client_is_chosen_in_the_table_by_keyboard(open_report: Open) -> None:
    shown = open_report(made_up.report(made_up.run()))
    shown.page.get_by_role("button", name="clinic 07").focus()
    shown.page.keyboard.press("Enter")
    expect(shown.page.locator("#client-name")).to_have_text("clinic 07")
    chosen = shown.page.get_by_role("button", name="clinic 07")
    expect(chosen).to_have_attribute("aria-pressed", "true")
    expect(chosen).to_be_focused()
