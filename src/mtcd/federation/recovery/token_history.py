"""The last stay of a lone token at a client, and what is needed to undo it or to regenerate the
token."""

from __future__ import annotations

from typing import Any

from mtcd.methods.mtcd.server import TokenClient
from mtcd.protocol.codec.envelopes import Envelope, Terms
from mtcd.protocol.token import Token


class TokenHistory:
    """The last stay of the token at one client: see ``lone_token.py``."""

    state_fields = ("last_sent", "checkpoint", "arrival", "hop", "moved_on")

    def __init__(self, party: TokenClient) -> None:
        self.party = party
        self.last_sent: Envelope | None = None
        """The token as it was last passed on to another client."""
        self.checkpoint: tuple[int, dict[str, Any]] | None = None
        """The hop at which the token last arrived from another client, and the party's state before
        that stay."""
        self.arrival: tuple[int, frozenset[int]] | None = None
        """The client that it then came from, and those that it must not be passed to; None where it
        was created."""
        self.hop = 0
        """Hops of the token after the last visit here."""
        self.moved_on = False
        """Whether the token that was passed on is known to have been passed on once more."""

    def visited(self, envelope: Envelope) -> None:
        """The token has arrived, from another client or after a visit here."""
        token = envelope.message.payload
        assert isinstance(token, Token)
        if envelope.sender != self.party.number:
            # its parameters are never written to, only replaced: what is to be kept apart is the
            # dict of copies
            self.checkpoint = token.hop, self.party.state() | {"copies": dict(self.party.copies)}
            self.arrival, self.last_sent, self.moved_on = (
                (envelope.sender, envelope.avoid),
                None,
                False,
            )
        self.hop = token.hop + 1

    def truncate(self, hop: int) -> None:
        """No stay that began after ``hop`` visits or more counts: undo the last one, if it did."""
        self.moved_on = False
        if self.checkpoint is not None and self.checkpoint[0] >= hop:
            self.party.restore(self.checkpoint[1])
            self.hop, self.checkpoint, self.arrival, self.last_sent = hop, None, None, None


def live_terms(terms: Terms) -> Terms:
    """Without the terms of histories that were truncated: a later term restarts at an earlier
    hop."""
    kept: Terms = {}
    for term in sorted(terms, reverse=True):
        if all(terms[term] < hop for hop in kept.values()):
            kept[term] = terms[term]
    return kept
