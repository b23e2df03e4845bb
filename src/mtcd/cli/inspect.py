"""mtcd inspect."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from rich.table import Table

from mtcd.config.build import build
from mtcd.config.read import read_config, refuse_code
from mtcd.core.errors import listing
from mtcd.core.terminal.screen import screen, show_notes
from mtcd.core.terminal.table import ScreenTable
from mtcd.core.terminal.text import escape
from mtcd.inspection.facts import Inspection
from mtcd.inspection.inspect import inspect

MOST_CLIENTS = 20  # in the table on the screen


def inspect_config(
    path: Path, changes: list[str], seed: int | None, as_json: bool, run_code: bool = False
) -> None:
    """Show what a config would train. Custom networks are built, which runs their code, only with
    ``run_code``."""
    config = read_config(path, changes, seed)
    if not run_code:
        # a config to inspect may be from somebody else, read to see whether it can be trusted
        refuse_code(config, f"inspect it with its code: mtcd inspect {path} --run-code")

    setup = build(config)
    found = inspect(**setup.arguments()).with_notes(setup.notes)
    if as_json:
        print(json.dumps(found.facts, allow_nan=False))  # noqa: T201
        return

    show_notes(found.notes)
    screen.print(_clients_table(found))
    screen.print(_facts_table(found.rows))


def _clients_table(found: Inspection) -> ScreenTable:
    network, rows = found.network, []
    for k, (name, held) in enumerate(found.holdings.items()):
        if k == MOST_CLIENTS:
            rows.append([f"and {network.size - MOST_CLIENTS} more", "", ""])
            break

        near = listing([network.clients[j] for j in network.neighbours[k]], 3)
        rows.append([name, held, near or "none"])

    titles = ["client", "holds", "neighbours"]
    return ScreenTable(titles, rows, words=titles)


def _facts_table(rows: Mapping[str, str]) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows.items():
        table.add_row(name, escape(value))
    return table
