"""One overview of the whole federation, from the answers of all parties to the operator, and their
exit statuses.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    Field,
    FiniteFloat,
    StrictInt,
    StrictStr,
    ValidationError,
)

from mtcd.core.errors import WireError
from mtcd.core.mappings import without_none
from mtcd.federation.credentials.credentials import Credentials
from mtcd.federation.credentials.membership import Membership
from mtcd.federation.node.exit_status import (
    DIVERGED,
    FAILED,
    FILE,
    FINISHED,
    INTERRUPTED,
    RUNNING,
    STOPPED,
    ExitStatus,
    ExitStatuses,
)
from mtcd.federation.node.log import tidy
from mtcd.protocol.ledger.costs import Costs
from mtcd.protocol.ledger.ledger import Ledger

Text = Annotated[StrictStr, AfterValidator(tidy)]
MOST_STATUSES = 10_000
# in seconds since 1970, up to the year 9999
Moment = Annotated[StrictInt, Field(ge=0, le=253_402_300_799)]
Count = Annotated[StrictInt, Field(ge=0, le=2**53)]  # larger ones do not fit a float, nor a browser


class TokenPlace(BaseModel):
    """A visit of a token."""

    token: Count
    sync: Count
    hop: Count
    seconds_ago: FiniteFloat = 0.0


class TrainingStatus(BaseModel):
    """The status of a party during or after training."""

    run: Text
    gone: list[Text]
    tokens: list[TokenPlace]
    ended: Text | None
    heard_end: list[Text]
    ledger: dict[str, Count | list[Count]]
    iteration: Count
    syncs: Count
    objective: FiniteFloat | None
    gap_part: FiniteFloat | None


class Aligning(BaseModel):
    """The progress of a private set intersection."""

    step: Text
    share: Annotated[FiniteFloat, Field(ge=0, le=1)]
    seconds: Annotated[FiniteFloat, Field(ge=0)]


class PartyStatus(BaseModel):
    """The status of a party in any phase."""

    name: Text
    phase: Literal["opening", "training", "ended"]
    connected: list[Text]
    waiting_for: list[Text]
    lost: dict[Text, Moment] = {}  # older parties do not report it, nor the next
    aligning: Aligning | None = None


class Answered(BaseModel):
    """What every answer to the operator may hold: the run, and the exit statuses that the party
    knows of it."""

    run: Text = ""
    exit_statuses: list[Any] = Field(default=[], max_length=MOST_STATUSES)


class LogEvent(BaseModel):
    """A log event with a sentence."""

    time: Text
    party: Text
    text: Text


def read_status(answer: Any) -> dict[str, Any] | None:
    """The status of a party; None if the answer is invalid."""
    try:
        status: dict[str, Any] = PartyStatus.model_validate(answer).model_dump()
        if status["phase"] != "opening":
            status |= TrainingStatus.model_validate(answer).model_dump()
            # raises if the ledger is not that of a party
            Ledger.total([Ledger(**status["ledger"])]).messages("sent")
        return status
    except (ValidationError, TypeError, ValueError, IndexError):
        return None


def read_statuses(answer: Any) -> tuple[str, list[Any]]:
    """The run of an answer, and the exit statuses that came with it, which are not checked yet."""
    try:
        found = Answered.model_validate(answer)
    except ValidationError:
        return "", []
    return found.run, found.exit_statuses


def read_event(event: Any) -> LogEvent | None:
    """A log event; None if it is invalid or has no sentence."""
    try:
        return LogEvent.model_validate(event)
    except ValidationError:
        return None


NOT_REACHED, NOT_READABLE, ENDED = "not reached", "not readable", "ended"
UP = ("opening", "training", ENDED)
WELL = (*UP, FINISHED, STOPPED, DIVERGED)
"""The phases of parties that are up, and of all that need nobody's attention."""
LEFT = (FINISHED, STOPPED, DIVERGED, FAILED, INTERRUPTED)
FINAL = (ENDED, NOT_REACHED, NOT_READABLE, *LEFT)
"""The phases of parties that have left an exit status, and of all from which nothing is to be
expected."""
DEAD = (NOT_REACHED, FAILED)
"""The phases of parties that somebody has to look after."""
NOTHING: Mapping[str, Any] = MappingProxyType({})


def in_words(one: Mapping[str, Any]) -> str:
    """The phase of a party in words: how its run ended, or how far its alignment is."""
    if one["phase"] in LEFT:
        when = datetime.fromisoformat(one["time"])
        day = ""
        if when.date() != datetime.now(UTC).date():
            day = f"{when:%Y-%m-%d} "
        why = ""
        if one["ended"] not in ("", one["phase"]):
            why = f" ({one['ended']})"
        return f"{one['phase']} {day}{when:%H:%M} UTC{why}"
    if one["phase"] == NOT_REACHED:
        return _absence(one)
    if one.get("ended"):
        return f"ended ({one['ended']})"
    if aligning := one.get("aligning"):
        return (
            f"{one['phase']}: {aligning['step']}, {aligning['share']:.0%}, "
            f"{aligning['seconds']:.0f} s"
        )
    return str(one["phase"])


def is_dead(one: Mapping[str, Any]) -> bool:
    """Whether a party has failed or is not reached. One that dials out only is not: others are
    connected to it."""
    return one["phase"] in DEAD and not one.get("dials_out")


def _absence(one: Mapping[str, Any]) -> str:
    """Since when a party is not reached, or by whom it is all the same."""
    if one.get("linked"):
        return f"{NOT_REACHED} from here, but connected to {', '.join(one['linked'])}"
    if not one.get("since"):
        return NOT_REACHED
    return f"{NOT_REACHED} since {_clock(datetime.fromisoformat(one['since']))}"


def _clock(when: datetime) -> str:
    """A time in UTC, with its day if that is not today."""
    day = ""
    if when.date() != datetime.now(UTC).date():
        day = f"{when:%Y-%m-%d} "
    return f"{day}{when:%H:%M:%S} UTC"


def learn_statuses(known: ExitStatuses, answers: Mapping[str, Any]) -> None:
    """Take over the exit statuses that came with the answers, each if it is of the run that its
    bearer is in.

    Words of runs in which nobody is any more are dropped, unless nobody answers.
    """
    brought = [read_statuses(answer) for answer in answers.values()]
    # Runs of which nobody speaks any more; without answers nothing is known of them.
    if brought:
        known.keep_runs({run for run, _ in brought})
    for run, statuses in brought:
        for signed in statuses:
            with suppress(WireError):  # forged, or its certificate has expired
                status = known.read(signed)
                if status.run == run:
                    known.add(status, signed)


def learn_statuses_beside(
    known: ExitStatuses, bundle: Credentials, answers: Mapping[str, Any]
) -> None:
    """Take over the exit statuses of parties that do not answer, from their run folders, where
    their bundles are beside.

    So it is on the administrator's machine, or if a whole federation runs on one. Words are signed,
    wherever they lie.
    """
    runs = {read_statuses(answer)[0] for answer in answers.values()}
    for name in bundle.config.peers:
        path = bundle.folder.parent / name / "run" / FILE
        if name in answers or not path.is_file():
            continue
        with suppress(OSError, ValueError, RecursionError):
            for signed in json.loads(path.read_text()):
                with suppress(WireError):
                    status = known.read(signed)
                    if status.party == name and (not runs or status.run in runs):
                        known.add(status, signed)


def summarise(
    config: Membership,
    answers: Mapping[str, Any],
    before: Mapping[str, Any] = NOTHING,
    statuses: Mapping[str, ExitStatus] = NOTHING,
) -> dict[str, Any]:
    """Merge the answers of all parties: which are up, the locations of the tokens, progress and
    cost.

    Parties exit after the end. How a party has ended is known from its exit status; that it has,
    also from the other parties, and from the parties ``before``: those of the last overview. Since
    when a party is not reached is known from the others, which have lost their connections to it,
    and from its last answer.
    """
    now = datetime.now(UTC)
    checked = {name: read_status(answer) for name, answer in answers.items()}
    # Of the last overview only ends are kept: what else a party said has changed since.
    reported = {name: one for name, one in before.items() if one["phase"] == ENDED}
    reported |= without_none(checked)
    silent = {}
    for name, status in statuses.items():
        if name not in answers and status.outcome != RUNNING:
            silent[name] = status
    ended = {name for one in reported.values() for name in one.get("heard_end", ())}
    trained = [one for one in reported.values() if "ledger" in one]
    ledger = Ledger.total(Ledger(**one["ledger"]) for one in trained)
    costs = Costs(**config.costs.model_dump())
    latest = max(trained, key=lambda one: one["iteration"], default=None)
    known = [one for one in trained if one.get("objective") is not None]
    parties: dict[str, Any] = {}
    for name in config.peers:
        # An exit status is the last that a party says; its reports before are older.
        if name in silent:
            parties[name] = _last(silent[name], reported.get(name, {}))
        elif name in reported:
            parties[name] = reported[name]
        else:
            parties[name] = {"phase": _silent(name, answers, ended)}
            if parties[name]["phase"] == NOT_REACHED:
                parties[name] |= _seen_by_others(name, checked, before)
            # It calls others only: it is not missing if these have a connection to it.
            if "linked" in parties[name] and config.peers[name].address is None:
                parties[name]["dials_out"] = True
        if checked.get(name) is not None:
            parties[name] = {**parties[name], "answered": now.isoformat(timespec="seconds")}

    iteration = None
    if latest is not None:
        iteration = latest["iteration"]
    ended_as = next((one["ended"] for one in trained if one["ended"]), None)
    of_parties = [reported[name] for name in config.parties if name in reported]
    return {
        "federation": config.federation,
        "parties": parties,
        "tokens": _places(reported),
        "iteration": iteration,
        "syncs": max((one["syncs"] for one in trained), default=None),
        "hops": ledger.hops,
        "objective": _objective(known, silent.values()),
        "gap": _gap(of_parties, len(config.parties)),
        "cost": costs.total(ledger),
        "cost_per": costs.both(ledger),
        "status": ended_as or _common(silent.values()),
    }


def _seen_by_others(
    name: str, checked: Mapping[str, Any], before: Mapping[str, Any]
) -> dict[str, Any]:
    """Of a party that does not answer: who is connected to it, or since when nobody is."""
    others = without_none(checked)
    if linked := sorted(other for other, one in others.items() if name in one["connected"]):
        return {"linked": linked}

    moments = []
    for one in others.values():
        if name in one["lost"]:
            moments.append(datetime.fromtimestamp(one["lost"][name], UTC))
    last = before.get(name, {})
    for key in ("answered", "since"):
        if last.get(key):
            moments.append(datetime.fromisoformat(last[key]))
    # the last moment at which anybody had a connection
    if not moments:
        return {}
    return {"since": max(moments).isoformat(timespec="seconds")}


def _last(status: ExitStatus, reported: Mapping[str, Any]) -> dict[str, Any]:
    """What is known of a party that has left: its exit status, and what it ``reported`` before."""
    told: dict[str, Any] = {
        "phase": status.outcome,
        "time": status.when.isoformat(timespec="seconds"),
        "run": status.run,
    }
    if status.iteration is not None:
        told["iteration"] = status.iteration
    return {**reported, **told, "ended": status.status, "objective": status.objective}


def _objective(
    reported: Sequence[Mapping[str, Any]], statuses: Iterable[ExitStatus]
) -> float | None:
    """The objective of the latest iteration at which one is known."""
    known = [(one["iteration"], one["objective"]) for one in reported]
    known += [(one.iteration or 0, one.objective) for one in statuses if one.objective is not None]
    if not known:
        return None
    latest: float = max(known)[1]
    return latest


def _common(statuses: Iterable[ExitStatus]) -> str | None:
    """The status of the end, from the exit statuses of parties that have not failed."""
    for one in statuses:
        if one.outcome in (FINISHED, STOPPED, DIVERGED) and one.status:
            return one.status
    return None


def _silent(name: str, answers: Mapping[str, Any], ended: set[str]) -> str:
    """The phase of a party without a valid answer."""
    if name in answers:
        return NOT_READABLE
    if name in ended:
        return ENDED
    return NOT_REACHED


def _gap(parties: list[dict[str, Any]], count: int) -> float | None:
    """A bound on (f - f*)/|f|, the sum of the parts that the parties report as of their last
    visits."""
    parts: list[float] = [one["gap_part"] for one in parties if one.get("gap_part") is not None]
    known = [one["objective"] for one in parties if one.get("objective")]
    # A bound holds only with the parts of all.
    if not known or len(parts) != count:
        return None
    bound: float = max(sum(parts), 0.0) / abs(min(known))
    return bound


def _places(reported: dict[str, Any]) -> dict[str, str]:
    """The party that each token visited last."""
    last: dict[int, tuple[tuple[int, int], str]] = {}
    for name, one in reported.items():
        for token in one.get("tokens", []):
            seen = (token["sync"], token["hop"]), name
            # By sync, then hop: parties report at different moments, and the latest visit counts.
            last[token["token"]] = max(last.get(token["token"], ((-1, -1), "")), seen)
    return {str(index): name for index, (_, name) in sorted(last.items())}
