"""A party with its mail: what arrives is processed exactly once, and what is sent arrives, through any restarts.

A reliable does no I/O. Whoever owns the links gives it the envelopes and acks that arrive, and sends again and
again what it has ``waiting``. What it did and what it is about to send go into the journal together, before the
ack: after a restart at any moment the party is where the others believe it to be.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from mtcd.federation.delivery.ending import Ending
from mtcd.federation.delivery.envelopes import Ack, Cancelled, End, Envelope, Prepare, Terms
from mtcd.federation.delivery.journal import Journal
from mtcd.ledger.ledger import Ledger
from mtcd.protocol.accounting import record
from mtcd.protocol.party import MONITOR, Message, Party


class Delivery(NamedTuple):
    """What came of an envelope: the ack to send, or None for 'not now', and what the monitor is told."""

    ack: Ack | None
    told: Sequence[Message] = ()


class ReliableParty(Ending):
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
        self.terms: Terms = {}
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
            "terms": self.terms,
            "ledger": self.ledger,
            "finishing": self.finishing,
            "ended": self.ended,
            "ended_here": self.ended_here,
        }

    def reload(self, kept: dict[str, Any]) -> None:
        """Go on from what a journal had."""
        self.party.restore(kept["party"])
        self.outbox = {(envelope.to, envelope.sequence): envelope for envelope in kept["outbox"]}
        self.sent, self.seen, self.terms = kept["sent"], kept["seen"], kept["terms"]
        self.ledger, self.finishing = kept["ledger"], kept["finishing"]
        self.ended, self.ended_here = kept["ended"], kept["ended_here"]

    def start(self) -> None:
        """A process starts, perhaps after another one that was killed: what happened meanwhile is not known."""

    def commit(self) -> None:
        """Write all down."""
        self.journal.commit(self.record())

    # Envelopes that arrive

    def deliver(self, envelope: Envelope) -> Delivery:
        """Process an envelope, once. It must not be used again: the party may write to its arrays."""
        if self.is_duplicate(envelope):
            return Delivery(self._ack(envelope))
        if self.ended is None and self.must_defer(envelope):
            return Delivery(None)
        self.learn_terms(envelope.terms)
        self._mark_seen(envelope)
        told = [] if self.is_stale(envelope) else self._take_in(envelope)
        self.commit()
        return Delivery(self._ack(envelope), told)

    def _take_in(self, envelope: Envelope) -> list[Message]:
        """What is asked for, unless it is over; who does not seem to know so is told."""
        asked = envelope.message.payload
        if isinstance(asked, Cancelled):
            return []
        if isinstance(asked, End):
            self.hear_end(asked, envelope.sender)
        elif self.ended is None:
            return self.process(envelope)
        elif isinstance(asked, Prepare):
            self.tell_end([envelope.sender])
        return []

    def process(self, envelope: Envelope) -> list[Message]:
        """Have the party do it."""
        return self.post(self.party.receive(envelope.message), envelope)

    def must_defer(self, envelope: Envelope) -> bool:
        """Whether the envelope cannot be taken in now; it will come again."""
        return False

    def is_duplicate(self, envelope: Envelope) -> bool:
        """Whether it was taken in before."""
        upto, beyond = self.seen.get(envelope.sender, (0, []))
        return envelope.sequence < upto or envelope.sequence in beyond

    def _mark_seen(self, envelope: Envelope) -> None:
        """Kept short: all below a number, and those beyond that came too early."""
        upto, before = self.seen.get(envelope.sender, (0, []))
        if envelope.sequence == upto and not before:
            self.seen[envelope.sender] = upto + 1, before
            return
        beyond = {*before, envelope.sequence}
        while upto in beyond:
            beyond.remove(upto)
            upto += 1
        self.seen[envelope.sender] = upto, sorted(beyond)

    def _ack(self, envelope: Envelope) -> Ack:
        return Ack(envelope.sender, envelope.to, envelope.sequence, dict(self.terms))

    # Envelopes to send

    def post(self, messages: Iterable[Message], cause: Envelope | None) -> list[Message]:
        """Put messages into the outbox; those for the monitor come back. ``cause``: the envelope they answer.

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

    def put(self, message: Message, iteration: int) -> Envelope:
        """Into the outbox, with the next number."""
        sequence = self.sent.get(message.to, 0)
        self.sent[message.to] = sequence + 1
        term = self.term_of(iteration)
        envelope = Envelope(self.number, message.to, sequence, iteration, term, self.terms_to_send(), message)
        self.outbox[message.to, sequence] = envelope
        record(message, self.ledger)
        return envelope

    def iteration_of(self, message: Message, cause: Envelope | None) -> int:
        """The iteration that the message says it is of, or that of the envelope it answers."""
        told: int | None = getattr(message.payload, "t", None)
        return told if told is not None else 0 if cause is None else cause.iteration

    def routed(self, message: Message) -> Message:
        """The message, or the same to somebody who is there."""
        return message

    def unacknowledged(self) -> list[Envelope]:
        """What is to be sent, until there is an ack for it."""
        return list(self.outbox.values())

    def acknowledge(self, ack: Ack) -> None:
        """An ack came. Nothing is written down: if it is forgotten, the envelope is sent once more, and ignored."""
        if self.learn_terms(ack.terms):
            self.commit()
        self.outbox.pop((ack.to, ack.sequence), None)

    # Who is there

    def peer_lost(self, k: int) -> None:
        """The links believe that a party is gone."""
        self.down |= {k}

    def peer_found(self, k: int) -> None:
        """It is there again."""
        self.down -= {k}

    @property
    def waits_for(self) -> frozenset[int]:
        """Who is gone and must come back before the training can go on."""
        return self.down

    # Generations: see iterations.py and lone_token.py

    def term_of(self, iteration: int) -> int:
        """The term of what is sent now."""
        return 0

    def learn_terms(self, terms: Terms) -> bool:
        """Take note of what no longer counts; whether any of it was new."""
        return False

    def terms_to_send(self) -> Terms:
        """Those that an envelope tells."""
        return dict(self.terms)

    def is_stale(self, envelope: Envelope) -> bool:
        """Whether it is of a term that no longer counts."""
        return envelope.term < self.term_of(envelope.iteration)

    def cancel_stale(self) -> None:
        """What no longer counts is still sent, empty, so that no number is missing; it tells why it does not count."""
        for place, envelope in self.outbox.items():
            if self.is_stale(envelope):
                self.outbox[place] = self.cancelled(envelope)

    def cancelled(self, envelope: Envelope) -> Envelope:
        """The same envelope, empty."""
        empty = Message(envelope.sender, envelope.to, Cancelled(envelope.iteration))
        return envelope._replace(terms=envelope.terms | self.terms, message=empty)
