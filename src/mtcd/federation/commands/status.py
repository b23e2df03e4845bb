"""mtcd federation status: the state of all parties, once or periodically."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from mtcd.core.optional import find
from mtcd.core.terminal.screen import screen
from mtcd.core.terminal.table import ScreenTable
from mtcd.federation.commands.exit_codes import NONE, SOME, SUCCESS
from mtcd.federation.commands.watch import NO_ANSWERS, known_statuses, reached_of

FROM_BUNDLE = (
    "No party answers. What is shown of parties that have left are their exit statuses, signed by "
    "them, as this bundle has received them. A party that is not reached left none here: "
    "summary.json in its run folder says how its run ended."
)


def show_status(bundles: Path, as_json: bool, every: float | None, timeout: float) -> int:
    """Show the status once, or periodically until all have ended; returns the exit code."""
    asking, overview = find("mtcd.federation.node.operator"), find("mtcd.federation.node.overview")
    bundle = asking.operator_bundle(
        bundles, find("mtcd.federation.credentials.credentials").read_credentials
    )
    before: dict[str, Any] = {}
    with asking.Operator(bundle) as operator:
        while True:
            answers = operator.ask("status", asking.timeouts_of(timeout))
            summary = overview.summarise(
                bundle.config, answers, before, known_statuses(bundle, answers)
            )
            before = summary["parties"]
            if as_json:
                typer.echo(json.dumps(summary))
            else:
                show_summary(summary)
                say_reached(before, answers, timeout)
                say_expired(bundle.folder, before)
                if not answers:
                    left = any(one["phase"] in overview.LEFT for one in before.values())
                    screen.print(
                        FROM_BUNDLE if left else NO_ANSWERS,
                        highlight=False,
                        markup=False,
                        soft_wrap=True,
                    )
            if every is None or all(one["phase"] in overview.FINAL for one in before.values()):
                well = all(one["phase"] in overview.WELL for one in before.values())
                return SUCCESS if well else SOME if answers else NONE
            time.sleep(every)


def say_reached(parties: Mapping[str, Any], answers: Mapping[str, Any], timeout: float) -> None:
    """If some parties answer and others neither do nor left an exit status, say how many, and what
    that may mean."""
    overview = find("mtcd.federation.node.overview")
    missing = [name for name, one in parties.items() if one["phase"] == overview.NOT_REACHED]
    if answers and missing:
        screen.print(
            f"{reached_of(answers, parties)} Not reached within {timeout:g} s: "
            f"{', '.join(missing)}. They are down, or cannot be reached from this host; "
            "'unreachable' above is what the other parties see. To wait longer: --timeout.",
            highlight=False,
            markup=False,
            soft_wrap=True,
        )


def say_expired(bundle: Path, parties: Mapping[str, Any]) -> None:
    """Name the parties that are not reached and whose certificates have expired: they cannot say
    so."""
    overview = find("mtcd.federation.node.overview")
    missing = [name for name, one in parties.items() if one["phase"] == overview.NOT_REACHED]
    if expired := find("mtcd.federation.credentials.expiry").expired_peers(bundle, missing):
        screen.print(expired, highlight=False, markup=False, soft_wrap=True)


def show_summary(summary: dict[str, Any]) -> None:
    """Print the parties as a table, and the progress in one line."""
    overview = find("mtcd.federation.node.overview")
    titles = ["party", "phase", "iteration", "tokens", "connected", "unreachable", "waits for"]
    rows = []
    held: dict[str, list[str]] = {}
    for index, name in summary["tokens"].items():
        held.setdefault(name, []).append(index)
    for name, one in summary["parties"].items():
        cells = [
            name,
            overview.in_words(one),
            str(one.get("iteration", "")),
            ", ".join(held.get(name, [])),
        ]
        cells += [str(len(one.get("connected", []))) if "connected" in one else ""]
        cells += [", ".join(one.get(key, [])) for key in ("gone", "waiting_for")]
        rows.append(cells)
    dead = [row for row, one in enumerate(summary["parties"].values()) if overview.is_dead(one)]
    words = ["party", "phase", "tokens", "unreachable", "waits for"]
    screen.print(ScreenTable(titles, rows, words, alarming=dead))
    counted = [name for name, one in summary["parties"].items() if "ledger" in one]
    facts = [f"hops {summary['hops']}", f"cost {summary['cost']:.6g}"] if counted else []
    if summary["syncs"]:
        facts.insert(0, f"syncs {summary['syncs']}")
    if summary["status"] and all(
        one["phase"] in overview.FINAL for one in summary["parties"].values()
    ):
        facts.insert(0, f"ended: {summary['status']}")
    if summary["objective"] is not None:
        facts.append(f"objective {summary['objective']:.6g}")
    if summary["gap"] is not None:
        facts.append(f"gap at most about {summary['gap']:.2e}")
    missing = [
        name
        for name, one in summary["parties"].items()
        if one["phase"] in overview.FINAL and "ledger" not in one
    ]
    if missing and counted:
        facts.append(f"not counting {', '.join(missing)}")
    if not facts:
        return
    screen.print(", ".join(facts), highlight=False, soft_wrap=True)
