"""Restart of iterations at a client that tokens visit between two syncs: see ``iterations.py``."""

from __future__ import annotations

from dataclasses import replace

from mtcd.core.errors import NetworkError
from mtcd.core.seeding import uniform
from mtcd.federation.delivery.policy import RecoveryPolicy
from mtcd.federation.recovery.detours import next_around
from mtcd.federation.recovery.iterations import base_term, has_speculative_term, is_over, known_term
from mtcd.methods.mtcd.server import TokenClient, Visits
from mtcd.network.topology import Network
from mtcd.network.walks import NOWHERE
from mtcd.protocol.codec.envelopes import (
    End,
    Envelope,
    HolderLost,
    ResendTokens,
    Terms,
    Undeliverable,
)
from mtcd.protocol.party import SERVER, Message
from mtcd.protocol.token import Token


class IterationClient(RecoveryPolicy):
    """The policy of a client of MTCD. It uses the network to route tours around clients that are
    down."""

    state_fields = ("uploaded", "checkpoints", "passed_to")

    def __init__(self, party: TokenClient, network: Network) -> None:
        self.party, self.network = party, network
        self.uploaded: dict[int, Envelope] = {}
        """By index, the tokens that were uploaded from here in this iteration and do not roam
        again."""
        self.checkpoints: dict[int, Visits] = {}
        """By speculative term that may not be synced, what the party held before its first visit in
        it."""
        self.passed_to: set[int] = set()
        """The clients that received tokens of this iteration from here."""
        self.cause: Envelope | None = None
        """The envelope that is being processed."""

    @property
    def waits_for(self) -> frozenset[int]:
        """A client needs the server."""
        down = self.delivery.down
        if SERVER not in down:
            return frozenset()
        return down

    # Envelopes that arrive

    def process(self, envelope: Envelope) -> list[Message]:
        party, payload, delivery = self.party, envelope.message.payload, self.delivery
        if isinstance(payload, ResendTokens):
            self._confirm_uploaded()
            return []
        token = payload if isinstance(payload, Token) else None
        if token is not None and not party.plan.roaming.walks[token.index].covers(party.number):
            raise NetworkError(f"Token {token.index} does not come here.")
        if envelope.iteration > party.t:
            self.roll_back()
            party.apply_sync(envelope.iteration)
        if token is not None and envelope.term > self.term_of(party.t):
            self.checkpoints[envelope.term] = party.visits()
        self.cause = envelope
        reports = delivery.run_party(envelope)
        self.cause = None
        if delivery.terms:
            delivery.terms = {t: term for t, term in delivery.terms.items() if t >= party.t}
        return reports

    def receive_end(self, end: End, sender: int) -> None:
        if self.delivery.ended is None:
            self.roll_back()
        super().receive_end(end, sender)

    def roll_back(self) -> None:
        """The iteration is over: undo the speculative terms after the one that was synced."""
        # ``learn_terms`` has dropped those of the term that was synced, and of earlier ones
        if self.checkpoints:
            self.party.undo_visits(self.checkpoints[min(self.checkpoints)])
        self._forget_iteration()

    def _forget_iteration(self) -> None:
        self.uploaded, self.checkpoints, self.passed_to = {}, {}, set()

    # Terms

    def term_of(self, iteration: int) -> int:
        """The latest speculative term in which tokens have been here: none leaves in an earlier
        one."""
        known = known_term(self.delivery.terms, iteration)
        if not self.checkpoints or iteration != self.party.t:
            return known
        return max(known, *self.checkpoints)

    def is_stale(self, envelope: Envelope) -> bool:
        return is_over(envelope, self.party.t, self.term_of(envelope.iteration))

    def learn_terms(self, terms: Terms) -> bool:
        """Copies of an iteration that was restarted are dropped. Only the server restarts one."""
        party, delivery = self.party, self.delivery
        raised: Terms = {}
        for t, term in terms.items():
            if t >= party.t and term > known_term(delivery.terms, t):
                raised[t] = term
        if not raised:
            return False
        known = known_term(delivery.terms, party.t)
        delivery.terms = delivery.terms | raised  # envelopes share the dict
        now = known_term(delivery.terms, party.t)
        if base_term(now) > base_term(known):
            party.undo_visits()
            self._forget_iteration()
        self.checkpoints = {term: held for term, held in self.checkpoints.items() if term > now}
        delivery.cancel_stale()
        return True

    # Messages to send

    def route(self, message: Message) -> Message:
        """Around clients that are down, inside the cluster of the token."""
        token, party, down = message.payload, self.party, self.delivery.down
        if not isinstance(token, Token):
            return message
        if message.to == SERVER:
            if SERVER not in down:
                return message
            message.to = party.next_client(token)
        roaming = party.plan.roaming
        walk = roaming.walks[token.index]
        if down or walk.length is not None:
            draw = uniform(roaming.seed, "detour", (token.index, token.t), token.hop)
            previous = NOWHERE if self.cause is None else self.cause.sender
            clients_down = down - {SERVER}
            message.to = next_around(
                walk, self.network, message.to, party.number, previous, clients_down, draw
            )
        return message

    def enqueued(self, envelope: Envelope) -> Envelope:
        if self.cause is not None and self.cause.terms:
            envelope = envelope._replace(terms=self.cause.terms | envelope.terms)
        token = envelope.message.payload
        if isinstance(token, Token):
            if envelope.to == SERVER:
                self.uploaded[token.index] = envelope
            else:
                self.passed_to.add(envelope.to)
        return envelope

    def _confirm_uploaded(self) -> None:
        """The server requests what was uploaded in an earlier speculative term, or to a process
        that has crashed."""
        terms = self.delivery.terms
        for envelope in list(self.uploaded.values()):
            if envelope.term < known_term(terms, envelope.iteration):
                # it is on the ledger
                self._send_again(envelope, replace(envelope.message, floats=0, hop_floats=0))

    def _send_again(self, envelope: Envelope, message: Message) -> Envelope:
        """Send this message in place of an earlier envelope, with all terms that it carried."""
        outbox, place = self.delivery.outbox, (envelope.to, envelope.sequence)
        if place in outbox:
            outbox[place] = self.delivery.cancelled(envelope)
        self.cause = envelope
        renewed = self.delivery.enqueue(message, envelope.iteration)
        self.cause = None
        return renewed

    # Parties that are down

    def peer_lost(self, k: int) -> None:
        """Report tokens that may be lost to the server. Without the server, take uploaded tokens
        back."""
        delivery, party = self.delivery, self.party
        to_k = [envelope for (to, _), envelope in delivery.outbox.items() if to == k >= 0]
        stuck = set()
        for one in to_k:
            if isinstance(one.message.payload, Token) and not self.is_stale(one):
                stuck.add(one.iteration)
        for t in stuck:  # once for each term
            delivery.send_control(SERVER, Undeliverable(t), t)
        lost = k in self.passed_to and not stuck
        if lost:
            delivery.send_control(SERVER, HolderLost(party.t, k), party.t)
        taken_back = k == SERVER and self._roam_speculatively()
        if stuck or lost or taken_back:
            delivery.commit()

    def _roam_speculatively(self) -> bool:
        """Let uploaded tokens roam on in a speculative term. Returns whether there were any."""
        delivery = self.delivery
        taken = []
        if not delivery.ended:
            taken = [one for one in self.uploaded.values() if has_speculative_term(one.term)]
        for envelope in taken:
            token = envelope.message.payload
            assert isinstance(token, Token)
            del self.uploaded[token.index]
            floats = token.floats
            # the hop is on the ledger
            roaming = self.route(replace(envelope.message, floats=floats, hop_floats=0))
            again = self._send_again(envelope, roaming)
            if again.to != self.party.number:  # there it was charged as one that sends nothing
                delivery.ledger.unsent_hops -= 1
                delivery.ledger.unsent_floats -= floats
            term = max(envelope.term + 1, again.term)
            delivery.outbox[again.to, again.sequence] = again._replace(term=term)
        return bool(taken)
