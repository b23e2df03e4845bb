"""Tables of Markdown."""

from __future__ import annotations

from collections.abc import Sequence


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table; a bar inside a cell is kept from ending it."""
    written = [
        " ".join(cell.split()).replace("\\|", "|").replace("|", "\\|")
        for row in rows
        for cell in row
    ]
    cells = [written[i : i + len(head)] for i in range(0, len(written), len(head))]
    return [_line(head), _line(["---"] * len(head)), *map(_line, cells)]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
