"""A party that resumes from its folder asks the others whether they remember more than its journal
does.

A journal that was restored from an older backup, or that a loss of power set back, lacks messages
that others have processed or have an ack for. Exactly-once delivery does not survive that: the
party would give the same sequence numbers to other messages, which the others ignore as duplicates,
and its block would not match the aggregate any more. So no envelope is exchanged with another party
before that party has confirmed the journal, and a party whose journal is older fails. What was
restored at all parties from copies of stopped parties is consistent, and is confirmed.

Versions from before this request refuse it as one of an unknown kind, and are taken to confirm.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from mtcd.core.errors import JournalError, WireError
from mtcd.core.received import are_whole, read_json
from mtcd.federation.delivery.reliable_party import ReliableParty
from mtcd.federation.node.link import IncomingRequest
from mtcd.protocol.codec.limits import MOST

if TYPE_CHECKING:
    from mtcd.federation.node.training import Trainer

COUNTS = "counts"
CURRENT, OLDER = b"current", b"older"
RETRY_SECONDS = 0.3
WHAT_TO_DO = (
    "Its journal is from an earlier moment: an older backup was restored, or a loss of power lost "
    "the last commits (limits.sync prevents that). It cannot take part in this run again with this "
    "folder. If a newer copy of it exists, use that; otherwise stop the run, and start all parties "
    "with new folders (--out)."
)


class Counts(NamedTuple):
    """What a party's journal says of the messages between it and one other party."""

    run: str
    sent: int
    below: int
    beyond: list[int]
    ended: bool


class Rejoining:
    """The confirmations that one party needs; none, unless it ``resumed``. ``confirmed`` runs after
    each."""

    def __init__(self, trainer: Trainer, resumed: bool, confirmed: Callable[[], None]) -> None:
        self.trainer, self.rpc, self.loop, self._then = (
            trainer,
            trainer.rpc,
            trainer.loop,
            confirmed,
        )
        self.unconfirmed: set[int] = set()
        """The parties with which no envelopes may be exchanged yet."""
        # A run that begins here has sent nothing that anybody could remember.
        if resumed:
            self.unconfirmed = set(trainer.names) - {trainer.reliable.number}
        self._asked: set[int] = set()
        self.rpc.on(COUNTS, self._receive)

    def ask(self, number: int) -> None:
        """Ask a party that has not confirmed the journal, unless it was asked already."""
        if number in self.unconfirmed and number not in self._asked:
            self._asked.add(number)
            name = self.trainer.names[number]
            body = json.dumps(
                counts(self.trainer.reliable, number, self.trainer.run)._asdict()
            ).encode()
            self.rpc.ask(
                name, COUNTS, body, lambda answer, why: self._answered(number, answer, why)
            )

    def _answered(self, number: int, answer: bytes | None, why: str) -> None:
        if answer == OLDER:
            name = self.trainer.names[number]
            raise JournalError(
                f"{name} remembers messages of {self.rpc.me} that this folder lacks. {WHAT_TO_DO}"
            )
        # A refusal comes from a version without this request: see the head of this file.
        if answer == CURRENT or why:
            self.unconfirmed.discard(number)
            self._then()
        else:
            self.loop.later(RETRY_SECONDS, lambda: self._ask_again(number))

    def _ask_again(self, number: int) -> None:
        self._asked.discard(number)
        self.ask(number)

    def _receive(self, request: IncomingRequest) -> None:
        told = _read(request.body)
        if told.run != self.trainer.run:
            raise WireError("run", "is another one")
        lacks = lacking(self.trainer.reliable, self.trainer.numbers[request.sender], told)
        if lacks:
            sentence = (
                f"{request.sender} has come back without {lacks} of the messages to and from it. "
                f"{WHAT_TO_DO}"
            )
            self.trainer.log.throttled(("older", request.sender), sentence, often=1)
        answer = CURRENT
        if lacks:
            answer = OLDER
        request.answer(answer)


def counts(reliable: ReliableParty, other: int, run: str) -> Counts:
    """Of the messages to and from another party."""
    below, beyond = reliable.seen.get(other, (0, []))
    return Counts(run, reliable.sent.get(other, 0), below, beyond, reliable.ended is not None)


def lacking(reliable: ReliableParty, other: int, told: Counts) -> int:
    """How many messages this party remembers, sent to it by the other one or acknowledged by it,
    that that one lacks.

    A party that has ended is not asked for acks: an end that it knew of already was taken back from
    the outbox.
    """
    below, beyond = reliable.seen.get(other, (0, []))
    # The highest that arrived here, in order or not, and how many it says that it has sent.
    never_sent = max(0, max(beyond, default=below - 1) + 1 - told.sent)
    if told.ended:
        return never_sent
    sent, unacknowledged = (
        reliable.sent.get(other, 0),
        {s for to, s in reliable.outbox if to == other},
    )
    known = unacknowledged | set(told.beyond)
    # What waits for an ack was never said to be processed.
    acknowledged = max(0, sent - told.below) - sum(told.below <= s < sent for s in known)
    return never_sent + acknowledged


def _read(body: bytes) -> Counts:
    told = read_json(body)
    if not isinstance(told, dict) or told.keys() != set(Counts._fields):
        raise WireError("counts", "are not those of a party")
    found = Counts(**told)
    if not isinstance(found.run, str) or not isinstance(found.ended, bool):
        raise WireError("counts", "are not those of a party")
    if not are_whole([found.sent, found.below], 0, MOST - 1):
        raise WireError("counts", "are out of range")
    if not are_whole(found.beyond, 0, MOST - 1):
        raise WireError("counts", "are out of range")
    return found
