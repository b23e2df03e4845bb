"""The command that shows spent budgets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mtcd.core.terminal.options import (
    AsJson,
)

app = typer.Typer()


@app.command(
    help=(
        "Show what the rows of a table have spent of their privacy.\n\n"
        "Every training with differential privacy (privacy.dp) is entered in the file "
        "TABLE.mtcd-budget.json, in one process and at a party of a federation. Trainings are "
        "Gaussian mechanisms, whose squared sensitivities add up, so what they have spent together "
        "is exact, at any delta."
    )
)
def budget(
    tables: Annotated[
        list[Path], typer.Argument(metavar="TABLE...", help="Tables that were trained on.")
    ],
    delta: Annotated[
        float | None,
        typer.Option(
            metavar="DELTA", help="At which delta. Default: the smallest of the table's trainings."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what the rows of a table have spent of their privacy."""
    from mtcd.privacy.sealed.dp.command import show_budgets

    show_budgets(tables, delta, as_json)
