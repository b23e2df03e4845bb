"""mtcd federation status, stop and logs: the operator's commands."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import typer

from mtcd.cli.show import screen
from mtcd.errors import MtcdError
from mtcd.extras import find
from mtcd.ledger.costs import Costs
from mtcd.ledger.ledger import Ledger
from mtcd.report.screen_table import ScreenTable

NO_ANSWERS = (
    "No party answers. Parties answer only during a run: they exit when all parties have learned of its end, and "
    "summary.json in each run folder then says how it ended. During a run, check that this host can reach the parties."
)
FINAL_PHASES = ("ended", "not reached", "not readable")


def show_status(kits: Path, as_json: bool, every: float | None) -> int:
    """Show the status once, or periodically until all have ended; returns exit code 1 if no party answers."""
    operator = find("mtcd.federation.node.operator")
    kit = operator.operator_kit(kits)
    before: dict[str, Any] = {}
    while True:
        answers = operator.ask_everybody(kit, "status")
        summary = summarise(kit.config, answers, before)
        before = summary["parties"]
        if as_json:
            typer.echo(json.dumps(summary))
        else:
            show_summary(summary)
            if not answers:
                screen.print(NO_ANSWERS, highlight=False, markup=False, soft_wrap=True)
        if every is None or all(one["phase"] in FINAL_PHASES for one in before.values()):
            return 0 if answers or any(one["phase"] == "ended" for one in before.values()) else 1
        time.sleep(every)


def summarise(config: Any, answers: dict[str, Any], before: Mapping[str, Any] = MappingProxyType({})) -> dict[str, Any]:
    """Merge the answers of all parties: which are up, the locations of the tokens, progress and cost.

    Parties exit after the end. That a party has ended is known from the other parties, and from the answers
    ``before``.
    """
    checked = {name: find("mtcd.federation.node.answers").read_status(answer) for name, answer in answers.items()}
    reported = {name: one for name, one in before.items() if one["phase"] == "ended"}
    reported |= {name: one for name, one in checked.items() if one is not None}
    ended = {name for one in reported.values() for name in one.get("heard_end", ())}
    trained = [one for one in reported.values() if "ledger" in one]
    ledger = Ledger.total(Ledger(**one["ledger"]) for one in trained)
    costs = Costs(**config.costs.model_dump())
    latest = max(trained, key=lambda one: one["iteration"], default=None)
    known = [one for one in trained if one.get("objective") is not None]
    return {
        "federation": config.federation,
        "parties": {name: reported.get(name, {"phase": _silent(name, answers, ended)}) for name in config.peers},
        "tokens": _places(reported),
        "iteration": None if latest is None else latest["iteration"],
        "syncs": max((one["syncs"] for one in trained), default=None),
        "hops": ledger.hops,
        "objective": None if not known else max(known, key=lambda one: one["iteration"])["objective"],
        "gap": _gap([reported[name] for name in config.parties if name in reported], len(config.parties)),
        "cost": costs.total(ledger),
        "cost_per": costs.both(ledger),
        "status": next((one["ended"] for one in trained if one["ended"]), None),
    }


def _silent(name: str, answers: Mapping[str, Any], ended: set[str]) -> str:
    """The phase of a party without a valid answer."""
    return "not readable" if name in answers else "ended" if name in ended else "not reached"


def _gap(parties: list[dict[str, Any]], count: int) -> float | None:
    """A bound on (f - f*)/|f|, the sum of the parts that the parties report as of their last visits."""
    parts: list[float] = [one["gap_part"] for one in parties if one.get("gap_part") is not None]
    known = [one["objective"] for one in parties if one.get("objective")]
    return max(sum(parts), 0.0) / abs(min(known)) if known and len(parts) == count else None


def _places(reported: dict[str, Any]) -> dict[str, str]:
    """The party that each token visited last."""
    last: dict[int, tuple[tuple[int, int], str]] = {}
    for name, one in reported.items():
        for token in one.get("tokens", []):
            seen = (token["sync"], token["hop"]), name
            last[token["token"]] = max(last.get(token["token"], ((-1, -1), "")), seen)
    return {str(index): name for index, (_, name) in sorted(last.items())}


def show_summary(summary: dict[str, Any]) -> None:
    """Print the parties as a table, and the progress in one line."""
    titles = ["party", "phase", "iteration", "tokens", "connected", "unreachable", "waits for"]
    rows = []
    held: dict[str, list[str]] = {}
    for index, name in summary["tokens"].items():
        held.setdefault(name, []).append(index)
    for name, one in summary["parties"].items():
        phase = one.get("ended") and f"ended ({one['ended']})"
        cells = [name, phase or one["phase"], str(one.get("iteration", "")), ", ".join(held.get(name, []))]
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


def stop_all(kits: Path) -> None:
    """Ask all parties to stop: the run ends with the model that they hold."""
    operator = find("mtcd.federation.node.operator")
    kit = operator.operator_kit(kits)
    answers = operator.ask_everybody(kit, "stop")
    if not answers:
        raise MtcdError(NO_ANSWERS)
    for name in kit.config.peers:
        answer = answers.get(name)
        outcome = "is not reached" if name not in answers else str(answer) if isinstance(answer, MtcdError) else "stops"
        screen.print(f"{name} {outcome}", highlight=False, markup=False)


def show_logs(kits: Path, as_json: bool) -> None:
    """Print the latest events of all parties, merged by time."""
    operator = find("mtcd.federation.node.operator")
    answers = operator.ask_everybody(operator.operator_kit(kits), "logs")
    if not answers:
        raise MtcdError(f"{NO_ANSWERS} Each party keeps its own log, log.jsonl in its run folder.")
    if not as_json:
        for line in log_lines(answers):
            typer.echo(line)
        return
    events = [event for tail in answers.values() if isinstance(tail, list) for event in tail if isinstance(event, dict)]
    for event in sorted(events, key=lambda event: str(event.get("time"))):
        typer.echo(json.dumps(event))


def log_lines(answers: Mapping[str, Any]) -> list[str]:
    """The log events of all parties, merged by time; answers that are not lists of events are skipped."""
    read_event = find("mtcd.federation.node.answers").read_event
    found = [read_event(event) for tail in answers.values() if isinstance(tail, list) for event in tail]
    events = sorted((event for event in found if event is not None), key=lambda event: str(event.time))
    return [f"{event.time[11:23]} {event.party}: {event.text}" for event in events]
