"""Custody of the server that syncs tokens, and may start an iteration anew: see ``iterations``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mtcd.federation.custody.ending import end_now
from mtcd.federation.custody.iterations import OVERTIMES, IterationPostman, has_overtime, start_of
from mtcd.federation.custody.letters import Again, Fences, Letter, Missed, Stuck
from mtcd.federation.custody.postman import Delivery
from mtcd.methods.hosting import Done, Share
from mtcd.methods.token_parties import TokenServer
from mtcd.protocol.party import MONITOR, SERVER, Message
from mtcd.protocol.token import Token
from mtcd.seeding import uniform


class ServerPostman(IterationPostman):
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
        return self.dead if len(self.dead) == self.party.clients else frozenset()

    def post(self, messages: Iterable[Message], cause: Letter | None) -> list[Message]:
        messages = self._starts_among_the_living(list(messages))
        if messages:
            self.tokens_out = not any(isinstance(message.payload, Share) for message in messages)
        return super().post(messages, cause)

    def record(self) -> dict[str, Any]:
        return super().record() | {"tokens_out": self.tokens_out, "senders": self.senders}

    def reload(self, kept: dict[str, Any]) -> None:
        super().reload(kept)
        self.tokens_out, self.senders = kept["tokens_out"], kept["senders"]

    def wake(self) -> None:
        """Tokens may have been taken back, and what they did since then shall count."""
        known = self.generation_of(self.party.t)
        if self.senders and self.ended is None:
            self._go_to(known + 1) if has_overtime(known) else self.start_anew()
            self.commit()
        self._set_out_if_all_are_back()  # nobody was there; now that is not known

    def fences_to_tell(self) -> Fences:
        """Its own: others only tell on what they heard of it."""
        return self.fences.copy()

    def deliver(self, letter: Letter) -> Delivery:
        """Who sends something of iteration t has settled all before."""
        before = self.heard.get(letter.sender, 0)  # no mutants: no iteration is below 0
        self.heard[letter.sender] = max(letter.iteration, before)
        floor = min(self.heard.get(k, 0) for k in range(self.party.clients))  # no mutants: no fence is below 0
        self.fences = {t: generation for t, generation in self.fences.items() if t >= floor}
        return super().deliver(letter)

    def process(self, letter: Letter) -> list[Message]:
        asked, t = letter.message.payload, self.party.t
        if isinstance(asked, Stuck | Missed):
            missed = isinstance(asked, Stuck) or asked.client in self.dead  # if it is not, it will be
            if letter.iteration == t and missed:  # and of the generation that counts
                self.start_anew()
            return []
        if isinstance(asked, Token):
            if not self._fits(letter, asked.index):
                return []
            self.senders[asked.index] = letter.sender
        told = super().process(letter)
        if self.party.t > t:
            self.senders, self.doubtful = {}, set()
        return told

    def _fits(self, letter: Letter, index: int) -> bool:
        """Whether a token that came up counts together with those that are back; those that do not are asked for."""
        known = self.generation_of(self.party.t)
        if letter.generation < known:
            if index not in self.senders:
                self._ask_again({index: letter.sender})
            return False
        self.senders.pop(index, None)  # it takes the place of an earlier one
        return letter.generation == known or self._go_to(letter.generation)

    def _go_to(self, overtime: int) -> bool:
        """What is back must be confirmed in this overtime. False if that cannot be, and the iteration starts anew."""
        asked, self.senders = self.senders, {}
        for index in asked:
            del self.party.back[index]
        self.fences[self.party.t] = overtime
        return self._ask_again(asked)

    def _ask_again(self, senders: dict[int, int]) -> bool:
        """Have these tokens sent up again. False if one may be lost, and the iteration starts anew."""
        walks = self.party.plan.roaming.walks
        if any(k in self.dead or any(map(walks[index].covers, self.doubtful)) for index, k in senders.items()):
            self.start_anew()
            return False
        t = self.party.t
        asked = {letter.to for letter in self.outbox.values() if self._asks_again(letter)}
        for k in sorted({*senders.values()} - asked):
            self.put(Message(SERVER, k, Again(t)), t)
        return True

    def _asks_again(self, letter: Letter) -> bool:
        """Whether it asks for what is to be asked for now."""
        now = self.party.t, self.generation_of(self.party.t)
        return isinstance(letter.message.payload, Again) and (letter.iteration, letter.generation) == now

    def lost(self, k: int) -> None:
        """Tokens that it may have are sent out anew."""
        known = k in self.dead
        self.dead |= {k}
        self.doubtful.add(k)
        walks = self.party.plan.roaming.walks
        if not known and any(walk.covers(k) for index, walk in enumerate(walks) if index not in self.party.back):
            self.start_anew()

    def found(self, k: int) -> None:
        """Where all who could be visited were gone, tokens set out again."""
        self.dead -= {k}
        self.doubtful.discard(k)
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
        self.fences[t] = start_of(self.fences.get(t, 0)) + OVERTIMES
        self.party.back, self.senders, self.doubtful = {}, {}, set()
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
