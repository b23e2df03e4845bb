"""The recovery policy of a party: what it does about parties that are down, beyond exactly-once
delivery.

A :class:`~mtcd.federation.delivery.reliable_party.ReliableParty` calls the methods of its policy at
fixed points; the policy acts through ``self.delivery``. The defaults are those of a party that
waits for all parties that are down. The policies of the methods are in
``mtcd.federation.recovery``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from mtcd.protocol.codec.envelopes import End, Envelope, Terms
from mtcd.protocol.party import Message, Party
from mtcd.training.divergence import DIVERGED

if TYPE_CHECKING:
    from mtcd.federation.delivery.reliable_party import ReliableParty


class UploadRules(Protocol):
    """What a policy asks about uploads: the methods of ``Uploads``, or of what takes its place."""

    kinds: tuple[type, ...]
    """The payloads that it processes."""

    @property
    def waits_for(self) -> frozenset[int]:
        """The clients without which there is no sum."""

    def snapshot(self, record: dict[str, Any]) -> dict[str, Any]:
        """The record for the journal."""

    def restore(self, record: dict[str, Any] | None) -> None:
        """Continue from a record of the journal."""

    def receive(self, envelope: Envelope) -> list[Message]:
        """Process an upload. Returns the reports for the monitor."""

    def complete_without_down(self) -> None:
        """A client is down: perhaps the others have all answered."""

    def route(self, message: Message) -> Message | None:
        """The message to send in place of a request; None if there is none."""


class RecoveryPolicy:
    """The policy of one party. A subclass overrides what differs for its kind of method."""

    delivery: ReliableParty
    """Set by the reliable party that the policy is given to."""
    state_fields: tuple[str, ...] = ()
    """The attributes that the journal keeps, each under its name."""
    uploads: UploadRules | None = None
    """At a server: what keeps the uploads of clients, some of it beside the journal."""

    # The journal

    def kept(self) -> Sequence[tuple[object, Sequence[str]]]:
        """The objects of this policy with the attributes that the journal keeps."""
        return [(self, self.state_fields)]

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
        # With a party that is down the next report may never come.
        end = end_now(delivery.party, status) if delivery.down or status == DIVERGED else None
        if end is None and status == DIVERGED:
            end = End(status, 0, getattr(delivery.party, "iteration", 0))
        if end is None:
            delivery.stop_request = status, 0
        else:
            delivery.conclude(end)
        delivery.commit()

    def may_end(self, end: End) -> End | None:
        """The end of a training that has reached ``end``; None if it goes on."""
        return end

    def receive_end(self, end: End, sender: int) -> None:
        """Another party has announced the end of the training."""
        delivery = self.delivery
        # The first end counts; others bring the same one by other ways.
        if delivery.ended is None:
            delivery.party.stop_at_sync(end.t, end.slots)
            delivery.ended = end
            # Passed on before this party leaves: its neighbours may have no other way to hear of
            # it.
            delivery.announce_end((delivery.neighbours or frozenset()) - {sender})


def end_now(party: Party, status: str) -> End | None:
    """The end at the last sync, whatever is under way; None if only the server knows of it."""
    sync = party.last_sync()
    if sync is None:
        return None
    return End(status, *sync, party.at_end())
