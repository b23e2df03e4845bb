"""A party in training: carries envelopes between its reliable party and the others, and reports who is down.

The reliable party decides everything (``mtcd.federation.delivery``). Here envelopes are sent until there is an ack;
which parties are up is in ``presence.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from mtcd.divergence import DIVERGED
from mtcd.errors import JournalError, WireError
from mtcd.federation.delivery.codecs import CONTROL_PAYLOADS, decode_ack, decode_envelope, encode_ack, encode_envelope
from mtcd.federation.delivery.envelopes import Ack, Envelope
from mtcd.federation.delivery.reliable_party import ReliableParty
from mtcd.federation.names import SERVER as SERVER_NAME
from mtcd.federation.node.log import Log
from mtcd.federation.node.loop import Loop
from mtcd.federation.node.mail import Asked, Mail
from mtcd.federation.node.presence import FIRST_RETRY_SECONDS, LONGEST_RETRY_SECONDS, Presence
from mtcd.protocol.party import SERVER
from mtcd.schema.bounds import Bounds

NOT_NOW = b"not now"


class Trainer(Presence):
    """Of one party. ``comes`` gets what it is about to take in, ``told`` what it tells those who watch.

    ``ended`` is called once. ``make`` makes the reliable party, from its journal if there is one.
    """

    def __init__(
        self,
        mail: Mail,
        loop: Loop,
        log: Log,
        make: Callable[[], ReliableParty],
        bounds: Bounds,
        comes: Callable[[Any], None],
        told: Callable[[Any], None],
        ended: Callable[[], None],
    ) -> None:
        super().__init__(mail, loop, log, bounds.run)
        self._make = make
        self.reliable = reliable = make()
        reliable.policy.started()
        self.comes, self.told, self._ended = comes, told, ended
        self._bounds = {number: replace(bounds, sender=number, receiver=reliable.number) for number in self.names}
        self._relayed = {number: replace(one, kinds=frozenset()) for number, one in self._bounds.items()}
        """Over others come only control payloads, never a token."""
        self._known_end = self._going = False
        mail.on("envelope", self._envelope)
        if reliable.number == SERVER:
            mail.on(DIVERGED, self._hear_diverged)

    def go(self) -> None:
        """Send what waits: before, nothing is sent."""
        self._going = True
        self.pump()
        self.watch()
        self.noticed()

    def noticed(self) -> None:
        reports, self.reliable.reports = self.reliable.reports, []
        for message in reports:
            self.told(message.payload)
        self._look_for_end()

    def finish(self, status: str) -> None:
        """End as soon as can be."""
        self.reliable.finish(status)
        self._look_for_end()
        self.loop.call(self.pump)

    # Envelopes that arrive

    def _envelope(self, asked: Asked) -> None:
        number = self.numbers[asked.sender]
        envelope = decode_envelope(asked.body, (self._bounds if asked.straight else self._relayed)[number])
        ack = self._deliver(envelope)
        self.pump()  # first what is to go on, then the ack: nobody waits for that
        asked.answer(NOT_NOW if ack is None else encode_ack(ack, self.run))

    def _deliver(self, envelope: Envelope) -> Ack | None:
        try:
            if not self.reliable.is_duplicate(envelope):
                self.reliable.decode(envelope)
                self.comes(envelope.message.payload)
            ack, reports = self.reliable.deliver(envelope)
        except JournalError:
            raise
        except Exception as error:
            # It reads well, but the party cannot follow it: a sender that cheats, or another version. What was half
            # done is undone.
            self._go_back()
            raise WireError("envelope", f"cannot be taken in ({type(error).__name__})") from None
        for message in reports:
            self.told(message.payload)
        self._look_for_end()
        return ack

    def _go_back(self) -> None:
        """To where the journal is."""
        down, self.reliable = self.reliable.down, self._make()
        self.reliable.down = down  # what follows from that is in the journal

    def _look_for_end(self) -> None:
        ended = self.reliable.ended is not None
        if ended and not self._known_end:
            self._ended()
        self._known_end = ended  # an end may turn out not to count

    # Envelopes to send

    def pump(self) -> None:
        if not self._going:
            return
        for place, envelope in list(self.reliable.outbox.items()):
            if place not in self.under_way:
                self.under_way[place] = FIRST_RETRY_SECONDS
                self._send(place, envelope)

    def _send(self, place: tuple[int, int], envelope: Envelope) -> None:
        if envelope.to == self.reliable.number:
            self.loop.call(lambda: self._to_itself(place))
            return
        try:
            body = encode_envelope(envelope, self.run)
        except WireError:
            self.tell_diverged()
            return
        straight = type(envelope.message.payload) not in CONTROL_PAYLOADS
        done = partial(self._answered, place)
        self.mail.ask(self.names[envelope.to], "envelope", body, done, straight)

    def tell_diverged(self) -> None:
        """What is to be sent is not finite, or there is no hope. The server ends the run; without one, this party."""
        if SERVER_NAME not in self.mail.link.peers:
            self.finish(DIVERGED)
            return

        def told(answer: bytes | None, why: str) -> None:
            if answer is None and self.reliable.ended is None:
                self.loop.later(LONGEST_RETRY_SECONDS, self.tell_diverged)

        self.mail.ask(SERVER_NAME, DIVERGED, self.run.encode(), told)

    def _hear_diverged(self, asked: Asked) -> None:
        if asked.body != self.run.encode():
            raise WireError("run", "is another one")
        self.log.say(DIVERGED, f"{asked.sender} says that the training has diverged.")
        asked.answer()
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
                self.log.now_and_then(
                    ("unsent", self.names[to], why), f"{self.names[to]} does not take an envelope: {why}"
                )
            self.silent.setdefault(to, self.loop.now())
            self._try_later(place)
            return
        self.silent.pop(to, None)
        if answer == NOT_NOW:
            self._try_later(place)
            return
        try:
            ack = decode_ack(answer, self._bounds[to])
            if ack.sequence != place[1]:
                raise WireError("sequence", "is that of another envelope")
        except WireError as error:
            self.log.refused(self.names[to], "ack", str(error))
            self._try_later(place)
            return
        self.under_way.pop(place, None)
        self.reliable.acknowledge(ack)
        self._look_for_end()
        self.pump()

    def _try_later(self, place: tuple[int, int]) -> None:
        wait = self.under_way.get(place, FIRST_RETRY_SECONDS)
        self.under_way[place] = min(2 * wait, LONGEST_RETRY_SECONDS)
        self.loop.later(wait, lambda: self._again(place))

    def _again(self, place: tuple[int, int]) -> None:
        envelope = self.reliable.outbox.get(place)
        if envelope is None:
            self.under_way.pop(place, None)
        else:
            self._send(place, envelope)
