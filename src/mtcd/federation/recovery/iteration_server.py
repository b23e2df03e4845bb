"""Custody of the server that syncs tokens, and may start an iteration anew: see ``iterations``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mtcd.federation.delivery.ending import end_now
from mtcd.federation.delivery.envelopes import Envelope, HolderLost, ResendTokens, Terms, Undeliverable
from mtcd.federation.delivery.reliable_party import Delivery
from mtcd.federation.recovery.iterations import SPECULATIVE_TERMS, IterationParty, base_term, has_speculative_term
from mtcd.methods.hosting import Done, Share
from mtcd.methods.token_parties import TokenServer
from mtcd.protocol.party import MONITOR, SERVER, Message
from mtcd.protocol.token import Token
from mtcd.seeding import uniform


class IterationServer(IterationParty):
    """Of the server of mtcd. With mini-batches see ``absent.py``."""

    party: TokenServer

    tokens_out = True
    """Whether tokens are under way, and not requests for uploads."""

    def __init__(self, *given: Any, **more: Any) -> None:
        self.heard: dict[int, int] = {}
        """By client, the latest iteration that it has told anything of. Forgotten in a restart, to be heard again."""
        self.senders: dict[int, int] = {}
        """By index, who sent up the tokens that are back."""
        self.doubtful: set[int] = set()
        """Who has gone since the tokens set out, perhaps with one that was taken back."""
        super().__init__(*given, **more)

    @property
    def waits_for(self) -> frozenset[int]:
        """The server needs somebody."""
        return self.down if len(self.down) == self.party.clients else frozenset()

    def post(self, messages: Iterable[Message], cause: Envelope | None) -> list[Message]:
        messages = self._starts_among_the_living(list(messages))
        if messages:
            self.tokens_out = not any(isinstance(message.payload, Share) for message in messages)
        return super().post(messages, cause)

    def record(self) -> dict[str, Any]:
        return super().record() | {"tokens_out": self.tokens_out, "senders": self.senders}

    def reload(self, kept: dict[str, Any]) -> None:
        super().reload(kept)
        self.tokens_out, self.senders = kept["tokens_out"], kept["senders"]

    def start(self) -> None:
        """Tokens may have been taken back, and what they did since then shall count."""
        known = self.term_of(self.party.t)
        if self.senders and self.ended is None:
            self._go_to(known + 1) if has_speculative_term(known) else self.restart_iteration()
            self.commit()
        self._set_out_if_all_are_back()  # nobody was there; now that is not known

    def terms_to_send(self) -> Terms:
        """Its own: others only tell on what they heard of it."""
        return self.terms.copy()

    def deliver(self, envelope: Envelope) -> Delivery:
        """Who sends something of iteration t has settled all before."""
        before = self.heard.get(envelope.sender, 0)  # no mutants: no iteration is below 0
        self.heard[envelope.sender] = max(envelope.iteration, before)
        floor = min(self.heard.get(k, 0) for k in range(self.party.clients))  # no mutants: no term is below 0
        self.terms = {t: term for t, term in self.terms.items() if t >= floor}
        return super().deliver(envelope)

    def process(self, envelope: Envelope) -> list[Message]:
        asked, t = envelope.message.payload, self.party.t
        if isinstance(asked, Undeliverable | HolderLost):
            missed = isinstance(asked, Undeliverable) or asked.client in self.down  # if it is not, it will be
            if envelope.iteration == t and missed:  # and of the term that counts
                self.restart_iteration()
            return []
        if isinstance(asked, Token):
            if not self._fits(envelope, asked.index):
                return []
            self.senders[asked.index] = envelope.sender
        told = super().process(envelope)
        if self.party.t > t:
            self.senders, self.doubtful = {}, set()
        return told

    def _fits(self, envelope: Envelope, index: int) -> bool:
        """Whether a token that came up counts together with those that are back; those that do not are asked for."""
        known = self.term_of(self.party.t)
        if envelope.term < known:
            if index not in self.senders:
                self._ask_again({index: envelope.sender})
            return False
        self.senders.pop(index, None)  # it takes the place of an earlier one
        return envelope.term == known or self._go_to(envelope.term)

    def _go_to(self, overtime: int) -> bool:
        """What is back must be confirmed in this overtime. False if that cannot be, and the iteration starts anew."""
        asked, self.senders = self.senders, {}
        for index in asked:
            del self.party.back[index]
        self.terms[self.party.t] = overtime
        return self._ask_again(asked)

    def _ask_again(self, senders: dict[int, int]) -> bool:
        """Have these tokens sent up again. False if one may be lost, and the iteration starts anew."""
        walks = self.party.plan.roaming.walks
        if any(k in self.down or any(map(walks[index].covers, self.doubtful)) for index, k in senders.items()):
            self.restart_iteration()
            return False
        t = self.party.t
        asked = {envelope.to for envelope in self.outbox.values() if self._asks_again(envelope)}
        for k in sorted({*senders.values()} - asked):
            self.put(Message(SERVER, k, ResendTokens(t)), t)
        return True

    def _asks_again(self, envelope: Envelope) -> bool:
        """Whether it asks for what is to be asked for now."""
        now = self.party.t, self.term_of(self.party.t)
        return isinstance(envelope.message.payload, ResendTokens) and (envelope.iteration, envelope.term) == now

    def peer_lost(self, k: int) -> None:
        """Tokens that it may have are sent out anew."""
        known = k in self.down
        self.down |= {k}
        self.doubtful.add(k)
        walks = self.party.plan.roaming.walks
        if not known and any(walk.covers(k) for index, walk in enumerate(walks) if index not in self.party.back):
            self.restart_iteration()

    def peer_found(self, k: int) -> None:
        """Where all who could be visited were gone, tokens set out again."""
        self.down -= {k}
        self.doubtful.discard(k)
        self._set_out_if_all_are_back()

    def _set_out_if_all_are_back(self) -> None:
        if len(self.party.back) == self.party.plan.tokens:
            self.restart_iteration()

    def restart_iteration(self) -> bool:
        """Void the iteration's tokens and send them out again from Z^t; False if none are out."""
        if not self.tokens_out or self.ended is not None:
            return False
        self._cancel_iteration()
        self.post([message for message in self.party.start_iteration() if message.to != MONITOR], None)
        self.commit()
        return True

    def finish(self, status: str) -> None:
        """At once: what the tokens have done since the last sync does not count."""
        if self.ended is not None:
            return
        if self.tokens_out:
            self._cancel_iteration()
        end = end_now(self.party, status)
        assert end is not None  # it is a server
        self.end(end)
        self.commit()

    def _cancel_iteration(self) -> None:
        t = self.party.t
        self.terms[t] = base_term(self.terms.get(t, 0)) + SPECULATIVE_TERMS
        self.party.back, self.senders, self.doubtful = {}, {}, set()
        self.cancel_stale()

    def _starts_among_the_living(self, messages: list[Message]) -> list[Message]:
        """Tokens set out from clients that are there. If all of a cluster are gone, its token stays at the server."""
        party, kept = self.party, []
        for message in messages:
            token = message.payload
            if isinstance(token, Token) and message.to in self.down:
                roaming = party.plan.roaming
                living = frozenset(range(party.clients)) - self.down
                start = roaming.starts[token.index].among(living)
                if start is None:
                    party.back[token.index] = token if party.plan.tokens_return else Done(token.index)
                    continue
                message.to = start.pick(uniform(roaming.seed, "start", (token.index,), token.t))
            kept.append(message)
        return kept
