"""Custody with a server: what is lost is done again, an iteration at a time. Clients: ``visits``. Server: ``syncs``.

The server has Z^t and every client has theta_k^t until the sync. So when a token does not come back, the server voids
the iteration and starts it anew with the next term. All tokens of it set out again, not only the one that is
lost: what a token tells of the coming sync depends on who was at a client before it.

Every envelope tells the terms that its sender knew of. Whatever belongs to iteration t + 1 was caused by the sync,
and that by the last term of iteration t, so nobody settles iteration t without knowing which one counted.

Which terms are kept. What is of iteration t reaches a party that is further on only if it does not count: all tokens
that do had gone up by then. So a client that is at iteration t needs no terms of earlier ones for itself. For those
who have been away, the server keeps the term of t until all clients have told it something of a later iteration; its
envelopes tell it, and who passes a token of a later iteration on tells on what it was told with that token.

The server learns from its own links that a client is gone, and from a client that has a token for it. Both are
needed: a token made anew may get to a client that has not yet noticed, and so to the one who is gone once more. It
also gets to one whom only the server misses, as their link is cut: if that one dies, only its neighbours notice.

Speculative roaming. With the server gone, tokens roam on. Those that have not gone up do so as if nothing had
happened. One that has gone up may be with the server, may even have been synced with, or may never have arrived: its
last client takes it back and lets it roam on speculatively, the next number after that under which it went up. Whom
it visits goes over to that overtime, and so does every token that comes there afterwards. So

- what came about up to some overtime, at clients and in tokens, never depends on what came about in a later one;
- a token that went up in an overtime, or was confirmed in it, has no more visits in it.

Hence tokens that went up or were confirmed in one overtime fit together, and the server syncs with no others. If one
comes up in a later overtime than the others, or if the server was started again and does not know what happened
meanwhile, it asks for the others again: who still has such a token, as it went up, sends it up once more, which
confirms it; otherwise it roams, and comes by itself. The term tells the overtime that was synced with. Clients keep
what they held before each overtime, and go back to that if it did not count.
"""

from __future__ import annotations

from collections.abc import Iterable

from mtcd.federation.delivery.envelopes import Envelope, HolderLost, ResendTokens, Terms, Undeliverable
from mtcd.federation.delivery.journal import Journal
from mtcd.federation.delivery.reliable_party import ReliableParty
from mtcd.methods.hosting import Done, Share
from mtcd.methods.token_parties import TokenClient, TokenServer
from mtcd.network.topology import Network
from mtcd.protocol.gathering import Fresh
from mtcd.protocol.party import Message
from mtcd.protocol.token import Token

SPECULATIVE_TERMS = 2**10  # no mutants: any limit will do that is seldom reached
"""Generations that the server starts are multiples of this; the numbers after each are its speculative terms."""


def base_term(term: int) -> int:
    """The term of which this one is an overtime; itself, if it is none."""
    return term - term % SPECULATIVE_TERMS


def has_speculative_term(term: int) -> bool:
    """Whether there is another overtime after this one."""
    return base_term(term + 1) == base_term(term)


class IterationParty(ReliableParty):
    """Of a client or the server of mtcd. Tours need the network to find a way round those who are gone."""

    party: TokenClient | TokenServer

    def __init__(
        self,
        number: int,
        party: TokenClient | TokenServer,
        journal: Journal,
        opening: Iterable[Message] = (),
        clients: int | None = None,
        network: Network | None = None,
    ) -> None:
        self.network = network
        self.cause: Envelope | None = None
        """The envelope that is being processed."""
        super().__init__(number, party, journal, opening, clients)

    def process(self, envelope: Envelope) -> list[Message]:
        self.cause = envelope
        told = super().process(envelope)
        self.cause = None
        return told

    def term_of(self, iteration: int) -> int:
        return self.terms.get(iteration, 0)

    def terms_to_send(self) -> Terms:
        return self.terms.copy() if self.cause is None else self.cause.terms | self.terms

    def is_stale(self, envelope: Envelope) -> bool:
        """Of an iteration that is over, or a term that no longer counts or was never started.

        Uploads always count: no token comes into them.
        """
        payload = envelope.message.payload
        if isinstance(payload, Share | Fresh):
            return False
        is_old = (
            isinstance(payload, Token | Done | Undeliverable | HolderLost | ResendTokens)
            and envelope.iteration < self.party.t
        )
        return is_old or base_term(envelope.term) != base_term(self.term_of(envelope.iteration))
