"""What reports add to the command line: ``mtcd report``, and the options of ``mtcd train`` about the
live page."""

from __future__ import annotations

import webbrowser
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mtcd.core.errors import ConfigError
from mtcd.core.optional import find
from mtcd.core.terminal.screen import screen
from mtcd.core.terminal.text import escape

if TYPE_CHECKING:
    from mtcd.config.build import Setup

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
    from mtcd.reporting.report import report as write_report

    written = write_report(runs, out)
    screen.print(f"Report: {escape(str(written))}", highlight=False, soft_wrap=True)
    if opens:
        webbrowser.open(written.resolve().as_uri())


@dataclass(frozen=True)
class LiveOptions:
    """The options of ``mtcd train`` about the page that is served while it trains."""

    live: Annotated[
        bool,
        typer.Option(
            "--live", help="Serve a page on which the tokens and curves are seen while it trains."
        ),
    ] = False
    live_address: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Where --live serves. Default: 127.0.0.1:0, this machine alone, a free port. Elsewhere the address "
            "holds a secret.",
        ),
    ] = None
    opens: Annotated[
        bool, typer.Option("--open", help="With --live: open the page in a browser.")
    ] = False
    stay: Annotated[
        bool,
        typer.Option(
            "--stay", help="With --live: serve the page after the training too, until Ctrl-C."
        ),
    ] = False

    def check(self) -> None:
        """Reject options of a page that is not asked for, and a page that cannot be made."""
        if self.live:
            find("bokeh")  # raises with installation advice
        elif self.live_address is not None or self.opens or self.stay:
            raise ConfigError(
                "--live-address, --open and --stay are about the page of --live: give --live too."
            )

    def around(self, setup: Setup, name: str) -> AbstractContextManager[Setup]:
        """The context in which the page is served, if it is asked for."""
        if not self.live:
            return nullcontext(setup)

        from mtcd.reporting.command_live import live_page

        return live_page(self, setup, name)
