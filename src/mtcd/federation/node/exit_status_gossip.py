"""The last words at one party: it tells its own to its neighbours and the server, and keeps theirs
for the operator.

The server is told no objective, which it may not know. Without a server, parties pass words on to
neighbours of theirs that are no neighbours of the party whose word it is, so that the last one to
leave knows how all the others ended.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from time import sleep, time
from typing import Any

from mtcd.core.errors import WireError
from mtcd.federation.names import SERVER
from mtcd.federation.node.context import Station
from mtcd.federation.node.exit_status import FILE, RUNNING, LastWord, LastWords, Signed, Signer
from mtcd.federation.node.folder import RunFolder
from mtcd.federation.node.rpc import IncomingRequest

LAST_WORD = "last_word"
WAIT_SECONDS = 1.0  # for acks, before this party leaves
STEP_SECONDS = 0.05
SENDING_SECONDS = 0.2  # when the loop has failed, and no ack is processed


class Farewell:
    """The last words at one party. ``run`` is the id of the run, empty before it is agreed."""

    def __init__(self, station: Station, folder: RunFolder) -> None:
        self.kit, self.mail, self.loop, self.log = (
            station.kit,
            station.mail,
            station.loop,
            station.log,
        )
        self.me, self.run = station.kit.config.name, ""
        self.known = LastWords(station.kit, folder.path / FILE)
        self._signer = Signer(station.kit)
        self._for_server: Signed | None = None
        self._told: dict[str, set[tuple[str, int]]] = {}
        """By peer: the words that it has, or that are on their way to it."""
        self._pending = 0
        config = station.kit.config
        self._near = {frozenset(link) for link in config.links}
        self._passes_on = SERVER not in config.peers and not config.is_server
        self.mail.on(LAST_WORD, self._receive)

    def begin(self, run: str) -> None:
        """A run is agreed, or resumed: the words of others do not count, and the own one is
        superseded."""
        self.run = run
        self.known.keep_runs([run])
        if self.me in self.known.words:
            self.say(RUNNING)

    def say(self, outcome: str, **facts: Any) -> None:
        """A new word of this party."""
        before = self.known.words.get(self.me)
        moment = max(int(time() * 1000), 0 if before is None else before.time + 1)
        word = LastWord.model_validate(
            {"party": self.me, "run": self.run, "outcome": outcome, "time": moment, **facts}
        )
        self.known.add(word, self._signer.sign(word))
        self._for_server = self._signer.sign(word.model_copy(update={"objective": None}))
        self.tell()

    def tell(self) -> None:
        """Send all peers that are up the words that they do not have."""
        for peer in sorted(self.mail.link.up):
            new = {
                name: word for name, word in self.known.words.items() if self._is_for(name, peer)
            }
            told = self._told.setdefault(peer, set())
            fresh = {
                name: (name, word.time)
                for name, word in new.items()
                if (name, word.time) not in told
            }
            if fresh:
                told |= set(fresh.values())
                body = self._bodies(peer, list(fresh))
                self._pending += 1
                self.mail.ask(
                    peer, LAST_WORD, body, self._answered(peer, set(fresh.values())), True
                )

    def _is_for(self, name: str, peer: str) -> bool:
        """Whether this party tells a peer the word of a party."""
        if name == self.me:
            return True
        return self._passes_on and name != peer and frozenset((name, peer)) not in self._near

    def _bodies(self, peer: str, names: list[str]) -> bytes:
        if peer == SERVER and self._for_server is not None:
            return json.dumps([self._for_server]).encode()
        return json.dumps(self.known.signed(names)).encode()

    def _answered(
        self, peer: str, sent: set[tuple[str, int]]
    ) -> Callable[[bytes | None, str], None]:
        def answered(answer: bytes | None, why: str) -> None:
            self._pending -= 1
            if answer is None and not why:  # lost; one that is refused is not sent again
                self._told[peer] -= sent

        return answered

    def _receive(self, request: IncomingRequest) -> None:
        """Keep the words of a peer, its own and others that it passes on."""
        try:
            brought = json.loads(request.body)
        except (ValueError, RecursionError):
            brought = None
        members = len(self.kit.config.parties) + 1
        if not isinstance(brought, list) or not 1 <= len(brought) <= members or not request.direct:
            raise WireError("last words", "are not readable")
        words = [self.known.read(signed) for signed in brought]
        if len({word.party for word in words}) < len(words):
            raise WireError("last words", "are two of one party")
        if any(word.run != self.run for word in words):
            raise WireError("run", "is another one")
        told = self._told.setdefault(request.sender, set())
        for word, signed in zip(words, brought, strict=True):
            if word.party != self.me:
                self.known.add(word, signed)
                told.add((word.party, word.time))
        request.answer()
        if self._passes_on:
            self.tell()

    # Leaving

    def leave(self, then: Callable[[], None]) -> None:
        """Call ``then`` when the words are delivered, or after a while."""
        self.tell()
        end = self.loop.now() + WAIT_SECONDS

        def step() -> None:
            if self._pending and self.loop.now() < end:
                self.loop.later(STEP_SECONDS, step)
            else:
                then()

        step()

    def say_at_once(self, outcome: str, **facts: Any) -> None:
        """A new word when the loop has failed: it is sent, and nothing is heard of it."""
        self.say(outcome, **facts)
        if self._pending:
            sleep(SENDING_SECONDS)
