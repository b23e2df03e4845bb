"""The fenced blocks of a page, and what becomes of each: nothing that a page shows stays untried.

A comment in front of a block says what it is, where its language does not:

- ``<!-- file: NAME -->``: the content of a file, which later blocks of the page use; YAML is
  checked by its schema.
- ``<!-- laid over: NAME -->``: keys of a config, checked as changes to that file.
- ``<!-- same as: PATH -->``: a file of the repository, or the end of one.
- ``<!-- not run: REASON -->``: neither run nor checked.

Python and shell blocks are run, in the order of the page and in one folder; a block of plain text
after one of them is what it prints; source code in a part that is made from the code is checked
there. ``<!-- setup: LANGUAGE`` and ``-->`` enclose what is run but not shown.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from documentation.regions import REGION

ROOT = Path(__file__).parents[1]
RUN = ("python", "sh", "setup: python", "setup: sh")
BLOCK = re.compile(
    r"^(?: *<!-- (?P<kind>file|laid over|same as|not run): (?P<about>[^\n]+?) -->\n)?"
    r"(?P<indent> *)```(?P<language>\w*)[^\n]*\n(?P<text>.*?)^ *```$"
    r"|^<!-- (?P<setup>setup: \w+)\n(?P<hidden>.*?)^-->$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """A block of a page: ``fate`` says what becomes of it, '' if nobody has said."""

    line: int
    language: str
    text: str
    fate: str
    about: str = ""


def blocks(page: str) -> list[Block]:
    """The blocks of a page in their order, without those that are made from the code."""
    text = REGION.sub(lambda found: "\n" * found[0].count("\n"), page)
    found: list[Block] = []
    for match in BLOCK.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        if match["setup"]:
            found.append(Block(line, match["setup"], match["hidden"], "run"))
        else:
            follows = bool(found) and found[-1].fate == "run"
            fate = match["kind"] or _by_language(match["language"], follows)
            found.append(
                Block(line, match["language"], _dedented(match), fate, match["about"] or "")
            )
    return found


def _by_language(language: str, follows: bool) -> str:
    if language in RUN:
        return "run"
    return "output" if language in ("", "text") and follows else ""


def _dedented(match: re.Match[str]) -> str:
    return re.sub(f"^{match['indent']}", "", match["text"], flags=re.MULTILINE)


def all_pages() -> list[Path]:
    """The pages that people read: those of the site, and the others of the repository."""
    places = ("*.md", "docs/*.md", "benchmarks/*.md", "deploy/*.md")
    return sorted(page for place in places for page in ROOT.glob(place))
