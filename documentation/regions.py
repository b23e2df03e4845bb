"""Parts of a page that are made from the code: between ``<!-- from the code: KIND ARGUMENTS -->``
and its end.

They are written into the pages, so that these can be read without building the site; ``python -m
documentation`` writes them again, and the build of the site and the tests fail where one is not
what the code says.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from documentation.api import api_reference
from documentation.commands import command_reference
from documentation.excerpts import excerpt
from documentation.keys import key_table
from documentation.layers import layer_list

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs"
REGION = re.compile(
    r"^<!-- from the code: (\w+) ?(.*?) -->\n(.*?)^<!-- end -->$", re.MULTILINE | re.DOTALL
)
MAKERS: dict[str, Callable[..., str]] = {
    "api": api_reference,
    "commands": command_reference,
    "excerpt": excerpt,
    "keys": key_table,
    "layers": layer_list,
}


def fresh(text: str) -> str:
    """The page with every such part as the code has it now."""

    def make(found: re.Match[str]) -> str:
        kind, arguments, _ = found.groups()
        made = MAKERS[kind](*arguments.split())
        return f"<!-- from the code: {' '.join([kind, *arguments.split()])} -->\n{made.rstrip()}\n\n<!-- end -->"

    return REGION.sub(make, text)


def stale_pages(folder: Path = PAGES) -> dict[Path, str]:
    """The pages that the code has left behind, with what they should be."""
    texts = {page: page.read_text(encoding="utf-8") for page in sorted(folder.glob("*.md"))}
    made = {page: fresh(text) for page, text in texts.items()}
    return {page: new for page, new in made.items() if new != texts[page]}
