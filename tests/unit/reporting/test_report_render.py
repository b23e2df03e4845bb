"""The page of a report as a file: everything inside, nothing from outside, and data that stays
data."""

import base64
import hashlib
import json
import sys
from html.parser import HTMLParser
from typing import Any

import pytest

import made_up_reports as made_up
from mtcd.core.errors import NotInstalledError
from mtcd.reporting.render import render

HOSTILE = (
    "</script><script>alert(1)</script> \u2028 \" ' & <!-- {{scripts}} <img src=x onerror=alert(1)>"
)


class Parts(HTMLParser):
    """The scripts of a page, as a parser of HTML sees them, its policy, its title and the addresses
    it would load."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.addresses: list[str | None] = []
        self.policy = self.title = ""
        self.inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.inside = tag
        self.addresses += [found[name] for name in ("src", "href") if name in found]
        if tag == "script":
            self.scripts.append((found, ""))
        if tag == "meta" and found.get("http-equiv") == "Content-Security-Policy":
            self.policy = str(found["content"])

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""

    def handle_data(self, data: str) -> None:
        if self.inside == "title":
            self.title += data
        if self.inside == "script":
            attributes, text = self.scripts[-1]
            self.scripts[-1] = (attributes, text + data)


def hostile() -> dict[str, Any]:
    run = made_up.run(HOSTILE) | {"notes": [HOSTILE], "yaml": HOSTILE}
    run["clients"][0]["name"] = HOSTILE
    return made_up.report(run, title=HOSTILE)


def test_the_report_comes_out_as_it_went_in_whatever_it_holds() -> None:
    report = hostile()
    parts = Parts(render(report))
    assert parts.title == HOSTILE
    data = [
        text for attributes, text in parts.scripts if attributes.get("type") == "application/json"
    ]
    assert [json.loads(text) for text in data] == [report]
    assert len(parts.scripts) == 4  # the report, BokehJS and its interface, the page's own


def test_the_policy_allows_the_scripts_of_the_page_by_their_hashes_and_no_address() -> None:
    parts = Parts(render(hostile()))
    rules = dict(rule.strip().split(" ", 1) for rule in parts.policy.split(";"))
    code = [text for attributes, text in parts.scripts if "type" not in attributes]
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in code]
    assert rules["script-src"].split() == [f"'sha256-{one}'" for one in hashes]
    assert rules["default-src"] == rules["connect-src"] == "'none'"
    icon, *others = parts.addresses
    assert icon.startswith("data:image/svg+xml,")  # otherwise browsers ask a server for one
    assert others == ["#clients"]
    live = Parts(render(hostile() | {"mode": "live"}))
    assert "connect-src 'self'" in live.policy


@pytest.mark.long
def test_a_page_of_two_thousand_clients_is_below_three_megabytes() -> None:
    text = render(
        made_up.report(made_up.run(clients=2000, tokens=8, iterations=40, hops=60, degree=6))
    )
    assert len(text.encode()) < 3_000_000


def test_without_bokeh_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    from mtcd.reporting import render as module

    module._scripts.cache_clear()
    monkeypatch.setitem(sys.modules, "bokeh", None)
    with pytest.raises(NotInstalledError, match=r"\.\[report\]"):
        render(made_up.report(made_up.run()))
