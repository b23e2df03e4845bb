"""The recovery policy of a party: what it does about parties that are down, beyond exactly-once
delivery.

A :class:`~mtcd.federation.delivery.reliable_party.ReliableParty` calls the methods of its policy at
fixed points; the policy acts through ``self.delivery``. The defaults are those of a party that
waits for all parties that are down. The policies of the methods are in
``mtcd.federation.recovery``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mtcd.protocol.codec.envelopes import End, Envelope, Terms
from mtcd.protocol.party import MONITOR, Message, Part, Party
from mtcd.training.divergence import DIVERGED

if TYPE_CHECKING:
    from mtcd.federation.delivery.reliable_party import ReliableParty


class RecoveryPolicy:
    """The policy of one party. A subclass overrides what differs for its kind of method."""

    delivery: ReliableParty
    """Set by the reliable party that the policy is given to."""
    state_fields: tuple[str, ...] = ()
    """The attributes that the journal keeps, each under its name."""

    # The journal

    def snapshot(self, record: dict[str, Any]) -> dict[str, Any]:
        """Add the state of the policy to the record of a commit."""
        for name in self.state_fields:
            record[name] = getattr(self, name)
        return record

    def restore(self, record: dict[str, Any] | None) -> None:
        """Continue from the last record of the journal; None if there is none. The party is
        restored before."""
        if record is not None:
            for name in self.state_fields:
                setattr(self, name, record[name])

    def started(self) -> None:
        """A new process has resumed from the journal: what happened since its last commit is
        unknown."""

    # Envelopes that arrive

    def arriving(self, envelope: Envelope) -> None:
        """An envelope has arrived, perhaps as a duplicate. Called before anything else."""

    def must_defer(self, envelope: Envelope) -> bool:
        """Whether the envelope cannot be processed now. It is not acknowledged, so it will be sent
        again."""
        return self.delivery.party.is_early(envelope.message.payload)

    def process(self, envelope: Envelope) -> list[Message]:
        """Process an envelope that is neither a duplicate nor stale. Returns the reports for the
        monitor."""
        return self.delivery.run_party(envelope)

    def after_end(self, envelope: Envelope) -> None:
        """An envelope has arrived after the end of the training."""

    # Messages to send

    def route(self, message: Message) -> Message | None:
        """The message, perhaps to another receiver; None if it is not to be sent."""
        return message

    def enqueued(self, envelope: Envelope) -> Envelope:
        """The envelope as it goes into the outbox."""
        return envelope

    # Terms: fencing tokens, see ``recovery/iterations.py`` and ``recovery/lone_token.py``

    def term_of(self, iteration: int) -> int:
        """The term of what is sent now."""
        return 0

    def terms_to_send(self) -> Terms:
        """The terms that an envelope carries."""
        return self.delivery.terms.copy()

    def learn_terms(self, terms: Terms) -> bool:
        """Learn the terms that another party knows. Returns whether any was new."""
        return False  # where nobody starts terms, nobody sends any

    def is_stale(self, envelope: Envelope) -> bool:
        """Whether the envelope belongs to a term, or to an iteration, that is over."""
        return False

    # Parties that are down

    def peer_lost(self, k: int) -> None:
        """Party k is down, as far as the links know; ``delivery.down`` has it. A wrong report does
        no harm."""

    def peer_found(self, k: int) -> None:
        """Party k is up again."""

    @property
    def waits_for(self) -> frozenset[int]:
        """The parties that are down and without which the training cannot continue."""
        return self.delivery.down

    def waiting_reason(self, names: Mapping[int, str]) -> str | None:
        """A sentence on what the training waits for, and what the user can do; None if it does not
        wait."""
        waits_for = ", ".join(sorted(names[k] for k in self.waits_for))
        if not waits_for:
            return None
        return f"Training waits for {waits_for}."

    # The end of the training

    def finish(self, status: str) -> None:
        """Stop at the next moment that this party reports to the monitor.

        If that may never come, as a party is down, the server stops at the last sync. So does every
        party that has diverged: what is not finite is never sent, and as no party keeps a block
        then, the moment does not matter.
        """
        delivery = self.delivery
        end = end_now(delivery.party, status) if delivery.down or status == DIVERGED else None
        if end is None and status == DIVERGED:
            end = End(status, 0, getattr(delivery.party, "iteration", 0))
        if end is None:
            delivery.stop_request = status, 0
        else:
            delivery.conclude(end)
        delivery.commit()

    def cut_at_end(self, messages: Sequence[Message]) -> tuple[Sequence[Message], End | None]:
        """The messages up to the first report at which the training ends, and that end."""
        delivery = self.delivery
        for count, message in enumerate(messages, 1):
            if message.to == MONITOR:
                report, request = message.payload, delivery.stop_request
                status = delivery.limit(report)
                if status is None and request is not None:
                    asked, least_hops = request
                    if end_at(report, "", delivery.party).hop >= least_hops:
                        status = asked
                if status is not None:
                    return messages[:count], end_at(
                        report, delivery.judge(report, status), delivery.party
                    )
        return messages, None

    def receive_end(self, end: End, sender: int) -> None:
        """Another party has announced the end of the training."""
        delivery = self.delivery
        if delivery.ended is None:
            delivery.party.stop_at_sync(end.t, end.slots)
            delivery.ended = end
            delivery.announce_end((delivery.neighbours or frozenset()) - {sender})


def end_at(report: Any, status: str, party: Party) -> End:
    """The end at a report to the monitor: progress, a lone token, or a client's part of it."""
    if isinstance(report, Part):
        return End(status, 0, report.iteration)
    return End(status, report.t, report.hop, party.at_end())


def end_now(party: Party, status: str) -> End | None:
    """The end at the last sync, whatever is under way; None if only the server knows of it."""
    sync = party.last_sync()
    if sync is None:
        return None
    return End(status, *sync, party.at_end())
