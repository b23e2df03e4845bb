"""Where commands print: results on standard output, progress and notes on standard error."""

from __future__ import annotations

from rich.console import Console

screen = Console()
aside = Console(stderr=True)
