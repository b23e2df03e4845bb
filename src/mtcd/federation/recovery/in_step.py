"""Custody of clients that go in step with their neighbours (dcpa): they must all stop at the same iteration.

Limits that count iterations are reached by all at the same one. But whoever is asked to stop, or finds that the time is
up, is alone with that. It then names an iteration that nobody can have finished when it hears of it, and tells its
neighbours, who tell theirs. Envelopes are taken in in their order, so nobody gets past what it was not told of: who
names an iteration is in iteration i and has offered nothing of the next one, so a client d links away hears of it
before it has finished iteration i + d. Of several that are named, the first counts.
"""

from __future__ import annotations

from mtcd.divergence import DIVERGED
from mtcd.federation.delivery.envelopes import End, Envelope
from mtcd.federation.delivery.reliable_party import ReliableParty
from mtcd.methods.dcpa import DCPAClient
from mtcd.protocol.party import Message

TIME_IS_UP = "seconds"


class InStepClient(ReliableParty):
    """Of a client of dcpa."""

    party: DCPAClient

    def must_defer(self, envelope: Envelope) -> bool:
        """Until all that its sender sent before is here."""
        upto, _ = self.seen.get(envelope.sender, (0, []))
        return envelope.sequence > upto

    def finish(self, status: str) -> None:
        if status == DIVERGED:
            super().finish(status)
        elif self.ended is None:
            self._name_an_end(status)
            self.commit()

    def until_end(self, messages: list[Message]) -> tuple[list[Message], End | None]:
        upto, end = super().until_end(messages)
        if end is not None and self.finishing is not None and end.hop >= self.finishing[1]:
            return upto, End(self.finishing[0], end.t, end.hop)
        if end is not None and end.status == TIME_IS_UP:
            self._name_an_end(TIME_IS_UP)
            return messages, None
        return upto, end

    def hear_end(self, end: End, teller: int) -> None:
        if end.status == DIVERGED:
            super().hear_end(end, teller)
        elif self.ended is None:
            self._stop_at(end)

    def _name_an_end(self, status: str) -> None:
        self._stop_at(End(status, 0, self.party.iteration + self.clients))

    def _stop_at(self, end: End) -> None:
        if self.finishing is None or end.hop < self.finishing[1]:
            self.finishing = end.status, end.hop
            for k in self.party.neighbours:
                self.put(Message(self.number, k, end), 0)
