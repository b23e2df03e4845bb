"""Custody without a server: the one who sent the token last may make it anew, when all others say that they lack it.

Who passes the token on keeps it, as it was then, until the token comes by again. If its receiver is gone, the sender
asks all others; while they are asked, they take in no token. If one of them has had it later, it goes on. If none
has, the token is made anew from the copy, in the next generation, and goes round the one who is gone. Who comes
back with a visit that no longer counts undoes it: its journal has the parameters from before.

Two may look for it at the same time, each believing the other gone. Somebody else is asked by both, and answers the
one with the earlier hop first: the other then hears what came of it, before it decides.

The question must reach everybody but the one who is gone. If the network falls apart without that one, nobody can
tell whether the other side has the token, and it is waited for.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import networkx as nx

from mtcd.federation.custody.journal import Journal
from mtcd.federation.custody.letters import Fences, Freeze, Frozen, Letter, Thaw
from mtcd.federation.custody.postman import Postman, detour
from mtcd.federation.custody.records import pack, unpack
from mtcd.methods.token_parties import TokenClient
from mtcd.network.topology import Network
from mtcd.protocol.party import Message
from mtcd.protocol.token import Token
from mtcd.seeding import uniform


class LonePostman(Postman):
    """Of a client of stcd."""

    party: TokenClient

    def __init__(
        self, number: int, party: TokenClient, journal: Journal, opening: Iterable[Message], network: Network
    ) -> None:
        self.network = network
        self.passed: Letter | None = None
        """The token as it was last passed on to somebody else."""
        self.before: tuple[int, dict[str, Any]] | None = None
        """The hop at which the token last came from somebody else, and the party's state before that visit."""
        self.hop = 0
        """Hops of the token after the last visit here."""
        self.frozen: list[tuple[int, int]] = []
        """Who asks where the token is, and with which hop."""
        self.asking: dict[str, Any] | None = None
        super().__init__(number, party, journal, opening, network.size)

    KEPT = ("passed", "before", "hop", "frozen", "asking")

    def record(self) -> dict[str, Any]:
        return super().record() | {name: getattr(self, name) for name in self.KEPT}

    def reload(self, kept: dict[str, Any]) -> None:
        super().reload(kept)
        for name in self.KEPT:
            setattr(self, name, kept[name])

    # The token

    def must_wait(self, letter: Letter) -> bool:
        """No token while others look for it. Of two who look, the one with the earlier hop is answered first."""
        match letter.message.payload:
            case Freeze(hop):
                return any((asked, who) < (hop, letter.sender) for who, asked in self.frozen)
            case Token():
                return bool(self.frozen)
        return False

    def process(self, letter: Letter) -> list[Message]:
        match letter.message.payload:
            case Freeze(hop):
                latest = max([self.hop, *(asked for _, asked in self.frozen)])  # who asks has had it too
                self.frozen.append((letter.sender, hop))
                self._tell(letter.sender, Frozen(hop, latest))
            case Frozen(asked, hop):
                self._hear(letter.sender, asked, hop)
            case Thaw(hop):
                self.frozen.remove((letter.sender, hop))
            case token:
                if letter.sender != self.number:
                    self.before, self.passed = (token.hop, unpack(pack(self.party.state()))), None
                self.hop = token.hop + 1
                return super().process(letter)
        return []

    def put(self, message: Message, iteration: int) -> Letter:
        letter = super().put(message, iteration)
        if isinstance(message.payload, Token) and message.to != self.number:
            self.passed = letter
        return letter

    def routed(self, message: Message) -> Message:
        if message.to in self.dead and not self._tours:
            message.to = self._detour(message.payload)
        return message

    @property
    def _tours(self) -> bool:
        """Whether the walk knows its next client from the hop alone, so that it cannot leave its way."""
        return self.party.plan.roaming.walks[0].length is not None

    def _detour(self, token: Token) -> int:
        roaming = self.party.plan.roaming
        draw = uniform(roaming.seed, "detour", (token.index, self.generation_of(0)), token.hop)
        return detour(roaming.walks[token.index].near(self.number), self.dead, self.number, draw)

    # Generations

    def generation_of(self, iteration: int) -> int:
        return max(self.fences, default=0)

    def is_void(self, letter: Letter) -> bool:
        return isinstance(letter.message.payload, Token) and super().is_void(letter)

    def heed(self, fences: Fences) -> bool:
        """Undo a visit that no longer counts."""
        new = {generation: hop for generation, hop in fences.items() if generation not in self.fences}
        if not new:
            return False
        self.fences |= new
        restart = min(new.values())
        if self.before is not None and self.before[0] >= restart:
            self.party.restore(self.before[1])
            self.hop, self.before, self.passed = restart, None, None
        self.mark_void()
        return True

    # Where is the token?

    def seek(self, gone: int) -> bool:
        """Ask all others, if it was passed on to the one who is ``gone``; whether there is anything to ask."""
        if self.frozen or self.passed is None or self.passed.to != gone or not self.can_seek(gone):
            return False
        hop = self.passed.message.payload.hop
        others = [k for k in range(self.network.size) if k not in (gone, self.number)]
        self.asking = {"hop": hop, "gone": gone, "others": others, "later": self.hop > hop}
        self.frozen.append((self.number, hop))
        for k in others:
            self._tell(k, Freeze(hop))
        self.commit()
        return True

    def can_seek(self, gone: int) -> bool:
        """Whether there are others, and all can be reached without the one who is gone."""
        rest = self.network.graph.subgraph([k for k in range(self.network.size) if k != gone])
        return not self._tours and len(rest) > 1 and bool(nx.is_connected(rest))

    def _hear(self, client: int, asked: int, hop: int) -> None:
        asking = self.asking
        if asking is None or asked != asking["hop"] or client not in asking["others"]:
            return
        asking["others"].remove(client)
        asking["later"] = asking["later"] or hop > asked
        self._decide()

    def _decide(self) -> None:
        """When all have answered: the token goes on where it is, or is made anew."""
        asking = self.asking
        if asking is None or asking["others"]:
            return
        hop, gone, self.asking = asking["hop"], asking["gone"], None
        self.frozen.remove((self.number, hop))
        lost = self.passed
        self.passed = None
        if lost is not None and not asking["later"]:
            self.dead |= {gone}
            self.fences[self.generation_of(0) + 1] = hop
            self.mark_void()
            again: Message = unpack(pack(lost.message))
            again.to = self._detour(again.payload)
            self.put(again, 0)
        for k in range(self.network.size):
            if k not in (gone, self.number):
                self._tell(k, Thaw(hop))

    def _tell(self, to: int, payload: Any) -> None:
        self.put(Message(self.number, to, payload), 0)
