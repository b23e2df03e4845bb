"""Which parties are down, as one party in training sees it: links that come and go, and peers that
do not answer for too long."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from mtcd.core.errors import WireError
from mtcd.federation.delivery.reliable_party import ReliableParty
from mtcd.federation.names import SERVER as SERVER_NAME
from mtcd.federation.node.link import IncomingRequest
from mtcd.federation.node.log import Log
from mtcd.federation.node.loop import Loop
from mtcd.federation.node.rpc import Rpc
from mtcd.protocol.party import SERVER

IN_TRAINING, ENDED = b"in training", b"ended"
HAS_ENDED = b" has ended"
FIRST_RETRY_SECONDS, LONGEST_RETRY_SECONDS = 0.02, 1.0
SILENT_LEASES = 1.5
"""Leases without an answer after which a party counts as down, even if its link is up."""


class Presence(ABC):
    """Reports to the reliable party which parties are down. One that answers in this run is up."""

    reliable: ReliableParty

    def __init__(self, rpc: Rpc, loop: Loop, log: Log, run: str) -> None:
        self.rpc, self.loop, self.log, self.run = rpc, loop, log, run
        self.names = {SERVER: SERVER_NAME, **dict(enumerate(rpc.bundle.config.parties))}
        self.numbers = {name: number for number, name in self.names.items()}
        self.under_way: dict[tuple[int, int], float] = {}
        """Envelopes that were sent and not acknowledged, or that wait for their next retry; with
        its delay."""
        self.silent: dict[int, float] = {}
        """The time since which a party has not answered."""
        self.known_ended: set[str] = set()
        """The parties that are known to have ended."""
        self.awaits_reports: Callable[[], bool] = lambda: False
        """Whether reports are pending after the end (final fusion module, final check): others must
        stay up meanwhile."""
        self._began = self.loop.now()
        self._silence_seconds = SILENT_LEASES * rpc.bundle.config.limits.lease_ms / 1000
        self._waiting: str | None = None
        rpc.on("ready", self._ready)

    @abstractmethod
    def pump(self) -> None:
        """Send every envelope that is not under way."""

    @abstractmethod
    def noticed(self) -> None:
        """Process new reports of the reliable party, or its end."""

    def watch(self) -> None:
        """Start to check for silent parties."""
        self._began = self.loop.now()
        self.loop.later(min(self._silence_seconds / 4, LONGEST_RETRY_SECONDS), self._watch)

    def changed(self, name: str, up: bool) -> None:
        """Handle a link that came up or went down."""
        if up:
            self._ask_ready(name)
        else:
            self.peer_lost(name)

    def peer_lost(self, name: str) -> None:
        """Report to the reliable party that a party is down."""
        number = self.numbers[name]
        # It may leave before this party once both know of the end.
        may_exit = self.reliable.ended and name in self.known_ended
        if number not in self.reliable.down and not may_exit:
            self.log.say(
                "lost", "" if self.reliable.ended else f"{name} is unreachable.", peer=name
            )
            self.reliable.peer_lost(number)
            self.noticed()
            self.pump()

    def _found(self, name: str) -> None:
        number = self.numbers[name]
        self.silent.pop(number, None)
        if number in self.reliable.down:
            self.log.say("found", f"{name} is reachable again.", peer=name)
            self.reliable.peer_found(number)
            self.noticed()
        # It is back: what waited for a late retry goes now.
        for place in self.reliable.outbox:
            if place[0] == number and place in self.under_way:
                self.under_way[place] = FIRST_RETRY_SECONDS
        self.pump()

    def _ask_ready(self, name: str) -> None:
        def answered(answer: bytes | None, why: str) -> None:
            if answer in (IN_TRAINING, ENDED):
                self._found(name)
            elif self.numbers[name] in self.reliable.down and name in self.rpc.link.up:
                self.loop.later(LONGEST_RETRY_SECONDS, lambda: self._ask_ready(name))

        self.rpc.ask(name, "ready", self.run.encode(), answered)

    def _ready(self, request: IncomingRequest) -> None:
        """Answer a party that asks for the state of this one; the request may add that the sender
        has ended."""
        run = self.run.encode()
        if request.body not in (run, run + HAS_ENDED):
            raise WireError("run", "is another one")
        # The sender says so itself: its link will go down, and that is no failure.
        if request.body != run:
            self.known_ended.add(request.sender)
        answer = IN_TRAINING
        if self.reliable.ended is not None and not self.awaits_reports():
            answer = ENDED
        request.answer(answer)

    def _watch(self) -> None:
        """Report parties that have been silent for too long as down, even if their links are up."""
        now, link = self.loop.now(), self.rpc.link
        silent = {
            self.names[number]
            for number, since in self.silent.items()
            if now - since > self._silence_seconds
        }
        # Links need a moment to come up after the start.
        if now - self._began > self._silence_seconds:
            silent |= link.peers - link.up
        for name in silent & link.peers:
            if self.numbers[name] not in self.reliable.down:
                self.peer_lost(name)
                if name in link.up:
                    self._ask_ready(name)
        self._say_waiting()
        self.loop.later(min(self._silence_seconds / 4, LONGEST_RETRY_SECONDS), self._watch)

    def _say_waiting(self) -> None:
        """Log the reason for which training waits, if it persists."""
        reliable = self.reliable
        reason = None
        if reliable.ended is None and reliable.policy.waits_for:
            reason = reliable.policy.waiting_reason(self.names)
        # The same reason at two looks: most waits are over by the second.
        if reason is not None and reason == self._waiting:
            self.log.throttled(("waiting", reason), reason, often=1)
        self._waiting = reason
