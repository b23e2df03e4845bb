"""Restart of iterations at the server, which syncs tokens and may restart an iteration: see
``iterations.py``."""

from __future__ import annotations

from collections import Counter

from mtcd.core.seeding import uniform
from mtcd.federation.delivery.policy import RecoveryPolicy, end_now
from mtcd.federation.recovery.iterations import (
    SPECULATIVE_TERMS,
    base_term,
    has_speculative_term,
    is_over,
    known_term,
)
from mtcd.federation.recovery.uploads import MakeUploads, Uploads
from mtcd.methods.mtcd.client import Done, Share
from mtcd.methods.mtcd.server import TokenServer
from mtcd.protocol.codec.envelopes import Envelope, HolderLost, ResendTokens, Undeliverable
from mtcd.protocol.party import MONITOR, Message
from mtcd.protocol.token import Token


class IterationServer(RecoveryPolicy):
    """The policy of the server of MTCD. With mini-batches it also keeps uploads; ``uploads`` makes
    what keeps them, where this is not recovery's own."""

    state_fields = ("tokens_out", "uploaders")

    def __init__(self, party: TokenServer, uploads: MakeUploads | None = None) -> None:
        self.party = party
        if uploads is not None:
            self.uploads = uploads(self)
        elif not party.plan.tokens_return:
            self.uploads = Uploads(self, party, party.plan.batches)
        self.tokens_out = uploads is None
        """Whether tokens are under way, and not requests for uploads, or for keys."""
        self.uploaders: dict[int, int] = {}
        """By index, the client that uploaded each token that is back."""
        self.latest: Counter[int] = Counter()
        """By client, the latest iteration of its envelopes. Not journaled: a restart learns it
        again."""
        self.suspects: set[int] = set()
        """The clients that went down since the tokens set out, perhaps with one that was taken
        back."""

    @property
    def waits_for(self) -> frozenset[int]:
        """The server needs at least one client."""
        if self.uploads is not None and self.is_gathering:
            return self.uploads.waits_for
        down = self.delivery.down
        if len(down) < self.party.clients:
            return frozenset()
        return down

    def started(self) -> None:
        """Tokens may have been taken back while the server was down, and their visits since then
        shall count."""
        known = self.term_of(self.party.t)
        if self.uploaders and self.delivery.ended is None:
            if has_speculative_term(known):
                self._advance_to(known + 1)
            else:
                self.restart_iteration()
            self.delivery.commit()
        self._restart_if_all_tokens_are_here()  # no client was up; now that is unknown

    # Uploads of mini-batches, see ``uploads.py``

    @property
    def now(self) -> int:
        """The iteration whose uploads are requested."""
        return self.party.t

    @property
    def is_gathering(self) -> bool:
        """Whether uploads are awaited."""
        return not self.tokens_out

    @property
    def left(self) -> frozenset[int]:
        """The clients that have left as planned: none."""
        return frozenset()

    def request(self, client: int) -> Message:
        """The request for an upload."""
        return Message(self.delivery.number, client, Share(self.party.t))

    def batch_of(self, iteration: int) -> int:
        """The batch that an upload of this iteration is for."""
        return iteration

    # Terms

    def term_of(self, iteration: int) -> int:
        return known_term(self.delivery.terms, iteration)

    def is_stale(self, envelope: Envelope) -> bool:
        return is_over(envelope, self.party.t, self.term_of(envelope.iteration))

    def arriving(self, envelope: Envelope) -> None:
        """A client that sends something of iteration t has completed all earlier ones; their terms
        can be dropped."""
        delivery, latest = self.delivery, self.latest
        latest[envelope.sender] = max(latest[envelope.sender], envelope.iteration)
        if delivery.terms:
            floor = min(latest[k] for k in range(self.party.clients))
            delivery.terms = {t: term for t, term in delivery.terms.items() if t >= floor}

    # Envelopes that arrive

    def process(self, envelope: Envelope) -> list[Message]:
        payload, t = envelope.message.payload, self.party.t
        if self.uploads is not None and isinstance(payload, self.uploads.kinds):
            return self.uploads.receive(envelope)
        if isinstance(payload, Undeliverable | HolderLost):
            # or it will be
            is_lost = isinstance(payload, Undeliverable) or payload.client in self.delivery.down
            if envelope.iteration == t and is_lost:  # and of the current term
                self.restart_iteration()
            return []
        if isinstance(payload, Token):
            if not self._accepts(envelope, payload.index):
                return []
            self.uploaders[payload.index] = envelope.sender
        reports = self.delivery.run_party(envelope)
        if self.party.t > t:
            self.uploaders, self.suspects = {}, set()
        return reports

    def _accepts(self, envelope: Envelope, index: int) -> bool:
        """Whether an uploaded token is consistent with those that are back. Those that are not are
        requested again."""
        known = self.term_of(self.party.t)
        if envelope.term < known:
            if index not in self.uploaders:
                self._request_again({index: envelope.sender})
            return False
        self.uploaders.pop(index, None)  # it takes the place of an earlier one
        return envelope.term == known or self._advance_to(envelope.term)

    def _advance_to(self, term: int) -> bool:
        """What is back must be confirmed in this speculative term. False if it cannot be, so the
        iteration restarts."""
        unconfirmed, self.uploaders = self.uploaders, {}
        for index in unconfirmed:
            del self.party.back[index]
        self.delivery.terms = {**self.delivery.terms, self.party.t: term}
        return self._request_again(unconfirmed)

    def _request_again(self, uploaders: dict[int, int]) -> bool:
        """Request these tokens again. False if one may be lost, so the iteration restarts."""
        delivery, t, walks = self.delivery, self.party.t, self.party.plan.roaming.walks
        for index, k in uploaders.items():
            if k in delivery.down or any(map(walks[index].covers, self.suspects)):
                self.restart_iteration()
                return False
        now = t, self.term_of(t)
        requests = [
            one for one in delivery.outbox.values() if isinstance(one.message.payload, ResendTokens)
        ]
        requested = {one.to for one in requests if (one.iteration, one.term) == now}
        for k in sorted({*uploaders.values()} - requested):
            delivery.send_control(k, ResendTokens(t), t)
        return True

    # Messages to send

    def route(self, message: Message) -> Message | None:
        """Tokens set out from clients that are up. If all of a cluster are down, its token stays at
        the server."""
        token, party, down = message.payload, self.party, self.delivery.down
        if isinstance(token, Token | Share):
            self.tokens_out = isinstance(token, Token)
        if self.uploads is not None and not self.tokens_out:
            return self.uploads.route(message)
        if isinstance(token, Token) and message.to in down:
            roaming = party.plan.roaming
            start = roaming.starts[token.index].among(frozenset(range(party.clients)) - down)
            if start is None:
                party.back[token.index] = token if party.plan.tokens_return else Done(token.index)
                return None
            message.to = start.pick(uniform(roaming.seed, "start", (token.index,), token.t))
        return message

    # Parties that are down

    def peer_lost(self, k: int) -> None:
        """Restart the iteration if the client may hold a token of it."""
        self.suspects.add(k)
        if self.uploads is not None and self.is_gathering:
            self.uploads.complete_without_down()
            return
        walks, back = self.party.plan.roaming.walks, self.party.back
        if any(walk.covers(k) for index, walk in enumerate(walks) if index not in back):
            self.restart_iteration()

    def peer_found(self, k: int) -> None:
        """If no client was up that a token could visit, the tokens set out now."""
        self.suspects.discard(k)
        self._restart_if_all_tokens_are_here()

    def _restart_if_all_tokens_are_here(self) -> None:
        if len(self.party.back) == self.party.plan.tokens:
            self.restart_iteration()

    def restart_iteration(self) -> bool:
        """Cancel the tokens of the iteration and send them out again from Z^t. False if none are
        out."""
        if not self.tokens_out or self.delivery.ended is not None:
            return False
        self._cancel_iteration()
        self.delivery.send(
            [message for message in self.party.start_iteration() if message.to != MONITOR], None
        )
        self.delivery.commit()
        return True

    def _cancel_iteration(self) -> None:
        terms, t = self.delivery.terms, self.party.t
        restarted = base_term(known_term(terms, t)) + SPECULATIVE_TERMS
        self.delivery.terms = {**terms, t: restarted}
        self.party.back, self.uploaders, self.suspects = {}, {}, set()
        self.delivery.cancel_stale()

    def finish(self, status: str) -> None:
        """At once: visits since the last sync do not count."""
        if self.tokens_out:
            self._cancel_iteration()
        end = end_now(self.party, status)
        assert end is not None  # it is a server
        self.delivery.conclude(end)
        self.delivery.commit()
