"""Chromium, and pages in it that may neither complain nor ask the network for anything."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Playwright, expect, sync_playwright

from mtcd.reporting.render import render
from shown import Shown
from waiting import PATIENCE

ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
Open = Callable[..., Shown]
expect.set_options(timeout=1000 * PATIENCE)


@pytest.fixture(scope="session")
def playwright() -> Iterator[Playwright]:
    with sync_playwright() as started:
        yield started


@pytest.fixture(scope="session")
def chromium(playwright: Playwright) -> Iterator[Browser]:
    program = shutil.which("chromium")
    assert program, "Chromium is needed: apt-get install chromium"
    browser = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
    yield browser
    browser.close()


@pytest.fixture
def tab(chromium: Browser) -> Iterator[Callable[..., Page]]:
    """Opens tabs; afterwards none of them may have complained, asked or reached for the network."""
    opened, complaints = [], []

    def new(**settings: Any) -> Page:
        context = chromium.new_context(**({"viewport": {"width": 1280, "height": 900}} | settings))
        opened.append(context)
        context.set_default_timeout(1000 * PATIENCE)
        page = context.new_page()
        page.on(
            "console",
            lambda said: (
                complaints.append(said.text) if said.type in ("error", "warning") else None
            ),
        )
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(f"dialog: {dialog.message}"))
        return page

    yield new
    for context in opened:
        context.close()
    assert complaints == []


@pytest.fixture
def open_report(tab: Callable[..., Page], tmp_path: Path) -> Iterator[Open]:
    """Opens reports as files."""
    asked: list[str] = []

    def new(report: dict[str, Any], **settings: Any) -> Shown:
        path = tmp_path / "report.html"
        path.write_text(render(report), encoding="utf-8")
        page = tab(**settings)
        page.on(
            "request",
            lambda request: asked.append(request.url) if request.url != path.as_uri() else None,
        )
        page.goto(path.as_uri())
        return Shown(page)

    yield new
    assert [address for address in asked if not address.startswith(("data:", "blob:"))] == []
