"""The command that writes a page about runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer()


@app.command()
def report(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="Run folders that mtcd train wrote.")
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", help="The HTML file.")] = Path("report.html"),
    opens: Annotated[bool, typer.Option("--open", help="Open it in a browser.")] = False,
) -> None:
    r"""Write a page about runs, one HTML file: tokens on their network, curves, costs (pip install
    '.\[report]')."""
    from mtcd.reporting.command import write_report

    write_report(runs, out, opens)
