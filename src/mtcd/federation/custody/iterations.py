"""Custody with a server: what is lost is done again, an iteration at a time.

The server has Z^t and every client has theta_k^t until the sync. So when a token does not come back, the server voids
the iteration and starts it anew with the next generation. All tokens of it set out again, not only the one that is
lost: what a token tells of the coming sync depends on who was at a client before it.

Every letter tells the fences that its sender knew of. Whatever belongs to iteration t + 1 was caused by the sync,
and that by the last generation of iteration t, so nobody settles iteration t without knowing which one counted.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mtcd.federation.custody.letters import Fences, Letter
from mtcd.federation.custody.postman import Postman, detour
from mtcd.methods.hosting import Share
from mtcd.methods.token_parties import TokenClient, TokenServer
from mtcd.protocol.gathering import Fresh
from mtcd.protocol.party import SERVER, Message
from mtcd.protocol.token import Token
from mtcd.seeding import uniform


class IterationPostman(Postman):
    """Of a client or the server of mtcd."""

    def generation_of(self, iteration: int) -> int:
        return self.fences.get(iteration, 0)

    def heed(self, fences: Fences) -> bool:
        """Copies of an iteration that was started anew are dropped."""
        raised = {t: g for t, g in fences.items() if g > self.fences.get(t, 0)}
        self.fences |= raised
        party = self.party
        if isinstance(party, TokenClient) and party.t in raised:
            party.undo_visits()
        if raised:
            self.mark_void()
        return bool(raised)

    @property
    def waits_for(self) -> frozenset[int]:
        """A client needs the server; the server needs somebody."""
        clients = frozenset(range(self.party.clients)) if isinstance(self.party, TokenServer) else {SERVER}
        return self.dead if self.dead >= clients else frozenset()

    def is_void(self, letter: Letter) -> bool:
        """Questions for uploads and their answers count in any generation: no token comes into them."""
        return not isinstance(letter.message.payload, Share | Fresh) and super().is_void(letter)

    def routed(self, message: Message) -> Message:
        """Round those who are gone, inside the cluster of the token."""
        token, party = message.payload, self.party
        if isinstance(token, Token) and message.to in self.dead and isinstance(party, TokenClient):
            roaming = party.plan.roaming
            walk = roaming.walks[token.index]
            if walk.length is None:  # a tour knows its next client from the hop alone: it cannot leave its way
                draw = uniform(roaming.seed, "detour", (token.index, token.t), token.hop)
                message.to = detour(walk.near(self.number), self.dead, self.number, draw)
        return message


class ServerPostman(IterationPostman):
    """The server, which may start an iteration anew. With mini-batches all clients must come back for their uploads."""

    party: TokenServer

    tokens_out = True
    """Whether tokens are under way, and not requests for uploads."""

    def post(self, messages: Iterable[Message], cause: Letter | None) -> list[Message]:
        messages = self._starts_among_the_living(list(messages))
        if messages:
            self.tokens_out = not any(isinstance(message.payload, Share) for message in messages)
        return super().post(messages, cause)

    def record(self) -> dict[str, Any]:
        return super().record() | {"tokens_out": self.tokens_out}

    def reload(self, kept: dict[str, Any]) -> None:
        super().reload(kept)
        self.tokens_out = kept["tokens_out"]

    def start_anew(self) -> bool:
        """Void the iteration's tokens and send them out again from Z^t; False if none are out."""
        if not self.tokens_out:
            return False
        t = self.party.t
        self.fences[t] = self.fences.get(t, 0) + 1
        self.party.back = {}
        self.mark_void()
        self.post(self.party.start_iteration(), None)
        self.commit()
        return True

    def _starts_among_the_living(self, messages: list[Message]) -> list[Message]:
        """Tokens set out from clients that are there. If all of a cluster are gone, its token stays at the server."""
        party, kept = self.party, []
        for message in messages:
            token = message.payload
            if isinstance(token, Token) and message.to in self.dead:
                roaming = party.plan.roaming
                living = frozenset(range(party.clients)) - self.dead
                start = roaming.starts[token.index].among(living)
                if start is None:
                    party.back[token.index] = token
                    continue
                message.to = start.pick(uniform(roaming.seed, "start", (token.index,), token.t))
            kept.append(message)
        return kept


def iteration_postman(number: int, *rest: Any) -> IterationPostman:
    """Of the server or of a client."""
    return ServerPostman(number, *rest) if number == SERVER else IterationPostman(number, *rest)
