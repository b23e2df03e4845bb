"""Validation of the parties' answers to the operator: a dishonest party must not corrupt the
operator's screen."""

from __future__ import annotations

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

from mtcd.federation.node.log import tidy
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


class Training(BaseModel):
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
    last_words: list[Any] = Field(default=[], max_length=MOST_STATUSES)


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
            status |= Training.model_validate(answer).model_dump()
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
    return found.run, found.last_words


def read_event(event: Any) -> LogEvent | None:
    """A log event; None if it is invalid or has no sentence."""
    try:
        return LogEvent.model_validate(event)
    except ValidationError:
        return None
