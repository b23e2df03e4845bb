"""A party in training: sends and receives the envelopes of its reliable party.

The reliable party decides everything (``mtcd.federation.delivery``). Here envelopes are sent until
there is an ack. ``presence.py`` notices which parties are down.
"""

from __future__ import annotations

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
from mtcd.federation.node.presence import FIRST_RETRY_SECONDS, LONGEST_RETRY_SECONDS, Presence
from mtcd.federation.node.rejoining import Rejoining
from mtcd.federation.node.rpc import Rpc
from mtcd.protocol.codec.envelopes import CONTROL_PAYLOADS, Ack, Envelope
from mtcd.protocol.codec.limits import Bounds
from mtcd.protocol.party import SERVER
from mtcd.training.divergence import DIVERGED

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
