"""The web page of a report: one HTML file with its data, its code and BokehJS inside, which needs
no network.

The scripts are allowed by their hashes and nothing else is, so that a name or a note of a report
can never run.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

from mtcd.core.optional import find

FILES = Path(__file__).parent / "page_files"
STYLES = ("base.css", "parts.css")
SCRIPTS = (
    "dom.js",
    "colours.js",
    "steps.js",
    "geometry.js",
    "zoom.js",
    "tokens.js",
    "network.js",
    "player.js",
    "panel.js",
    "clients.js",
    "curves.js",
    "tables.js",
    "live.js",
    "pointing.js",
    "main.js",
)
BOKEH = ("bokeh.min.js", "bokeh-api.min.js")


def render(report: dict[str, Any]) -> str:
    """The page that shows a report (a document of ``mtcd.reporting.document``)."""
    scripts = _scripts()
    parts = {
        "policy": _policy(scripts, served=report["mode"] != "file"),
        "title": html.escape(str(report["title"])),
        "style": "".join(_read(name) for name in STYLES),
        # data, not code: the policy does not let it run, whatever names are in it
        "report": _as_text(report),
        "scripts": "\n".join(f"<script>{script}</script>" for script in scripts),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], _read("page.html"))


def _as_text(report: dict[str, Any]) -> str:
    """JSON that no HTML parser ends early; a number that is not finite is an error of whoever made
    the report."""
    return json.dumps(report, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


@cache
def _scripts() -> tuple[str, ...]:
    """BokehJS from the installed package, and the page's own code as one script."""
    folder = Path(str(find("bokeh").__file__)).parent / "server" / "static" / "js"
    own = '"use strict";\n' + "".join(_read(name) for name in SCRIPTS)
    return (*((folder / name).read_text(encoding="utf-8") for name in BOKEH), own)


@cache
def _read(name: str) -> str:
    return (FILES / name).read_text(encoding="utf-8")


def _policy(scripts: tuple[str, ...], served: bool) -> str:
    """What the page may load and run: its own scripts, and, where it is served, the newest
    report."""
    hashes = []
    for script in scripts:
        digest = hashlib.sha256(script.encode()).digest()
        hashes.append(f"'sha256-{base64.b64encode(digest).decode()}'")
    allowed = " ".join(hashes)

    # from a file, a page has no server to ask
    asks = "'none'"
    if served:
        asks = "'self'"
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: "
        f"blob:; connect-src {asks}; base-uri 'none'; form-action 'none'"
    )
