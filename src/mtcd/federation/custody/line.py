"""The stays of a lone token with its clients, in order, and what each keeps of its own: see ``lone_token.py``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mtcd.federation.custody.detours import way_round
from mtcd.federation.custody.journal import Journal
from mtcd.federation.custody.letters import End, Fences, Letter
from mtcd.federation.custody.postman import Postman
from mtcd.methods.token_parties import TokenClient
from mtcd.network.topology import Network
from mtcd.protocol.party import Message
from mtcd.protocol.token import Token
from mtcd.seeding import uniform


class LinePostman(Postman):
    """Keeps what is needed to make the token anew, or to undo its last stay."""

    party: TokenClient
    near: frozenset[int]
    kept: tuple[str, ...] = ("passed", "before", "came", "hop", "dead")

    def __init__(
        self, number: int, party: TokenClient, journal: Journal, opening: Iterable[Message], network: Network
    ) -> None:
        self.network, self.near = network, frozenset(network.neighbours[number])
        self.passed: Letter | None = None
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

    def process(self, letter: Letter) -> list[Message]:
        """A visit with the token."""
        token: Token = letter.message.payload
        if letter.sender != self.number:
            # its parameters are never written to, only replaced: what is to be kept apart is the dict of copies
            self.before = token.hop, self.party.state() | {"copies": dict(self.party.copies)}
            self.came, self.passed = (letter.sender, letter.gone), None
        self.hop = token.hop + 1
        return super().process(letter)

    def put(self, message: Message, iteration: int) -> Letter:
        letter = super().put(message, iteration)
        if isinstance(message.payload, Token) and message.to != self.number:
            if self.gone:
                there = (self.near - self.dead) | {self.number, message.to}
                letter = self.outbox[letter.to, letter.sequence] = letter._replace(gone=self.gone - there)
            self.passed = letter
        return letter

    @property
    def gone(self) -> frozenset[int]:
        """Whom the token shall not be passed on to from here."""
        return self.dead if self.came is None else self.dead | self.came[1]

    def routed(self, message: Message) -> Message:
        token, roaming = message.payload, self.party.plan.roaming
        walk = roaming.walks[token.index]
        if self.gone or walk.length is not None:
            draw = uniform(roaming.seed, "detour", (token.index, self.generation_of(0)), token.hop)
            previous = self.number if self.came is None else self.came[0]
            message.to = way_round(walk, self.network, message.to, self.number, previous, self.gone, draw)
        return message

    def generation_of(self, iteration: int) -> int:
        return max(self.fences, default=0)

    def is_void(self, letter: Letter) -> bool:
        return isinstance(letter.message.payload, Token | End) and super().is_void(letter)

    def cut(self, fences: Fences) -> int | None:
        """Undo what no longer counts: all from the hop that is returned on. None if there is nothing new."""
        known = self.fences
        if fences.keys() <= known.keys():
            return None
        self.fences = without_cut(known | fences)
        restart = min((hop for generation, hop in self.fences.items() if generation not in known), default=None)
        if restart is not None and self.before is not None and self.before[0] >= restart:
            self.party.restore(self.before[1])
            self.hop, self.before, self.came, self.passed = restart, None, None, None
        return restart


def without_cut(fences: Fences) -> Fences:
    """Without those of lines that were cut: a later generation goes back further."""
    kept: Fences = {}
    for generation in sorted(fences, reverse=True):
        if all(fences[generation] < hop for hop in kept.values()):
            kept[generation] = fences[generation]
    return kept
