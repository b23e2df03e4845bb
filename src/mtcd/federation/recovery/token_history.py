"""The stays of a lone token with its clients, in order, and what each keeps of its own: see ``lone_token.py``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mtcd.federation.delivery.envelopes import End, Envelope, Terms
from mtcd.federation.delivery.journal import Journal
from mtcd.federation.delivery.reliable_party import ReliableParty
from mtcd.federation.recovery.detours import way_round
from mtcd.methods.token_parties import TokenClient
from mtcd.network.topology import Network
from mtcd.protocol.party import Message
from mtcd.protocol.token import Token
from mtcd.seeding import uniform


class TokenHistory(ReliableParty):
    """Keeps what is needed to make the token anew, or to undo its last stay."""

    party: TokenClient
    near: frozenset[int]
    kept: tuple[str, ...] = ("passed", "before", "came", "hop", "down")

    def __init__(
        self, number: int, party: TokenClient, journal: Journal, opening: Iterable[Message], network: Network
    ) -> None:
        self.network, self.near = network, frozenset(network.neighbours[number])
        self.passed: Envelope | None = None
        """The token as it was last passed on to somebody else."""
        self.before: tuple[int, dict[str, Any]] | None = None
        """The hop at which the token last came from somebody else, and the party's state before that stay."""
        self.came: tuple[int, frozenset[int]] | None = None
        """From whom it came then, and whom it is not to be passed on to; None where it was born."""
        self.hop = 0
        """Hops of the token after the last visit here."""
        super().__init__(number, party, journal, opening, network.size)

    def record(self) -> dict[str, Any]:
        return super().record() | {name: getattr(self, name) for name in self.kept}

    def reload(self, kept: dict[str, Any]) -> None:
        super().reload(kept)
        for name in self.kept:
            setattr(self, name, kept[name])

    def process(self, envelope: Envelope) -> list[Message]:
        """A visit with the token."""
        token = envelope.message.payload
        assert isinstance(token, Token)
        if envelope.sender != self.number:
            # its parameters are never written to, only replaced: what is to be kept apart is the dict of copies
            self.before = token.hop, self.party.state() | {"copies": dict(self.party.copies)}
            self.came, self.passed = (envelope.sender, envelope.gone), None
        self.hop = token.hop + 1
        return super().process(envelope)

    def put(self, message: Message, iteration: int) -> Envelope:
        envelope = super().put(message, iteration)
        if isinstance(message.payload, Token) and message.to != self.number:
            if self.gone:
                there = (self.near - self.down) | {self.number, message.to}
                envelope = self.outbox[envelope.to, envelope.sequence] = envelope._replace(gone=self.gone - there)
            self.passed = envelope
        return envelope

    @property
    def gone(self) -> frozenset[int]:
        """Whom the token shall not be passed on to from here."""
        return self.down if self.came is None else self.down | self.came[1]

    def routed(self, message: Message) -> Message:
        token, roaming = message.payload, self.party.plan.roaming
        assert isinstance(token, Token)
        walk = roaming.walks[token.index]
        if self.gone or walk.length is not None:
            draw = uniform(roaming.seed, "detour", (token.index, self.term_of(0)), token.hop)
            previous = self.number if self.came is None else self.came[0]
            message.to = way_round(walk, self.network, message.to, self.number, previous, self.gone, draw)
        return message

    def term_of(self, iteration: int) -> int:
        return max(self.terms, default=0)

    def is_stale(self, envelope: Envelope) -> bool:
        return isinstance(envelope.message.payload, Token | End) and super().is_stale(envelope)

    def cut(self, terms: Terms) -> int | None:
        """Undo what no longer counts: all from the hop that is returned on. None if there is nothing new."""
        known = self.terms
        if terms.keys() <= known.keys():
            return None
        self.terms = live_terms(known | terms)
        restart = min((hop for term, hop in self.terms.items() if term not in known), default=None)
        if restart is not None and self.before is not None and self.before[0] >= restart:
            self.party.restore(self.before[1])
            self.hop, self.before, self.came, self.passed = restart, None, None, None
        return restart


def live_terms(terms: Terms) -> Terms:
    """Without those of lines that were cut: a later term goes back further."""
    kept: Terms = {}
    for term in sorted(terms, reverse=True):
        if all(terms[term] < hop for hop in kept.values()):
            kept[term] = terms[term]
    return kept
