"""Custody of a client that tokens visit between two syncs: see ``iterations``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mtcd.errors import NetworkError
from mtcd.federation.custody.detours import detour, way_round
from mtcd.federation.custody.iterations import IterationPostman, has_overtime, start_of
from mtcd.federation.custody.letters import Again, End, Fences, Letter, Missed, Stuck
from mtcd.methods.token_parties import TokenClient, Visits
from mtcd.network.walks import NOWHERE
from mtcd.protocol.party import SERVER, Message
from mtcd.protocol.token import Token
from mtcd.seeding import uniform


class ClientPostman(IterationPostman):
    """Of a client of mtcd."""

    party: TokenClient

    def __init__(self, *given: Any, **more: Any) -> None:
        self.up: dict[int, Letter] = {}
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
        return self.dead if SERVER in self.dead else frozenset()

    # Letters that arrive

    def process(self, letter: Letter) -> list[Message]:
        party, asked = self.party, letter.message.payload
        if isinstance(asked, Again):
            self._confirm()
            return []
        if isinstance(asked, Token) and not party.plan.roaming.walks[asked.index].covers(self.number):
            raise NetworkError(f"Token {asked.index} does not come here.")
        if letter.iteration > party.t:
            self.drop_what_does_not_count()
            party.settle(letter.iteration)
        if isinstance(asked, Token) and letter.generation > self.generation_of(party.t):
            self.before[letter.generation] = party.visits()
        told = super().process(letter)
        self.fences = {t: generation for t, generation in self.fences.items() if t >= party.t}
        return told

    def hear_end(self, end: End, teller: int) -> None:
        if self.ended is None:
            self.drop_what_does_not_count()
        super().hear_end(end, teller)

    def drop_what_does_not_count(self) -> None:
        """Of the iteration that is over: overtimes after the one that was synced with."""
        late = [overtime for overtime in self.before if overtime > self.fences.get(self.party.t, 0)]
        if late:
            self.party.undo_visits(self.before[min(late)])
        self.up, self.before, self.passed_to = {}, {}, set()

    def heed(self, fences: Fences) -> bool:
        """Copies of an iteration that was started anew are dropped. Only the server starts one anew."""
        party = self.party
        known = self.fences.get(party.t, 0)  # no mutants: an overtime of generation 0 counts like it
        raised = {t: g for t, g in fences.items() if t >= party.t and g > self.fences.get(t, 0)}
        if not raised:
            return False
        self.fences |= raised
        now = self.fences.get(party.t, 0)
        if start_of(now) > start_of(known):
            party.undo_visits()
            self.up, self.before, self.passed_to = {}, {}, set()
        self.before = {overtime: held for overtime, held in self.before.items() if overtime > now}
        self.mark_void()
        return True

    # Letters to send

    def generation_of(self, iteration: int) -> int:
        """The latest overtime in which tokens have been here: none leaves in an earlier one."""
        known = super().generation_of(iteration)
        return max(known, *self.before) if self.before and iteration == self.party.t else known

    def put(self, message: Message, iteration: int) -> Letter:
        letter = super().put(message, iteration)
        if isinstance(message.payload, Token):
            if message.to == SERVER:
                self.up[message.payload.index] = letter
            else:
                self.passed_to.add(message.to)
        return letter

    def routed(self, message: Message) -> Message:
        """Round those who are gone, inside the cluster of the token."""
        token, party = message.payload, self.party
        if not isinstance(token, Token):
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

    def _confirm(self) -> None:
        """The server asks for what it was sent in an earlier overtime, or by a process that is gone."""
        for letter in list(self.up.values()):
            if letter.generation < self.fences.get(letter.iteration, 0):  # no mutants: who is asked was told the fence
                told_already = replace(letter.message, floats=0, hop_floats=0)  # and is on the ledger
                self._renew(letter, told_already)

    # Who is there

    def lost(self, k: int) -> None:
        """Without the server, tokens that went up are taken back. It is told of those that somebody may have lost."""
        super().lost(k)
        stuck = {letter.iteration for letter in self.outbox.values() if letter.to == k and self._is_on_its_way(letter)}
        for t in stuck:  # once for each generation
            self.put(Message(self.number, SERVER, Stuck(t)), t)
        missed = k in self.passed_to and not stuck
        if missed:
            self.put(Message(self.number, SERVER, Missed(self.party.t, k)), self.party.t)
        taken = k == SERVER and self._take_back()
        if stuck or missed or taken:
            self.commit()

    def _is_on_its_way(self, letter: Letter) -> bool:
        return letter.to >= 0 and isinstance(letter.message.payload, Token) and not self.is_void(letter)

    def _take_back(self) -> bool:
        """Let tokens roam on that went up, in overtime; whether there were any."""
        taken = [letter for letter in self.up.values() if self.ended is None and has_overtime(letter.generation)]
        for letter in taken:
            del self.up[letter.message.payload.index]
            floats = self.party.plan.floats + letter.message.payload.extra
            roaming = self.routed(replace(letter.message, floats=floats, hop_floats=0))  # the hop is on the ledger
            again = self._renew(letter, roaming)
            if again.to != self.number:  # there it was charged as one that sends nothing
                self.ledger.unsent_hops -= 1
                self.ledger.unsent_floats -= floats
            overtime = max(letter.generation + 1, again.generation)
            self.outbox[again.to, again.sequence] = again._replace(generation=overtime)
        return bool(taken)

    def _renew(self, letter: Letter, message: Message) -> Letter:
        """Send this instead; it tells all that the letter told."""
        if (letter.to, letter.sequence) in self.outbox:
            self.outbox[letter.to, letter.sequence] = self.void(letter)
        self.cause = letter
        renewed = self.put(message, letter.iteration)
        self.cause = None
        return renewed
