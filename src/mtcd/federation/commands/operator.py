"""mtcd federation status, stop and logs: requests of the operator to all parties."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import typer

from mtcd.core.errors import MtcdError
from mtcd.core.optional import find
from mtcd.core.terminal.screen import screen
from mtcd.core.terminal.table import ScreenTable
from mtcd.federation.commands.exit_codes import NONE, SOME, SUCCESS, by_reach

NO_ANSWERS = (
    "No party answers. Parties answer only during a run: they exit when all parties have learned "
    "of its end, and summary.json in each run folder then says how it ended. During a run, check "
    "that this host can reach the parties."
)
ENDS = ("finished", "stopped", "diverged")
STOPPING = (
    "Parties that are stopping keep the model of this moment, and exit when all have learned of "
    "the end: check with 'mtcd federation status'."
)
NOT_STOPPED = (
    "A party that was not reached learns of the end from the others as soon as it is connected to "
    "one of them, also after a restart. If it trains on, check that this host can reach it, and "
    "run 'mtcd federation stop' again, with a longer --timeout if it is far away."
)


def stop_all(bundles: Path, timeout: float) -> int:
    """Ask all parties to stop: the run ends with the model that they hold. Returns the exit
    code."""
    operator = find("mtcd.federation.node.operator")
    bundle = operator.operator_bundle(
        bundles, find("mtcd.federation.credentials.credentials").read_credentials
    )
    with operator.Operator(bundle) as asking:
        timeouts = operator.timeouts_of(timeout)
        # Before the request: its phase tells a party that had finished from one that this stops.
        before = asking.ask("status", timeouts)
        known = known_statuses(bundle, before)
        answers = asking.ask("stop", timeouts)
    outcomes = {}
    for name in bundle.config.peers:
        outcomes[name] = _outcome(before.get(name), answers.get(name), known.get(name))
    for name, outcome in outcomes.items():
        _say(f"{name}: {outcome}")
    reached = []
    for name, outcome in outcomes.items():
        if outcome in ("stopping", "already finished"):
            reached.append(name)
    if not reached:
        _say(NO_ANSWERS)
    else:
        if len(reached) < len(outcomes):
            others = ", ".join(name for name in outcomes if name not in reached)
            _say(f"{reached_of(reached, outcomes)} Not stopped, after {timeout:g} s: {others}.")
        if "stopping" in outcomes.values():
            _say(STOPPING)
        if len(reached) < len(outcomes):
            _say(NOT_STOPPED)
    return by_reach(reached, outcomes)


def reached_of(reached: Collection[str], everybody: Collection[str]) -> str:
    """How many of all parties were reached, in words.

    >>> reached_of(["a"], ["a", "b"])
    'Reached 1 of 2: a.'
    """
    return f"Reached {len(reached)} of {len(everybody)}: {', '.join(reached)}."


def known_statuses(bundle: Any, answers: Mapping[str, Any]) -> dict[str, Any]:
    """The exit statuses that the operator's bundle holds, with those that came with the answers."""
    exit_status = find("mtcd.federation.node.exit_status")
    known = exit_status.ExitStatuses(bundle, bundle.folder / exit_status.FILE)
    overview = find("mtcd.federation.node.overview")
    overview.learn_statuses(known, answers)
    overview.learn_statuses_beside(known, bundle, answers)
    found: dict[str, Any] = known.statuses
    return found


def _outcome(before: Any, answer: Any, status: Any) -> str:
    """What a request to stop came to at one party: from its status before, its answer, and its last
    status."""
    if isinstance(answer, MtcdError):
        return f"refuses: {answer}"
    if isinstance(before, dict) and before.get("phase") == "ended":
        return "already finished"
    if before is not None or answer is not None:  # without an answer, it has exited since
        return "stopping"
    # Neither answer came. Its exit status, where others have passed it on, is signed by it.
    if status is not None and status.outcome in ENDS:
        return "already finished"
    return "not reached"


def show_logs(bundles: Path, as_json: bool, timeout: float) -> int:
    """Print the latest events of all parties, merged by time. Returns the exit code."""
    operator = find("mtcd.federation.node.operator")
    bundle = operator.operator_bundle(
        bundles, find("mtcd.federation.credentials.credentials").read_credentials
    )
    answers = operator.ask_everybody(bundle, "logs", operator.timeouts_of(timeout))
    if not as_json:
        for line in log_lines(answers):
            typer.echo(line)
    else:
        events = []
        for tail in answers.values():
            if isinstance(tail, list):
                events += [event for event in tail if isinstance(event, dict)]
        # As text: what a party sends need not be a time, and must not end the command.
        for event in sorted(events, key=lambda event: str(event.get("time"))):
            typer.echo(json.dumps(event))
    if not answers:
        typer.echo(
            f"{NO_ANSWERS} Each party keeps its own log, log.jsonl in its run folder.", err=True
        )
    elif missing := [name for name in bundle.config.peers if name not in answers]:
        typer.echo(
            f"{reached_of(answers, bundle.config.peers)} Not reached within {timeout:g} s: "
            f"{', '.join(missing)}.",
            err=True,
        )
    return by_reach(answers, bundle.config.peers)


def log_lines(answers: Mapping[str, Any]) -> list[str]:
    """The log events of all parties, merged by time; answers that are not lists of events are
    skipped."""
    read_event = find("mtcd.federation.node.overview").read_event
    events = []
    for tail in answers.values():
        if not isinstance(tail, list):
            continue
        for sent in tail:
            event = read_event(sent)
            if event is not None:
                events.append(event)

    # ISO times in UTC sort as text. The sort is stable: events of one moment keep their order.
    events.sort(key=lambda event: str(event.time))
    return [f"{event.time[11:23]} {event.party}: {event.text}" for event in events]


def _say(sentence: str) -> None:
    screen.print(sentence, highlight=False, markup=False, soft_wrap=True)


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
            # A party that has ended may have exited by the next round: its last answer then stands
            # for it.
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
                if all(one["phase"] in overview.WELL for one in before.values()):
                    return SUCCESS
                return SOME if answers else NONE
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
    if expired := find("mtcd.federation.credentials.credentials").expired_peers(bundle, missing):
        screen.print(expired, highlight=False, markup=False, soft_wrap=True)


def show_summary(summary: dict[str, Any]) -> None:
    """Print the parties as a table, and the progress in one line."""
    screen.print(_party_table(summary))
    facts = _progress(summary)
    if facts:
        screen.print(", ".join(facts), highlight=False, soft_wrap=True)


def _party_table(summary: Mapping[str, Any]) -> ScreenTable:
    """A row for each party: what it does, and what it waits for."""
    overview = find("mtcd.federation.node.overview")
    titles = ["party", "phase", "iteration", "tokens", "connected", "unreachable", "waits for"]
    words = ["party", "phase", "tokens", "unreachable", "waits for"]
    held: dict[str, list[str]] = {}
    for index, name in summary["tokens"].items():
        held.setdefault(name, []).append(index)

    rows = []
    for name, one in summary["parties"].items():
        # A party that has left counts no connections: an empty cell, and not 0.
        connected = ""
        if "connected" in one:
            connected = str(len(one["connected"]))
        rows.append(
            [
                name,
                overview.in_words(one),
                str(one.get("iteration", "")),
                ", ".join(held.get(name, [])),
                connected,
                ", ".join(one.get("gone", [])),
                ", ".join(one.get("waiting_for", [])),
            ]
        )

    dead = [row for row, one in enumerate(summary["parties"].values()) if overview.is_dead(one)]
    return ScreenTable(titles, rows, words, alarming=dead)


def _progress(summary: Mapping[str, Any]) -> list[str]:
    """How far the training is, as far as the parties tell."""
    overview = find("mtcd.federation.node.overview")
    parties = summary["parties"]
    facts = []
    ended = all(one["phase"] in overview.FINAL for one in parties.values())
    if summary["status"] and ended:
        facts.append(f"ended: {summary['status']}")
    if summary["syncs"]:
        facts.append(f"syncs {summary['syncs']}")

    # Hops and cost are sums over the ledgers that are known. Without any they would read as 0.
    counted = [name for name, one in parties.items() if "ledger" in one]
    if counted:
        facts += [f"hops {summary['hops']}", f"cost {summary['cost']:.6g}"]
    if summary["objective"] is not None:
        facts.append(f"objective {summary['objective']:.6g}")
    if summary["gap"] is not None:
        facts.append(f"gap at most about {summary['gap']:.2e}")

    missing = []
    for name, one in parties.items():
        if one["phase"] in overview.FINAL and "ledger" not in one:
            missing.append(name)
    if missing and counted:
        facts.append(f"not counting {', '.join(missing)}")
    return facts
