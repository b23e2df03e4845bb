"""mtcd federation status: the state of all parties, once or periodically."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import typer

from mtcd.cli.exit_codes import NONE, SOME, SUCCESS
from mtcd.cli.federation_watch import NO_ANSWERS
from mtcd.cli.show import screen
from mtcd.extras import find
from mtcd.report.screen_table import ScreenTable

FINAL_PHASES = ("ended", "not reached", "not readable")


def show_status(kits: Path, as_json: bool, every: float | None) -> int:
    """Show the status once, or periodically until all have ended; returns the exit code."""
    asking, overview = find("mtcd.federation.node.operator"), find("mtcd.federation.node.overview")
    kit = asking.operator_kit(kits)
    before: dict[str, Any] = {}
    with asking.Operator(kit) as operator:
        while True:
            answers = operator.ask("status", asking.QUICK)
            summary = overview.summarise(kit.config, answers, before)
            before = summary["parties"]
            if as_json:
                typer.echo(json.dumps(summary))
            else:
                show_summary(summary)
                if not answers:
                    screen.print(NO_ANSWERS, highlight=False, markup=False, soft_wrap=True)
            if every is None or all(one["phase"] in FINAL_PHASES for one in before.values()):
                return _exit_code(before, bool(answers))
            time.sleep(every)


def _exit_code(parties: dict[str, Any], answered: bool) -> int:
    phases = {one["phase"] for one in parties.values()}
    if phases <= {"opening", "training", "ended"}:
        return SUCCESS
    return SOME if answered else NONE


def shown_phase(one: dict[str, Any]) -> str:
    """The phase of a party in words: how its run ended, or how far its alignment is."""
    if one.get("ended"):
        return f"ended ({one['ended']})"
    if one.get("aligning"):
        aligning = one["aligning"]
        return f"{one['phase']}: {aligning['step']}, {aligning['share']:.0%}, {aligning['seconds']:.0f} s"
    return str(one["phase"])


def show_summary(summary: dict[str, Any]) -> None:
    """Print the parties as a table, and the progress in one line."""
    titles = ["party", "phase", "iteration", "tokens", "connected", "unreachable", "waits for"]
    rows = []
    held: dict[str, list[str]] = {}
    for index, name in summary["tokens"].items():
        held.setdefault(name, []).append(index)
    for name, one in summary["parties"].items():
        cells = [name, shown_phase(one), str(one.get("iteration", "")), ", ".join(held.get(name, []))]
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
    missing = [name for name, one in summary["parties"].items() if one["phase"] == "not reached"]
    if missing:
        facts.append(f"not counting {', '.join(missing)}")
    screen.print(", ".join(facts), highlight=False, soft_wrap=True)
