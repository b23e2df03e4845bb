"""A party with its mail: what arrives is processed exactly once, and what is sent arrives, through any restarts.

A postman does no I/O. Whoever owns the links gives it the letters and receipts that arrive, and sends again and
again what it has ``waiting``. What it did and what it is about to send go into the journal together, before the
receipt: after a restart at any moment the party is where the others believe it to be.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from mtcd.federation.custody.ending import Ending
from mtcd.federation.custody.journal import Journal
from mtcd.federation.custody.letters import End, Fences, Freeze, Letter, Receipt, Void
from mtcd.ledger.ledger import Ledger
from mtcd.protocol.accounting import record
from mtcd.protocol.party import MONITOR, Message, Party


class Delivery(NamedTuple):
    """What came of a letter: the receipt to send, or None for 'not now', and what the monitor is told."""

    receipt: Receipt | None
    told: Sequence[Message] = ()


class Postman(Ending):
    """One party's custody. ``opening``: the messages of the cast that set the training going. ``clients``: how many.

    If anything here raises an error, the party must be made anew from its journal: it may have done half of it.
    """

    def __init__(
        self,
        number: int,
        party: Party,
        journal: Journal,
        opening: Iterable[Message] = (),
        clients: int | None = None,
    ) -> None:
        super().__init__(number, party, getattr(party, "clients", 0) if clients is None else clients)
        self.journal = journal
        self.sent: dict[int, int] = {}
        self.seen: dict[int, tuple[int, list[int]]] = {}
        self.fences: Fences = {}
        self.ledger = Ledger()
        """What this party has sent."""
        self.opened: list[Message] = []
        """What the monitor is to be told of the opening and of what ``lost`` brought about. Who reads it empties it."""
        kept = journal.last()
        if kept is None:
            self.opened = self.post([message for message in opening if message.sender == number], None)
            self.commit()
        else:
            self.reload(kept)

    # The journal

    def record(self) -> dict[str, Any]:
        """All that a restart needs."""
        return {
            "party": self.party.state(),
            "outbox": list(self.outbox.values()),
            "sent": self.sent,
            "seen": self.seen,
            "fences": self.fences,
            "ledger": self.ledger,
            "finishing": self.finishing,
            "ended": self.ended,
            "ended_here": self.ended_here,
        }

    def reload(self, kept: dict[str, Any]) -> None:
        """Go on from what a journal had."""
        self.party.restore(kept["party"])
        self.outbox = {(letter.to, letter.sequence): letter for letter in kept["outbox"]}
        self.sent, self.seen, self.fences = kept["sent"], kept["seen"], kept["fences"]
        self.ledger, self.finishing = kept["ledger"], kept["finishing"]
        self.ended, self.ended_here = kept["ended"], kept["ended_here"]

    def wake(self) -> None:
        """A process starts, perhaps after another one that was killed: what happened meanwhile is not known."""

    def commit(self) -> None:
        """Write all down."""
        self.journal.commit(self.record())

    # Letters that arrive

    def deliver(self, letter: Letter) -> Delivery:
        """Do what a letter asks for, once. The letter must not be used again: the party may write to its arrays."""
        if self.was_seen(letter):
            return Delivery(self._receipt(letter))
        if self.ended is None and self.must_wait(letter):
            return Delivery(None)
        self.heed(letter.fences)
        self._mark_seen(letter)
        told = [] if self.is_void(letter) else self._take_in(letter)
        self.commit()
        return Delivery(self._receipt(letter), told)

    def _take_in(self, letter: Letter) -> list[Message]:
        """What is asked for, unless it is over; who does not seem to know so is told."""
        asked = letter.message.payload
        if isinstance(asked, Void):
            return []
        if isinstance(asked, End):
            self.hear_end(asked, letter.sender)
        elif self.ended is None:
            return self.process(letter)
        elif isinstance(asked, Freeze):
            self.tell_end([letter.sender])
        return []

    def process(self, letter: Letter) -> list[Message]:
        """Have the party do it."""
        return self.post(self.party.receive(letter.message), letter)

    def must_wait(self, letter: Letter) -> bool:
        """Whether the letter cannot be taken in now; it will come again."""
        return False

    def was_seen(self, letter: Letter) -> bool:
        """Whether it was taken in before."""
        upto, beyond = self.seen.get(letter.sender, (0, []))
        return letter.sequence < upto or letter.sequence in beyond

    def _mark_seen(self, letter: Letter) -> None:
        """Kept short: all below a number, and those beyond that came too early."""
        upto, before = self.seen.get(letter.sender, (0, []))
        if letter.sequence == upto and not before:
            self.seen[letter.sender] = upto + 1, before
            return
        beyond = {*before, letter.sequence}
        while upto in beyond:
            beyond.remove(upto)
            upto += 1
        self.seen[letter.sender] = upto, sorted(beyond)

    def _receipt(self, letter: Letter) -> Receipt:
        return Receipt(letter.sender, letter.to, letter.sequence, dict(self.fences))

    # Letters to send

    def post(self, messages: Iterable[Message], cause: Letter | None) -> list[Message]:
        """Put messages into the outbox; those for the monitor come back. ``cause``: the letter they answer.

        Where the training ends, what was to be sent before is on the ledger, as in any engine, but is not sent: nobody
        is to act on it.
        """
        told = []
        messages, end = self.until_end(list(messages))
        for message in messages:
            if message.to == MONITOR:
                told.append(message)
            elif end is None:
                self.put(self.routed(message), self.iteration_of(message, cause))
            else:
                record(message, self.ledger)
        if end is not None:
            self.end(end)
        return told

    def put(self, message: Message, iteration: int) -> Letter:
        """Into the outbox, with the next number."""
        sequence = self.sent.get(message.to, 0)
        self.sent[message.to] = sequence + 1
        generation = self.generation_of(iteration)
        letter = Letter(self.number, message.to, sequence, iteration, generation, self.fences_to_tell(), message)
        self.outbox[message.to, sequence] = letter
        record(message, self.ledger)
        return letter

    def iteration_of(self, message: Message, cause: Letter | None) -> int:
        """The iteration that the message says it is of, or that of the letter it answers."""
        told: int | None = getattr(message.payload, "t", None)
        return told if told is not None else 0 if cause is None else cause.iteration

    def routed(self, message: Message) -> Message:
        """The message, or the same to somebody who is there."""
        return message

    def waiting(self) -> list[Letter]:
        """What is to be sent, until there is a receipt for it."""
        return list(self.outbox.values())

    def received(self, receipt: Receipt) -> None:
        """A receipt came. Nothing is written down: if it is forgotten, the letter is sent once more, and ignored."""
        if self.heed(receipt.fences):
            self.commit()
        self.outbox.pop((receipt.to, receipt.sequence), None)

    # Who is there

    def lost(self, k: int) -> None:
        """The links believe that a party is gone."""
        self.dead |= {k}

    def found(self, k: int) -> None:
        """It is there again."""
        self.dead -= {k}

    @property
    def waits_for(self) -> frozenset[int]:
        """Who is gone and must come back before the training can go on."""
        return self.dead

    # Generations: see iterations.py and lone_token.py

    def generation_of(self, iteration: int) -> int:
        """The generation of what is sent now."""
        return 0

    def heed(self, fences: Fences) -> bool:
        """Take note of what no longer counts; whether any of it was new."""
        return False

    def fences_to_tell(self) -> Fences:
        """Those that a letter tells."""
        return dict(self.fences)

    def is_void(self, letter: Letter) -> bool:
        """Whether it is of a generation that no longer counts."""
        return letter.generation < self.generation_of(letter.iteration)

    def mark_void(self) -> None:
        """What no longer counts is still sent, empty, so that no number is missing; it tells why it does not count."""
        for place, letter in self.outbox.items():
            if self.is_void(letter):
                self.outbox[place] = self.void(letter)

    def void(self, letter: Letter) -> Letter:
        """The same letter, empty."""
        empty = Message(letter.sender, letter.to, Void(letter.iteration))
        return letter._replace(fences=letter.fences | self.fences, message=empty)
