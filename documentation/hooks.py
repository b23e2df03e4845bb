"""Hooks of MkDocs: formulas as MathML, links that leave the pages, and a warning where a page is
behind the code.

MathML is made here, while the site is built, because the site must work without a network: MathJax
and KaTeX would have to be fetched, or kept here as megabytes of script and fonts.
"""

from __future__ import annotations

import html
import logging
import posixpath
import re
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.structure.files import File

from documentation.regions import stale_pages

LOG = logging.getLogger("mkdocs.hooks.documentation")
ROOT = Path(__file__).parents[1]
# pages of the site all the same
OUTSIDE = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)
LINK = re.compile(r"\]\(([^)#\s]+)(#[^)\s]*)?\)")


def on_pre_build(config: Any) -> None:
    """A page that the code has left behind fails a strict build."""
    for page in stale_pages():
        LOG.warning(
            "%s is not what the code says: run python -m documentation.", page.relative_to(ROOT)
        )


def on_files(files: Any, config: Any) -> Any:
    """Pages of the site that lie outside of docs/, and the files that pages link to."""
    for source, target in OUTSIDE.items():
        files.append(
            File.generated(config, target, content=(ROOT / source).read_text(encoding="utf-8"))
        )
    pages = [page for page in files.documentation_pages() if page.src_uri not in OUTSIDE.values()]
    for path in sorted({path for page in pages for path in _linked_outside(page.content_string)}):
        if path.is_file():
            name = str(path.relative_to(ROOT))
            files.append(
                File.generated(config, _as_text(name), content=path.read_text(encoding="utf-8"))
            )
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Links as they are right in the site; in the repository they are right as they stand."""
    folder = ROOT if page.file.src_uri in OUTSIDE.values() else ROOT / "docs"

    def moved(found: re.Match[str]) -> str:
        address, anchor = found[1], found[2] or ""
        if "://" in address or address.startswith("mailto:"):
            return found[0]
        name = posixpath.relpath(posixpath.normpath(f"{folder}/{address}"), ROOT)
        if not (ROOT / name).exists():
            return found[0]  # MkDocs warns of it
        return f"]({_in_site(name)}{anchor})"

    return LINK.sub(moved, markdown)


def on_page_content(content: str, page: Any, config: Any, files: Any) -> str:
    """Formulas as MathML."""

    def formula(found: re.Match[str]) -> str:
        return convert(
            html.unescape(found[2]).strip(), display="block" if found[1] == "div" else "inline"
        )

    return FORMULA.sub(formula, content)


def _linked_outside(markdown: str) -> list[Path]:
    addresses = [found[1] for found in LINK.finditer(markdown) if found[1].startswith("../")]
    return [
        ROOT / "docs" / address
        for address in addresses
        if address.removeprefix("../") not in OUTSIDE
    ]


def _as_text(name: str) -> str:
    """Browsers show a text, and download a program."""
    return f"source/{posixpath.normpath(name)}.txt"


def _in_site(name: str) -> str:
    if name in OUTSIDE:
        return OUTSIDE[name]
    return name.removeprefix("docs/") if name.startswith("docs/") else _as_text(name)
