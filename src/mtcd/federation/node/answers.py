"""What parties tell the operator, checked: a party that lies must not confuse the operator's screen."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, Field, FiniteFloat, StrictInt, StrictStr, ValidationError

from mtcd.federation.node.log import tidy
from mtcd.ledger.ledger import Ledger

Text = Annotated[StrictStr, AfterValidator(tidy)]
Count = Annotated[StrictInt, Field(ge=0)]


class TokenPlace(BaseModel):
    """Where a token was."""

    token: Count
    sync: Count
    hop: Count
    seconds_ago: FiniteFloat = 0.0


class Training(BaseModel):
    """Of a party in training, or after its end."""

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


class PartyStatus(BaseModel):
    """Of any party."""

    name: Text
    phase: Literal["opening", "training", "ended"]
    connected: list[Text]
    waiting_for: list[Text]


class LogEvent(BaseModel):
    """A line of a log that people read."""

    time: Text
    party: Text
    text: Text


def read_status(answer: Any) -> dict[str, Any] | None:
    """How a party is; None if what it says cannot be."""
    try:
        told: dict[str, Any] = PartyStatus.model_validate(answer).model_dump()
        if told["phase"] != "opening":
            told |= Training.model_validate(answer).model_dump()
            Ledger.total([Ledger(**told["ledger"])]).messages("sent")  # fails if it is not that of a party
        return told
    except (ValidationError, TypeError, ValueError, IndexError):
        return None


def read_event(event: Any) -> LogEvent | None:
    """An event that has a sentence; None of all else."""
    try:
        return LogEvent.model_validate(event)
    except ValidationError:
        return None
