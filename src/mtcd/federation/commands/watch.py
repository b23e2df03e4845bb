"""mtcd federation stop and logs: requests of the operator to all parties."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import typer

from mtcd.core.errors import MtcdError
from mtcd.core.optional import find
from mtcd.core.terminal.screen import screen
from mtcd.federation.commands.exit_codes import by_reach

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
        before = asking.ask("status", timeouts)
        known = known_statuses(bundle, before)
        answers = asking.ask("stop", timeouts)
    outcomes = {
        name: _outcome(before.get(name), answers.get(name), known.get(name))
        for name in bundle.config.peers
    }
    for name, outcome in outcomes.items():
        _say(f"{name}: {outcome}")
    reached = [
        name for name, outcome in outcomes.items() if outcome in ("stopping", "already finished")
    ]
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
    return "already finished" if status is not None and status.outcome in ENDS else "not reached"


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
        tails = [tail for tail in answers.values() if isinstance(tail, list)]
        events = [event for tail in tails for event in tail if isinstance(event, dict)]
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
    read_event = find("mtcd.federation.node.rpc_answers").read_event
    found = [
        read_event(event) for tail in answers.values() if isinstance(tail, list) for event in tail
    ]
    events = sorted(
        (event for event in found if event is not None), key=lambda event: str(event.time)
    )
    return [f"{event.time[11:23]} {event.party}: {event.text}" for event in events]


def _say(sentence: str) -> None:
    screen.print(sentence, highlight=False, markup=False, soft_wrap=True)
