"""Custody of a client that tokens visit between two syncs: see ``iterations``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mtcd.errors import NetworkError
from mtcd.federation.delivery.envelopes import End, Envelope, HolderLost, ResendTokens, Terms, Undeliverable
from mtcd.federation.recovery.detours import detour, way_round
from mtcd.federation.recovery.iterations import IterationParty, base_term, has_speculative_term
from mtcd.methods.token_parties import TokenClient, Visits
from mtcd.network.walks import NOWHERE
from mtcd.protocol.party import SERVER, Message
from mtcd.protocol.token import Token
from mtcd.seeding import uniform


class IterationClient(IterationParty):
    """Of a client of mtcd."""

    party: TokenClient

    def __init__(self, *given: Any, **more: Any) -> None:
        self.up: dict[int, Envelope] = {}
        """By index, the tokens that went up from here in this iteration, and have not come to roam again."""
        self.before: dict[int, Visits] = {}
        """By overtime that may turn out not to count, what the party held before its first visit in it."""
        self.passed_to: set[int] = set()
        """Who got tokens of this iteration from here."""
        super().__init__(*given, **more)

    def record(self) -> dict[str, Any]:
        return super().record() | {"up": self.up, "before": self.before, "passed_to": self.passed_to}

    def reload(self, kept: dict[str, Any]) -> None:
        self.up, self.before, self.passed_to = kept["up"], kept["before"], kept["passed_to"]
        super().reload(kept)

    @property
    def waits_for(self) -> frozenset[int]:
        """A client needs the server."""
        return self.down if SERVER in self.down else frozenset()

    # Envelopes that arrive

    def process(self, envelope: Envelope) -> list[Message]:
        party, asked = self.party, envelope.message.payload
        if isinstance(asked, ResendTokens):
            self._confirm()
            return []
        if isinstance(asked, Token) and not party.plan.roaming.walks[asked.index].covers(self.number):
            raise NetworkError(f"Token {asked.index} does not come here.")
        if envelope.iteration > party.t:
            self.discard_uncommitted()
            party.settle(envelope.iteration)
        if isinstance(asked, Token) and envelope.term > self.term_of(party.t):
            self.before[envelope.term] = party.visits()
        told = super().process(envelope)
        self.terms = {t: term for t, term in self.terms.items() if t >= party.t}
        return told

    def hear_end(self, end: End, teller: int) -> None:
        if self.ended is None:
            self.discard_uncommitted()
        super().hear_end(end, teller)

    def discard_uncommitted(self) -> None:
        """Of the iteration that is over: speculative terms after the one that was synced with."""
        late = [overtime for overtime in self.before if overtime > self.terms.get(self.party.t, 0)]
        if late:
            self.party.undo_visits(self.before[min(late)])
        self.up, self.before, self.passed_to = {}, {}, set()

    def learn_terms(self, terms: Terms) -> bool:
        """Copies of an iteration that was started anew are dropped. Only the server starts one anew."""
        party = self.party
        known = self.terms.get(party.t, 0)  # no mutants: an overtime of term 0 counts like it
        raised = {t: g for t, g in terms.items() if t >= party.t and g > self.terms.get(t, 0)}
        if not raised:
            return False
        self.terms |= raised
        now = self.terms.get(party.t, 0)
        if base_term(now) > base_term(known):
            party.undo_visits()
            self.up, self.before, self.passed_to = {}, {}, set()
        self.before = {overtime: held for overtime, held in self.before.items() if overtime > now}
        self.cancel_stale()
        return True

    # Envelopes to send

    def term_of(self, iteration: int) -> int:
        """The latest overtime in which tokens have been here: none leaves in an earlier one."""
        known = super().term_of(iteration)
        return max(known, *self.before) if self.before and iteration == self.party.t else known

    def put(self, message: Message, iteration: int) -> Envelope:
        envelope = super().put(message, iteration)
        if isinstance(message.payload, Token):
            if message.to == SERVER:
                self.up[message.payload.index] = envelope
            else:
                self.passed_to.add(message.to)
        return envelope

    def routed(self, message: Message) -> Message:
        """Round those who are gone, inside the cluster of the token."""
        token, party = message.payload, self.party
        if not isinstance(token, Token):
            return message
        if message.to == SERVER:
            if SERVER not in self.down:
                return message
            message.to = party.next_client(token)
        roaming, gone = party.plan.roaming, self.down - {SERVER}
        walk = roaming.walks[token.index]
        draw = uniform(roaming.seed, "detour", (token.index, token.t), token.hop)
        if walk.length is None:
            message.to = (
                message.to if message.to not in gone else detour(walk.near(self.number), gone, self.number, draw)
            )
        elif self.network is not None:
            previous = NOWHERE if self.cause is None else self.cause.sender
            message.to = way_round(walk, self.network, message.to, self.number, previous, gone, draw)
        return message

    def _confirm(self) -> None:
        """The server asks for what it was sent in an earlier overtime, or by a process that is gone."""
        for envelope in list(self.up.values()):
            if envelope.term < self.terms.get(envelope.iteration, 0):  # no mutants: who is asked was told the term
                told_already = replace(envelope.message, floats=0, hop_floats=0)  # and is on the ledger
                self._renew(envelope, told_already)

    # Who is there

    def peer_lost(self, k: int) -> None:
        """Without the server, tokens that went up are taken back. It is told of those that somebody may have lost."""
        super().peer_lost(k)
        stuck = {
            envelope.iteration
            for envelope in self.outbox.values()
            if envelope.to == k and self._is_on_its_way(envelope)
        }
        for t in stuck:  # once for each term
            self.put(Message(self.number, SERVER, Undeliverable(t)), t)
        missed = k in self.passed_to and not stuck
        if missed:
            self.put(Message(self.number, SERVER, HolderLost(self.party.t, k)), self.party.t)
        taken = k == SERVER and self._take_back()
        if stuck or missed or taken:
            self.commit()

    def _is_on_its_way(self, envelope: Envelope) -> bool:
        return envelope.to >= 0 and isinstance(envelope.message.payload, Token) and not self.is_stale(envelope)

    def _take_back(self) -> bool:
        """Let tokens roam on that went up, speculatively; whether there were any."""
        taken = [
            envelope for envelope in self.up.values() if self.ended is None and has_speculative_term(envelope.term)
        ]
        for envelope in taken:
            token = envelope.message.payload
            assert isinstance(token, Token)
            del self.up[token.index]
            floats = token.floats
            roaming = self.routed(replace(envelope.message, floats=floats, hop_floats=0))  # the hop is on the ledger
            again = self._renew(envelope, roaming)
            if again.to != self.number:  # there it was charged as one that sends nothing
                self.ledger.unsent_hops -= 1
                self.ledger.unsent_floats -= floats
            overtime = max(envelope.term + 1, again.term)
            self.outbox[again.to, again.sequence] = again._replace(term=overtime)
        return bool(taken)

    def _renew(self, envelope: Envelope, message: Message) -> Envelope:
        """Send this instead; it tells all that the envelope told."""
        if (envelope.to, envelope.sequence) in self.outbox:
            self.outbox[envelope.to, envelope.sequence] = self.cancelled(envelope)
        self.cause = envelope
        renewed = self.put(message, envelope.iteration)
        self.cause = None
        return renewed
