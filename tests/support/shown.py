"""A page as its reader sees it: what tables and texts say, and the controls that the reader
uses."""

from __future__ import annotations

from collections import Counter
from typing import Any

from playwright.sync_api import Page, expect


class Shown:
    """A report in a tab."""

    def __init__(self, page: Page) -> None:
        self.page = page

    def text(self, selector: str) -> str:
        return self.page.locator(selector).inner_text()

    def table(self, selector: str = "#client-table") -> list[dict[str, str]]:
        """The rows of a table that are visible, by heading."""
        rows: list[list[str]] = self.page.eval_on_selector_all(
            f"{selector} tr",
            "rows => rows.map(row => [...row.cells].map(cell => cell.innerText.trim()))",
        )
        return [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]

    def column(self, heading: str) -> list[str]:
        return [row[heading] for row in self.table()]

    def visits(self) -> dict[str, int]:
        return {row["Client"]: int(row["Visits so far"]) for row in self.table()}

    def slide(self, step: int) -> None:
        self.page.locator("#slider").fill(str(step))
        self.at_step(step)

    def at_step(self, step: int) -> None:
        expect(self.page.locator("#clock")).to_contain_text(f"step {step:,} of ")

    def spot(self, place: int) -> tuple[float, float]:
        """Where a client is on the screen."""
        self.page.locator("#canvas").scroll_into_view_if_needed()
        x, y = self.page.evaluate(
            """place => {
              const box = page.at("canvas").getBoundingClientRect();
              const [x, y] = page.spot(page.shown.picture.geometry, place);
              return [box.left + x, box.top + y];
            }""",
            place,
        )
        return x, y


def visits_after(run: dict[str, Any], step: int) -> dict[str, int]:
    """Visits that have ended, counted from the trace: in a made-up one all tokens make one hop at
    each step."""
    trace = run["trace"]
    counted = Counter(trace["sender"][: step * trace["tokens"]])
    return {client["name"]: counted[k] for k, client in enumerate(run["clients"])}


def number(text: str) -> float:
    """A number as the page writes it."""
    return float(text.replace("\N{MINUS SIGN}", "-").replace(",", ""))
