"""The page around: texts as they are, copying, light and dark, any width, names for screen readers,
contrast."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

import made_up_reports as made_up
from shown import Shown, number

Open = Callable[..., Shown]
HOSTILE = (
    "</script><script>alert(1)</script>\u2028 \" ' & <!-- {{scripts}} <img src=x onerror=alert(1)>"
)
FAINT = """() => {
  const rgb = text => (text.match(/[\\d.]+/g) ?? []).map(Number);
  const straight = v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => [r, g, b].map(v => straight(v / 255))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = node => {
    for (let one = node; one; one = one.parentElement) {
      const colour = rgb(getComputedStyle(one).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const texts = [...document.querySelectorAll("body *")].filter(node => node.checkVisibility()
    && !node.disabled && [...node.childNodes].some(child => child.nodeType === 3 && child.data.trim()));
  const ratio = node => {
    const [a, b] = [light(rgb(getComputedStyle(node).color)), light(behind(node))];
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  };
  const told = node => `${node.outerHTML.slice(0, 90)} ${ratio(node)}`;
  return [texts.length, texts.filter(node => ratio(node) < 4.5).map(told)];
}"""


def hostile() -> dict[str, Any]:
    run = made_up.run(HOSTILE) | {
        "message": HOSTILE,
        "notes": [HOSTILE],
        "yaml": HOSTILE,
        "ledger": [[HOSTILE, HOSTILE]],
    }
    run |= {"facts": [[HOSTILE, HOSTILE]], "status": HOSTILE}
    run["coefficients"] = [{"client": HOSTILE, "column": HOSTILE, "value": -1.5}]
    run["links"][0]["link"] = HOSTILE
    run["network"]["kind"] = HOSTILE
    run["clients"][0] |= {"name": HOSTILE, "detail": HOSTILE}
    return made_up.report(run, title=HOSTILE)


def test_what_looks_like_html_is_shown_as_text(open_report: Open) -> None:
    shown = open_report(hostile())
    assert shown.page.title() == " ".join(HOSTILE.split(" "))
    for selector in (
        "#title",
        "#run-name",
        "#note-list li",
        "#yaml",
        "#facts dt",
        "#client-table button[data-client='0']",
    ):
        assert shown.page.locator(selector).first.text_content() == HOSTILE
    assert HOSTILE in shown.page.locator("#network-caption").text_content()
    shown.page.locator("#canvas").focus()
    shown.page.keyboard.press("ArrowDown")
    assert shown.page.locator("#client-name").text_content() == HOSTILE
    shown.page.locator("#party").select_option(index=1)
    assert shown.table("#coefficient-table")[0]["Coefficient"] == "\N{MINUS SIGN}1.5"
    assert shown.page.locator("img").count() == 0
    assert shown.page.locator("script").count() == 4


def test_the_settings_are_copied_as_they_are(open_report: Open) -> None:
    run = made_up.run()
    shown = open_report(made_up.report(run), permissions=["clipboard-read", "clipboard-write"])
    shown.page.get_by_role("button", name="Copy the YAML").click()
    expect(shown.page.locator("#copy")).to_have_text("Copied")
    assert shown.page.evaluate("() => navigator.clipboard.readText()") == run["yaml"]
    expect(shown.page.get_by_role("button", name="Copy the YAML")).to_be_visible()


def test_the_party_chosen_has_its_coefficients(open_report: Open) -> None:
    run = made_up.run()
    shown = open_report(made_up.report(run))
    shown.page.get_by_label("Party").select_option("clinic 02")
    values = [one["value"] for one in run["coefficients"] if one["client"] == "clinic 02"]
    rows = [number(row["Coefficient"]) for row in shown.table("#coefficient-table")]
    assert rows == [float(f"{value:.4g}") for value in sorted(values, key=abs, reverse=True)]


def test_messages_by_kind_of_link(open_report: Open) -> None:
    shown = open_report(made_up.report(made_up.run()))
    rows = shown.table("#link-table")
    assert [(row["Link"], row["Messages"], row["Bytes"]) for row in rows][:2] == [
        ("between clients", "60", "48 kB"),
        ("to the server", "15", "12 kB"),
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_can_be_read_in_the_light_and_in_the_dark(
    open_report: Open, scheme: str
) -> None:
    run = made_up.run()
    run["clients"][3]["state"] = "gone"
    shown = open_report(
        made_up.report(run, run | {"name": "b", "status": "diverged"}), color_scheme=scheme
    )
    first = shown.page.evaluate("() => page.dark()")
    assert first is (scheme == "dark")
    count, faint = shown.page.evaluate(FAINT)
    assert count > 100
    assert faint == []
    shown.page.locator("#run").select_option("b")
    shown.page.get_by_role("button", name="Dark").click()
    assert shown.page.evaluate("() => page.dark()") is not first
    assert shown.page.evaluate(FAINT)[1] == []


@pytest.mark.parametrize("width", [320, 768, 2560])
def test_nothing_is_wider_than_the_screen(open_report: Open, width: int) -> None:
    run = made_up.run(clients=30) | {"name": "a-name-of-a-run-that-is-rather-long-" * 3}
    run["clients"][0]["name"] = "an_organisation_with_a_name_of_one_long_word_" * 3
    shown = open_report(
        made_up.report(run, made_up.run()), viewport={"width": width, "height": 700}
    )
    assert shown.page.evaluate("() => document.documentElement.scrollWidth") <= width
    box = shown.page.locator("#canvas").bounding_box()
    assert box
    assert box["width"] > 0.6 * min(width, 1100)


def test_every_control_has_a_name_and_the_tab_key_reaches_it(open_report: Open) -> None:
    shown = open_report(made_up.report(made_up.run(), made_up.run("b")))
    shown.page.evaluate("() => page.shown.curves.view")
    session = shown.page.context.new_cdp_session(shown.page)
    nodes = session.send("Accessibility.getFullAXTree")["nodes"]
    focusable = [
        (node["role"]["value"], node.get("name", {}).get("value", "").strip())
        for node in nodes
        if any(
            one["name"] == "focusable" and one["value"]["value"]
            for one in node.get("properties", [])
        )
    ]
    assert len(focusable) > 30
    assert [role for role, name in focusable if not name] == []
    reached = set()
    for _ in range(len(focusable) + 5):
        shown.page.keyboard.press("Tab")
        reached.add(shown.page.evaluate("() => document.activeElement.id"))
    ids = {
        "run",
        "theme",
        "canvas",
        "back",
        "play",
        "forward",
        "slider",
        "speed",
        "curve-y",
        "curve-x",
        "log-y",
        "log-x",
    }
    assert ids | {"filter", "state-filter", "party", "copy", "yaml"} <= reached


def test_screen_readers_hear_nothing_while_the_picture_plays(open_report: Open) -> None:
    shown = open_report(made_up.report(made_up.run()))
    shown.page.locator("#play").click()
    expect(shown.page.locator("#clock")).to_contain_text(re.compile("step ([3-9]|1[0-9]) of"))
    assert shown.page.locator("#announcer").text_content() == ""
    live = shown.page.locator("[aria-live]:not([aria-live=off]), [role=alert], [role=log]")
    assert live.evaluate_all("nodes => nodes.map(node => node.id)") == ["announcer"]
    assert shown.page.locator("#clock").get_attribute("aria-live") == "off"


def test_a_report_without_runs_says_so(open_report: Open) -> None:
    shown = open_report(made_up.report())
    expect(shown.page.get_by_text("There is no run to show yet.")).to_be_visible()
