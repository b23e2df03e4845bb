"""A party with exactly-once delivery: each envelope is processed once, and what is sent arrives,
through any restarts.

A reliable party does no I/O and has no clock. The owner of the links passes the envelopes and acks
that arrive to ``deliver`` and ``acknowledge``, reports parties that are down or up again, and sends
what is ``unacknowledged`` again and again. The state of the party and its outbox go into the
journal in one commit, before the ack. So after a restart at any moment the party is where the
others believe it to be.

What to do about parties that are down differs between the methods: a :class:`RecoveryPolicy`
decides it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from mtcd.federation.delivery.journal import Journal
from mtcd.federation.delivery.policy import RecoveryPolicy
from mtcd.protocol.codec.envelopes import Ack, Cancelled, End, Envelope, Terms
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.protocol.ledger.record import record
from mtcd.protocol.party import MONITOR, Message, Part, Party

Limit = Callable[[Any], str | None]
"""Given a report to the monitor, progress or a lone token: the status with which the training ends
there, or None."""

Judge = Callable[[Any, str], str]
"""Given such a report and a status: the same status, or diverged if the report shows it."""


class Delivery(NamedTuple):
    """The result of a delivery: the ack to send, None if the envelope was deferred, and the reports
    for the monitor."""

    ack: Ack | None
    reports: Sequence[Message] = ()


STATE_FIELDS = ("sent", "seen", "terms", "ledger", "stop_request", "slots", "ended", "ended_here")
"""The attributes of a reliable party that the journal keeps, beside its party and its outbox."""


class ReliableParty:
    """Party ``number`` with its outbox, its journal and its recovery policy. Call ``resume`` before
    anything else.

    ``opening``: the messages that start the training, of all parties. ``clients``: how many there
    are. ``neighbours``: where there is no server, those that this party announces the end to, and
    they to theirs, so that it does not depend on parties that have left; None: it is announced to
    all.

    If a method raises an error, the party must be made again from its journal: half of the work may
    be done.
    """

    def __init__(
        self,
        number: int,
        party: Party,
        policy: RecoveryPolicy,
        journal: Journal,
        opening: Iterable[Message] = (),
        clients: int = 0,
        neighbours: frozenset[int] | None = None,
    ) -> None:
        self.number, self.party, self.policy, self.journal = number, party, policy, journal
        self.opening, self.clients, self.neighbours = opening, clients, neighbours
        self.outbox: dict[tuple[int, int], Envelope] = {}
        """Envelopes without an ack, by receiver and sequence number."""
        self.sent: dict[int, int] = {}
        """By receiver, the next sequence number."""
        self.seen: dict[int, tuple[int, list[int]]] = {}
        """By sender: all sequence numbers below the first were processed, and those of the list."""
        self.terms: Terms = {}
        """They are never written to, only replaced: envelopes share the dict."""
        self.ledger = Ledger()
        """The messages that this party has sent."""
        self.reports: list[Message] = []
        """Reports that no delivery returned: of the opening, and of ``peer_lost``. Their reader
        empties the list."""
        self.down: frozenset[int] = frozenset()
        """The parties that the links report as down. A hint where not to send tokens: a wrong one
        does no harm."""
        self.limit: Limit = lambda report: None
        self.judge: Judge = lambda report, status: status
        self.stop_request: tuple[str, int] | None = None
        """The status with which to end at the next report, from so many hops on."""
        self.slots: Mapping[str, Any] = {}
        """What stop rules remember, at the server; without one, the token carries it."""
        self.ended: End | None = None
        self.ended_here = False
        """Whether this party has ended the training."""
        self.resumed = False
        """Whether the journal had a commit to continue from."""
        policy.delivery = self
        self._kept = [
            (owner, name)
            for owner, names in ((self, STATE_FIELDS), *policy.kept())
            for name in names
        ]
        """What a restart needs, as attributes of objects: commits are written and read by it."""

    # The journal

    def resume(self) -> ReliableParty:
        """Continue from the journal; if it is empty, send the messages that open the training."""
        record = self.journal.last()
        if record is not None:
            self.resumed = True
            self.party.restore(record["party"])
            self.outbox = {(one.to, one.sequence): one for one in record["outbox"]}
            for owner, name in self._kept:
                setattr(owner, name, record[name])
        if self.policy.uploads is not None:
            self.policy.uploads.restore(record)

        if not self.resumed:
            mine = [message for message in self.opening if message.sender == self.number]
            self.reports = self.send(mine, None)
            self.commit()
        return self

    def started(self) -> None:
        """A new process runs this party: tell the party, if it has run before, and the policy."""
        # A party that has ended answers nothing any more.
        if self.resumed and self.ended is None:
            messages = self.party.restarted()
            if messages is not None:
                self.reports += self.send(messages, None)
                self.commit()
        self.policy.started()

    def snapshot(self) -> dict[str, Any]:
        """All that a restart needs."""
        record = {"party": self.party.state(), "outbox": list(self.outbox.values())}
        for owner, name in self._kept:
            record[name] = getattr(owner, name)
        if self.policy.uploads is not None:
            record = self.policy.uploads.snapshot(record)
        return record

    def put(self, name: str, value: Any) -> None:
        """Keep what a stop rule remembers, in place of an earlier value."""
        self.slots = {**self.slots, name: value}

    def commit(self) -> None:
        """Write the state to the journal."""
        self.journal.commit(self.snapshot())

    # Envelopes that arrive

    def deliver(self, envelope: Envelope, look: Callable[[Any], None] | None = None) -> Delivery:
        """Process an envelope, once. It must not be used again: the party may write to its
        arrays. ``look`` sees its payload first, unless it is a duplicate."""
        policy = self.policy
        policy.arriving(envelope)
        # Acknowledged again: the first ack may be lost. Nothing else may happen twice.
        if self.is_duplicate(envelope):
            return Delivery(self._ack(envelope))
        message, transport = envelope.message, self.party.transport
        if transport is not None and envelope.sender != self.number:  # arrays in their wire form
            message.payload = transport.received(message.payload, envelope.sender)
        if look is not None:
            look(message.payload)
        if self.ended is None and policy.must_defer(envelope):
            return Delivery(None)
        if envelope.terms:
            policy.learn_terms(envelope.terms)
        # Marked even if stale: a gap in the numbers would hold up all that follows.
        self._mark_seen(envelope)
        reports: list[Message] = []
        if not policy.is_stale(envelope):
            if isinstance(message.payload, End):
                policy.receive_end(message.payload, envelope.sender)
            elif self.ended is not None:
                policy.after_end(envelope)
            elif not isinstance(message.payload, Cancelled):
                reports = policy.process(envelope)
        # State, outbox and numbers in one commit, before the ack: the sender then forgets the
        # message.
        self.commit()
        return Delivery(self._ack(envelope), reports)

    def run_party(self, envelope: Envelope) -> list[Message]:
        """Let the party process the message, and send what it answers. Returns the reports for the
        monitor."""
        return self.send(self.party.receive(envelope.message), envelope)

    def is_duplicate(self, envelope: Envelope) -> bool:
        """Whether the envelope was processed before."""
        below, beyond = self.seen.get(envelope.sender, (0, []))
        return envelope.sequence < below or envelope.sequence in beyond

    def _mark_seen(self, envelope: Envelope) -> None:
        below, beyond = self.seen.get(envelope.sender, (0, []))
        if envelope.sequence != below or beyond:
            ahead = {*beyond, envelope.sequence}
            while below in ahead:
                ahead.remove(below)
                below += 1
            self.seen[envelope.sender] = below, sorted(ahead)
        else:
            self.seen[envelope.sender] = below + 1, beyond

    def _ack(self, envelope: Envelope) -> Ack:
        return Ack(envelope.sender, envelope.to, envelope.sequence, self.terms)

    # Messages to send

    def send(self, messages: Sequence[Message], cause: Envelope | None) -> list[Message]:
        """Put messages into the outbox; returns those for the monitor. ``cause``: the envelope that
        they answer.

        Where the training ends, the ledger counts what was sent before the last report, as in any
        engine, but nothing of it is sent: no party is to act on it.
        """
        reports = []
        of_cause = 0 if cause is None else cause.iteration
        until, end = self._until_end(messages)
        for message in until:
            if message.to == MONITOR:
                reports.append(message)
            elif end is not None:
                record(message, self.ledger)
            else:
                # the iteration that it names, or else that of its cause
                iteration = getattr(message.payload, "t", of_cause)
                routed = self.policy.route(message)
                if routed is not None:
                    self.enqueue(routed, iteration)
        if end is not None:
            self.conclude(end)
        return reports

    def _until_end(self, messages: Sequence[Message]) -> tuple[Sequence[Message], End | None]:
        """The messages up to the first report at which the training ends, and that end."""
        for count, message in enumerate(messages, 1):
            if message.to != MONITOR:
                continue
            report = message.payload
            status = self.limit(report)
            if status is None and self.stop_request is not None:
                asked, least_hops = self.stop_request
                if end_at(report, "", self.party).hop >= least_hops:
                    status = asked
            if status is None:
                continue
            end = self.policy.may_end(end_at(report, self.judge(report, status), self.party))
            if end is None:
                break
            return messages[:count], end
        return messages, None

    def enqueue(self, message: Message, iteration: int) -> Envelope:
        """Put a message into the outbox, with the next sequence number."""
        to, policy, transport = message.to, self.policy, self.party.transport
        # Once, when it is sent: what is sent again must be the same bytes.
        if transport is not None and to != self.number:
            message.payload = transport.sent(message.payload, to)
        sequence = self.sent.get(to, 0)
        self.sent[to] = sequence + 1
        term, terms = policy.term_of(iteration), self.terms
        envelope = policy.enqueued(
            Envelope(self.number, to, sequence, iteration, term, terms, message)
        )
        self.outbox[to, sequence] = envelope
        record(message, self.ledger)
        return envelope

    def send_control(self, to: int, payload: Any, iteration: int = 0) -> Envelope:
        """Send a control payload to another party."""
        return self.enqueue(Message(self.number, to, payload), iteration)

    def unacknowledged(self) -> list[Envelope]:
        """The envelopes to send, until there is an ack for each."""
        return list(self.outbox.values())

    def acknowledge(self, ack: Ack) -> None:
        """An ack has arrived. It is not committed: if it is forgotten, a duplicate is sent, and
        ignored."""
        if ack.terms and self.policy.learn_terms(ack.terms):
            self.commit()
        self.outbox.pop((ack.to, ack.sequence), None)

    def cancel_stale(self) -> None:
        """Empty the envelopes whose term is over. They are still sent, so that no sequence number
        is missing."""
        for place, envelope in self.outbox.items():
            if self.policy.is_stale(envelope):
                self.outbox[place] = self.cancelled(envelope)

    def cancelled(self, envelope: Envelope) -> Envelope:
        """The same envelope without its payload; it carries the terms that cancelled it."""
        empty = Message(envelope.sender, envelope.to, Cancelled(envelope.iteration))
        # All terms: those that it carries now, and those for which it was cancelled.
        return envelope._replace(terms=envelope.terms | self.terms, message=empty)

    # Parties that are down

    def peer_lost(self, k: int) -> None:
        """The links report that party k is down."""
        if k not in self.down:
            self.down |= {k}
            self.policy.peer_lost(k)

    def peer_found(self, k: int) -> None:
        """The links report that party k is up."""
        if k in self.down:
            self.down -= {k}
            self.policy.peer_found(k)

    # The end of the training

    def finish(self, status: str) -> None:
        """Stop as soon as the policy allows."""
        if self.ended is None:
            self.policy.finish(status)

    def conclude(self, end: End) -> None:
        """End the training here, and announce the end."""
        self.ended, self.ended_here = end, True
        # Without a server only to its neighbours, who pass it on.
        if self.neighbours is not None:
            self.announce_end(self.neighbours)
        else:
            self.announce_end(k for k in range(self.clients) if k != self.number)

    def announce_end(self, to: Iterable[int]) -> None:
        """Send the end to parties, unless it is in the outbox already."""
        # Found in the outbox, not remembered: so it is right after a restart, too.
        pending = set()
        for envelope in self.outbox.values():
            if isinstance(envelope.message.payload, End):
                pending.add(envelope.to)
        for k in to:
            if self.ended is not None and k not in pending:
                self.send_control(k, self.ended, self.ended.t)

    def correct_status(self, status: str) -> None:
        """The status of the end became known only later."""
        if self.ended is not None:
            self.ended = replace(self.ended, status=status)
            self.commit()


def end_at(report: Any, status: str, party: Party) -> End:
    """The end at a report to the monitor: progress, a lone token, or a client's part of it."""
    if isinstance(report, Part):
        return End(status, 0, report.iteration)
    return End(status, report.t, report.hop, party.at_end())
