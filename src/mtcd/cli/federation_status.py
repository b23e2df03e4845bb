"""mtcd federation status: the state of all parties, once or periodically."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import typer

from mtcd.cli.exit_codes import NONE, SOME, SUCCESS
from mtcd.cli.federation_watch import NO_ANSWERS, known_words
from mtcd.cli.screen import screen
from mtcd.extras import find
from mtcd.report.screen_table import ScreenTable

FROM_KIT = (
    "No party answers. What is shown of parties that have left are their last words, signed by them, as this kit has "
    "received them. A party that is not reached left none here: summary.json in its run folder says how its run ended."
)


def show_status(kits: Path, as_json: bool, every: float | None) -> int:
    """Show the status once, or periodically until all have ended; returns the exit code."""
    asking, overview = find("mtcd.federation.node.operator"), find("mtcd.federation.node.overview")
    kit = asking.operator_kit(kits, find("mtcd.federation.credentials").read_credentials)
    before: dict[str, Any] = {}
    with asking.Operator(kit) as operator:
        while True:
            answers = operator.ask("status", asking.QUICK)
            summary = overview.summarise(kit.config, answers, before, known_words(kit, answers))
            before = summary["parties"]
            if as_json:
                typer.echo(json.dumps(summary))
            else:
                show_summary(summary)
                if not answers:
                    left = any(one["phase"] in overview.LEFT for one in before.values())
                    screen.print(FROM_KIT if left else NO_ANSWERS, highlight=False, markup=False, soft_wrap=True)
            if every is None or all(one["phase"] in overview.FINAL for one in before.values()):
                well = all(one["phase"] in overview.WELL for one in before.values())
                return SUCCESS if well else SOME if answers else NONE
            time.sleep(every)


def show_summary(summary: dict[str, Any]) -> None:
    """Print the parties as a table, and the progress in one line."""
    overview = find("mtcd.federation.node.overview")
    titles = ["party", "phase", "iteration", "tokens", "connected", "unreachable", "waits for"]
    rows = []
    held: dict[str, list[str]] = {}
    for index, name in summary["tokens"].items():
        held.setdefault(name, []).append(index)
    for name, one in summary["parties"].items():
        cells = [name, overview.in_words(one), str(one.get("iteration", "")), ", ".join(held.get(name, []))]
        cells += [str(len(one.get("connected", []))) if "connected" in one else ""]
        cells += [", ".join(one.get(key, [])) for key in ("gone", "waiting_for")]
        rows.append(cells)
    screen.print(ScreenTable(titles, rows, words=["party", "phase", "tokens", "unreachable", "waits for"]))
    facts = [f"hops {summary['hops']}", f"cost {summary['cost']:.6g}"]
    if summary["syncs"]:
        facts.insert(0, f"syncs {summary['syncs']}")
    if summary["objective"] is not None:
        facts.append(f"objective {summary['objective']:.6g}")
    if summary["gap"] is not None:
        facts.append(f"gap at most about {summary['gap']:.2e}")
    missing = [
        name for name, one in summary["parties"].items() if one["phase"] in overview.FINAL and "ledger" not in one
    ]
    if missing:
        facts.append(f"not counting {', '.join(missing)}")
    screen.print(", ".join(facts), highlight=False, soft_wrap=True)
