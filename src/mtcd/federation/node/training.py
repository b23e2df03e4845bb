"""A party in training: sends and receives the envelopes of its reliable party, and reports parties
that are down.

The reliable party decides everything (``mtcd.federation.delivery``). Here envelopes are sent until
there is an ack, and links that come and go and peers that do not answer for too long are noticed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from mtcd.core.errors import JournalError, WireError
from mtcd.federation.delivery.frames import (
    decode_ack,
    decode_envelope,
    encode_ack,
    encode_envelope,
)
from mtcd.federation.delivery.reliable_party import ReliableParty
from mtcd.federation.names import SERVER as SERVER_NAME
from mtcd.federation.node.link import IncomingRequest
from mtcd.federation.node.log import Log
from mtcd.federation.node.loop import Loop
from mtcd.federation.node.rejoining import Rejoining
from mtcd.federation.node.rpc import Rpc
from mtcd.protocol.codec.envelopes import CONTROL_PAYLOADS, Ack, Envelope
from mtcd.protocol.codec.limits import Bounds
from mtcd.protocol.party import SERVER
from mtcd.training.divergence import DIVERGED

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
        silent = set()
        for number, since in self.silent.items():
            if now - since > self._silence_seconds:
                silent.add(self.names[number])
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


DEFERRED = b"not now"


class Trainer(Presence):
    """The training of one party.

    ``on_payload`` gets each new payload before it is processed, ``on_report`` each report to the
    monitor; ``ended`` is called once. ``make`` makes the reliable party, from its journal if there
    is one; ``resumed``: this process did not begin the run (see ``rejoining.py``).
    """

    def __init__(
        self,
        rpc: Rpc,
        loop: Loop,
        log: Log,
        make: Callable[[], ReliableParty],
        bounds: Bounds,
        on_payload: Callable[[Any], None],
        on_report: Callable[[Any], None],
        ended: Callable[[], None],
        resumed: bool = False,
    ) -> None:
        super().__init__(rpc, loop, log, bounds.run)
        self._make = make
        self.reliable = reliable = make()
        reliable.started()
        self.on_payload, self.on_report, self._ended = on_payload, on_report, ended
        # One for each sender, so that nobody can send in another's name: see ``Bounds``.
        self._bounds = {
            number: replace(bounds, sender=number, receiver=reliable.number)
            for number in self.names
        }
        self._relayed = {
            number: replace(one, kinds=frozenset()) for number, one in self._bounds.items()
        }
        """Bounds of relayed envelopes: control payloads only, never a token."""
        self._known_end = self._going = False
        self._rejoining = Rejoining(self, resumed, self.pump)
        rpc.on("envelope", self._envelope)
        if reliable.number == SERVER:
            rpc.on(DIVERGED, self._receive_divergence)

    def go(self) -> None:
        """Start to send envelopes."""
        self._going = True
        self.pump()
        self.watch()
        self.noticed()

    def changed(self, name: str, up: bool) -> None:
        if up:
            self._rejoining.ask(self.numbers[name])
        super().changed(name, up)

    def noticed(self) -> None:
        reports, self.reliable.reports = self.reliable.reports, []
        for message in reports:
            self.on_report(message.payload)
        self._check_end()

    def finish(self, status: str) -> None:
        """End the training as soon as possible."""
        self.reliable.finish(status)
        self._check_end()
        self.loop.call(self.pump)

    # Envelopes that arrive

    def _envelope(self, request: IncomingRequest) -> None:
        number = self.numbers[request.sender]
        # Deferred, not refused: it is sent again when this party's journal is confirmed.
        if number in self._rejoining.unconfirmed:
            self._rejoining.ask(number)
            request.answer(DEFERRED)
            return
        envelope = decode_envelope(
            request.content, (self._bounds if request.direct else self._relayed)[number]
        )
        ack = self._deliver(envelope)
        self.pump()  # before the ack, for which no party waits
        request.answer(DEFERRED if ack is None else encode_ack(ack, self.run))

    def _deliver(self, envelope: Envelope) -> Ack | None:
        try:
            ack, reports = self.reliable.deliver(envelope, self.on_payload)
        # The disk failed: what is in memory is not what a restart would find.
        except JournalError:
            raise
        except Exception as error:
            # It decodes, but the party cannot process it: the sender is dishonest, or has another
            # version. The state before it is restored.
            self._restore()
            raise WireError("envelope", f"cannot be processed ({type(error).__name__})") from None
        for message in reports:
            self.on_report(message.payload)
        self._check_end()
        return ack

    def _restore(self) -> None:
        """Restore the reliable party from its journal."""
        down, self.reliable = self.reliable.down, self._make()
        self.reliable.down = down  # the journal has the effects of it

    def _check_end(self) -> None:
        ended = self.reliable.ended is not None
        if ended and not self._known_end:
            self._ended()
        self._known_end = ended  # an end is undone if a stale token caused it

    # Envelopes to send

    def pump(self) -> None:
        if not self._going:
            return
        # A copy: a message that cannot be sent ends the run, and that changes the outbox.
        for place, envelope in list(self.reliable.outbox.items()):
            if place in self.under_way:
                continue
            if envelope.to in self._rejoining.unconfirmed:
                self._rejoining.ask(envelope.to)
                continue
            self.under_way[place] = FIRST_RETRY_SECONDS
            self._send(place, envelope)

    def _send(self, place: tuple[int, int], envelope: Envelope) -> None:
        if envelope.to == self.reliable.number:
            # Through the loop: a party that hops to itself for hours must hear others in between.
            self.loop.call(lambda: self._to_itself(place))
            return
        try:
            body = encode_envelope(envelope, self.run)
        # Numbers that are not finite: the codec refuses to write them.
        except WireError:
            self.report_divergence()
            return
        direct = type(envelope.message.payload) not in CONTROL_PAYLOADS
        done = partial(self._answered, place)
        self.rpc.ask(self.names[envelope.to], "envelope", body, done, direct)

    def report_divergence(self) -> None:
        """Report to the server that the training has diverged, so that it ends the run; without
        one, end it here."""
        if SERVER_NAME not in self.rpc.link.peers:
            self.finish(DIVERGED)
            return

        def answered(answer: bytes | None, why: str) -> None:
            if answer is None and self.reliable.ended is None:
                self.loop.later(LONGEST_RETRY_SECONDS, self.report_divergence)

        self.rpc.ask(SERVER_NAME, DIVERGED, self.run.encode(), answered)

    def _receive_divergence(self, request: IncomingRequest) -> None:
        if request.body != self.run.encode():
            raise WireError("run", "is another one")
        self.log.say(DIVERGED, f"{request.sender} reports that the training has diverged.")
        request.answer()
        self.finish(DIVERGED)

    def _to_itself(self, place: tuple[int, int]) -> None:
        envelope = self.reliable.outbox.get(place)
        del self.under_way[place]
        ack = None if envelope is None else self._deliver(envelope)
        if ack is not None:
            self.reliable.acknowledge(ack)
        self.pump()

    def _answered(self, place: tuple[int, int], answer: bytes | None, why: str) -> None:
        to = place[0]
        if answer is None:
            if why:
                self.log.throttled(
                    ("unsent", self.names[to], why), f"{self.names[to]} refuses an envelope: {why}"
                )
            # Since the first that was not answered: a refusal counts as silence too.
            self.silent.setdefault(to, self.loop.now())
            self._schedule_retry(place)
            return
        self.silent.pop(to, None)
        if answer == DEFERRED:
            self._schedule_retry(place)
            return
        try:
            # The bounds of the receiver: an ack in another party's name is refused.
            ack = decode_ack(answer, self._bounds[to])
            if ack.sequence != place[1]:
                raise WireError("sequence", "is that of another envelope")
        except WireError as error:
            self.rpc.note_refused(self.names[to], "ack", error)
            self._schedule_retry(place)
            return
        self.under_way.pop(place, None)
        self.reliable.acknowledge(ack)
        if ack.terms:  # they may have undone the end
            self._check_end()
        self.pump()

    def _schedule_retry(self, place: tuple[int, int]) -> None:
        wait = self.under_way.get(place, FIRST_RETRY_SECONDS)
        self.under_way[place] = min(2 * wait, LONGEST_RETRY_SECONDS)
        self.loop.later(wait, lambda: self._retry(place))

    def _retry(self, place: tuple[int, int]) -> None:
        envelope = self.reliable.outbox.get(place)
        if envelope is None:
            self.under_way.pop(place, None)
        else:
            self._send(place, envelope)
