"""Where commands print: results on standard output, progress and notes on standard error."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console

from mtcd.core.terminal.text import escape

screen = Console()
aside = Console(stderr=True)


def show_notes(notes: Iterable[str]) -> None:
    """Print notes on standard error."""
    for note in notes:
        aside.print(f"[yellow]Note:[/] {escape(note)}", highlight=False, soft_wrap=True)
