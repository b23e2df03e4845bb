"""Custody with a server: what is lost is done again, an iteration at a time.

The server has Z^t and every client has theta_k^t until the sync. So when a token does not come back, the server voids
the iteration and starts it anew with the next generation. All tokens of it set out again, not only the one that is
lost: what a token tells of the coming sync depends on who was at a client before it.

Every letter tells the fences that its sender knew of. Whatever belongs to iteration t + 1 was caused by the sync,
and that by the last generation of iteration t, so nobody settles iteration t without knowing which one counted.

Which fences are kept. What is of iteration t reaches a party that is further on only if it does not count: all tokens
that do had gone up by then. So a client that is at iteration t needs no fences of earlier ones for itself. For those
who have been away, the server keeps the fence of t until all clients have told it something of a later iteration; its
letters tell it, and who passes a token of a later iteration on tells on what it was told with that token.

With the server gone, tokens whose hops are over roam on, and go up when it is back. What is on its way to it waits.

The server learns from its own links that a client is gone, and from a client that has a token for it. Both are
needed: a token made anew may get to a client that has not yet noticed, and so to the one who is gone once more.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mtcd.federation.custody.detours import detour, way_round
from mtcd.federation.custody.ending import end_now
from mtcd.federation.custody.journal import Journal
from mtcd.federation.custody.letters import Fences, Letter, Stuck
from mtcd.federation.custody.postman import Delivery, Postman
from mtcd.methods.hosting import Done, Share
from mtcd.methods.token_parties import TokenClient, TokenServer
from mtcd.network.topology import Network
from mtcd.network.walks import NOWHERE
from mtcd.protocol.gathering import Fresh
from mtcd.protocol.party import MONITOR, SERVER, Message
from mtcd.protocol.token import Token
from mtcd.seeding import uniform


class IterationPostman(Postman):
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
        self.cause: Letter | None = None
        """The letter that is being processed."""
        super().__init__(number, party, journal, opening, clients)

    def process(self, letter: Letter) -> list[Message]:
        self.cause = letter
        told = super().process(letter)
        self.cause = None
        if isinstance(self.party, TokenClient):
            self.fences = {t: generation for t, generation in self.fences.items() if t >= self.party.t}
        return told

    def generation_of(self, iteration: int) -> int:
        return self.fences.get(iteration, 0)

    def heed(self, fences: Fences) -> bool:
        """Copies of an iteration that was started anew are dropped. Only the server starts one anew."""
        party = self.party
        if not isinstance(party, TokenClient):
            return False
        raised = {t: g for t, g in fences.items() if t >= party.t and g > self.fences.get(t, 0)}
        self.fences |= raised
        if party.t in raised:
            party.undo_visits()
        if raised:
            self.mark_void()
        return bool(raised)

    def fences_to_tell(self) -> Fences:
        return self.fences.copy() if self.cause is None else self.cause.fences | self.fences

    def is_void(self, letter: Letter) -> bool:
        """Also if it is of an iteration that is over. Uploads count in any generation: no token comes into them."""
        payload = letter.message.payload
        if isinstance(payload, Share | Fresh):
            return False
        is_old = isinstance(payload, Token | Done | Stuck) and letter.iteration < self.party.t
        return is_old or super().is_void(letter)

    @property
    def waits_for(self) -> frozenset[int]:
        """A client needs the server; the server needs somebody."""
        clients = frozenset(range(self.party.clients)) if isinstance(self.party, TokenServer) else {SERVER}
        return self.dead if self.dead >= clients else frozenset()

    def lost(self, k: int) -> None:
        """Tell the server of a token that cannot be passed on; once for each generation of it."""
        super().lost(k)
        stuck = {letter.iteration for letter in self.outbox.values() if letter.to == k and self._is_on_its_way(letter)}
        for t in stuck:
            self.put(Message(self.number, SERVER, Stuck(t)), t)
        if stuck:
            self.commit()

    def _is_on_its_way(self, letter: Letter) -> bool:
        return letter.to >= 0 and isinstance(letter.message.payload, Token) and not self.is_void(letter)

    def routed(self, message: Message) -> Message:
        """Round those who are gone, inside the cluster of the token."""
        token, party = message.payload, self.party
        if not isinstance(token, Token) or not isinstance(party, TokenClient):
            return message
        if message.to == SERVER:
            if SERVER not in self.dead:
                return message
            message.to = party.next_client(token)
        roaming, gone = party.plan.roaming, self.dead - {SERVER}
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


class ServerPostman(IterationPostman):
    """The server, which may start an iteration anew. With mini-batches see ``absent.py``."""

    party: TokenServer

    tokens_out = True
    """Whether tokens are under way, and not requests for uploads."""

    def __init__(self, *given: Any, **more: Any) -> None:
        self.heard: dict[int, int] = {}
        """By client, the latest iteration that it has told anything of. Forgotten in a restart, to be heard again."""
        super().__init__(*given, **more)

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
        self._set_out_if_all_are_back()  # nobody was there; now that is not known

    def deliver(self, letter: Letter) -> Delivery:
        """Who sends something of iteration t has settled all before."""
        self.heard[letter.sender] = max(letter.iteration, self.heard.get(letter.sender, 0))
        floor = min(self.heard.get(k, 0) for k in range(self.party.clients))
        self.fences = {t: generation for t, generation in self.fences.items() if t >= floor}
        return super().deliver(letter)

    def process(self, letter: Letter) -> list[Message]:
        if not isinstance(letter.message.payload, Stuck):
            return super().process(letter)
        if letter.iteration == self.party.t:  # and of the generation that counts
            self.start_anew()
        return []

    def lost(self, k: int) -> None:
        """Tokens that it may have are sent out anew."""
        known = k in self.dead
        self.dead |= {k}
        walks = self.party.plan.roaming.walks
        if not known and any(walk.covers(k) for index, walk in enumerate(walks) if index not in self.party.back):
            self.start_anew()

    def found(self, k: int) -> None:
        """Where all who could be visited were gone, tokens set out again."""
        self.dead -= {k}
        self._set_out_if_all_are_back()

    def _set_out_if_all_are_back(self) -> None:
        if len(self.party.back) == self.party.plan.tokens:
            self.start_anew()

    def start_anew(self) -> bool:
        """Void the iteration's tokens and send them out again from Z^t; False if none are out."""
        if not self.tokens_out or self.ended is not None:
            return False
        self._void_iteration()
        self.post([message for message in self.party.start_iteration() if message.to != MONITOR], None)
        self.commit()
        return True

    def finish(self, status: str) -> None:
        """At once: what the tokens have done since the last sync does not count."""
        if self.ended is not None:
            return
        if self.tokens_out:
            self._void_iteration()
        end = end_now(self.party, status)
        assert end is not None  # it is a server
        self.end(end)
        self.commit()

    def _void_iteration(self) -> None:
        t = self.party.t
        self.fences[t] = self.fences.get(t, 0) + 1
        self.party.back = {}
        self.mark_void()

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
                    party.back[token.index] = token if party.plan.tokens_return else Done(token.index)
                    continue
                message.to = start.pick(uniform(roaming.seed, "start", (token.index,), token.t))
            kept.append(message)
        return kept


def iteration_postman(number: int, *rest: Any, **more: Any) -> IterationPostman:
    """Of the server or of a client."""
    role = ServerPostman if number == SERVER else IterationPostman
    return role(number, *rest, **more)
