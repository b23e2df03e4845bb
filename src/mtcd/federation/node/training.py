"""A party in training: carries letters between its postman and the other parties, and tells it who is gone.

The postman decides everything (see ``custody``). Here letters are sent until there is a receipt, and links are
watched: who does not answer is gone, who says that it is in this run is back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from time import monotonic
from typing import Any

from mtcd.engines.wire import Expected, WireError
from mtcd.errors import JournalError
from mtcd.federation.custody.codecs import OF_POSTMEN, decode_letter, decode_receipt, encode_letter, encode_receipt
from mtcd.federation.custody.ending import DIVERGED
from mtcd.federation.custody.letters import Letter, Receipt
from mtcd.federation.custody.lone_token import LonePostman
from mtcd.federation.custody.postman import Postman
from mtcd.federation.names import SERVER as SERVER_NAME
from mtcd.federation.node.log import Log
from mtcd.federation.node.loop import Loop
from mtcd.federation.node.mail import Asked, Mail
from mtcd.protocol.party import SERVER

NOT_NOW = b"not now"
IN_TRAINING, ENDED = b"in training", b"ended"
HAS_ENDED = b" has ended"
SOON, LATEST = 0.02, 1.0  # seconds until the next try: the first, and the longest
SILENT = 1.5  # leases without an answer after which a party counts as gone, even if its link is up


class Trainer:
    """Of one party. ``comes`` gets what it is about to take in, ``told`` what it tells those who watch.

    ``ended`` is called once. ``make`` makes the postman, from its journal if there is one.
    """

    def __init__(
        self,
        mail: Mail,
        loop: Loop,
        log: Log,
        make: Callable[[], Postman],
        expected: Expected,
        comes: Callable[[Any], None],
        told: Callable[[Any], None],
        ended: Callable[[], None],
    ) -> None:
        self.mail, self.loop, self.log, self._make = mail, loop, log, make
        self.postman = postman = make()
        self.comes, self.told, self._ended = comes, told, ended
        self.names = {SERVER: SERVER_NAME, **dict(enumerate(mail.kit.config.parties))}
        self.numbers = {name: number for number, name in self.names.items()}
        self.run = expected.run
        self._expected = {number: replace(expected, sender=number, receiver=postman.number) for number in self.names}
        self._relayed = {number: replace(one, kinds=frozenset()) for number, one in self._expected.items()}
        """Over others come only the questions and tidings of postmen, never a token."""
        self._under_way: dict[tuple[int, int], float] = {}
        """Letters that were sent and not answered, or that wait for their next try; with how long they wait."""
        self._silent: dict[int, float] = {}
        """Since when a party has not answered."""
        self._known_end = False
        self.heard_end: set[str] = set()
        """Who is known to have ended."""
        self.awaits_words: Callable[[], bool] = lambda: False
        """Whether something is still to be told after the end, for which others must stay."""
        self._began = monotonic()
        self._patience = SILENT * mail.kit.config.limits.lease_ms / 1000
        self._waiting: str | None = None
        mail.on("letter", self._letter)
        mail.on("ready", self._ready)
        if postman.number == SERVER:
            mail.on(DIVERGED, self._hear_diverged)

    def go(self) -> None:
        """Send what waits."""
        self._tell_opened()
        self.pump()
        self.loop.later(min(self._patience / 4, LATEST), self._watch)
        self._look_for_end()

    def _tell_opened(self) -> None:
        """What the postman told without a letter."""
        told, self.postman.opened = self.postman.opened, []
        for message in told:
            self.told(message.payload)

    def finish(self, status: str) -> None:
        """End as soon as can be."""
        self.postman.finish(status)
        self._look_for_end()
        self.loop.call(self.pump)

    # Letters that arrive

    def _letter(self, asked: Asked) -> None:
        number = self.numbers[asked.sender]
        letter = decode_letter(asked.body, (self._expected if asked.straight else self._relayed)[number])
        receipt = self._deliver(letter)
        self.pump()  # first what is to go on, then the receipt: nobody waits for that
        asked.answer(NOT_NOW if receipt is None else encode_receipt(receipt, self.run))

    def _deliver(self, letter: Letter) -> Receipt | None:
        try:
            if not self.postman.was_seen(letter):
                self.comes(letter.message.payload)
            receipt, told = self.postman.deliver(letter)
        except JournalError:
            raise
        except Exception as error:
            # It reads well, but the party cannot follow it: a sender that cheats, or another version. What was half
            # done is undone.
            self._go_back()
            raise WireError("letter", f"cannot be taken in ({type(error).__name__})") from None
        for message in told:
            self.told(message.payload)
        self._look_for_end()
        return receipt

    def _go_back(self) -> None:
        """To where the journal is."""
        dead, self.postman = self.postman.dead, self._make()
        self.postman.dead = dead  # what follows from that is in the journal

    def _look_for_end(self) -> None:
        ended = self.postman.ended is not None
        if ended and not self._known_end:
            self._ended()
        self._known_end = ended  # an end may turn out not to count

    # Letters to send

    def pump(self) -> None:
        """Send every letter that is not under way."""
        for place, letter in list(self.postman.outbox.items()):
            if place not in self._under_way:
                self._under_way[place] = SOON
                self._send(place, letter)

    def _send(self, place: tuple[int, int], letter: Letter) -> None:
        if letter.to == self.postman.number:
            self.loop.call(lambda: self._to_itself(place))
            return
        try:
            body = encode_letter(letter, self.run)
        except WireError:
            self._diverged()
            return
        straight = type(letter.message.payload) not in OF_POSTMEN
        done = partial(self._answered, place)
        self.mail.ask(self.names[letter.to], "letter", body, done, straight)

    def _diverged(self) -> None:
        """What was to be sent is not finite. The server ends the run; where there is none, this party does."""
        if SERVER_NAME not in self.mail.link.peers:
            self.finish(DIVERGED)
            return

        def told(answer: bytes | None, why: str) -> None:
            if answer is None and self.postman.ended is None:
                self.loop.later(LATEST, self._diverged)

        self.mail.ask(SERVER_NAME, DIVERGED, self.run.encode(), told)

    def _hear_diverged(self, asked: Asked) -> None:
        if asked.body != self.run.encode():
            raise WireError("run", "is another one")
        self.log.say(DIVERGED, f"{asked.sender} says that the training has diverged.")
        asked.answer()
        self.finish(DIVERGED)

    def _to_itself(self, place: tuple[int, int]) -> None:
        letter = self.postman.outbox.get(place)
        del self._under_way[place]
        receipt = None if letter is None else self._deliver(letter)
        if receipt is not None:
            self.postman.received(receipt)
        self.pump()

    def _answered(self, place: tuple[int, int], answer: bytes | None, why: str) -> None:
        to = place[0]
        if answer is None:
            if why:
                self.log.now_and_then(
                    ("unsent", self.names[to], why), f"{self.names[to]} does not take a letter: {why}"
                )
            self._silent.setdefault(to, monotonic())
            self._try_later(place)
            return
        self._silent.pop(to, None)
        if answer == NOT_NOW:
            self._try_later(place)
            return
        try:
            receipt = decode_receipt(answer, self._expected[to])
            if receipt.sequence != place[1]:
                raise WireError("sequence", "is that of another letter")
        except WireError as error:
            self.log.refused(self.names[to], "receipt", str(error))
            self._try_later(place)
            return
        self._under_way.pop(place, None)
        self.postman.received(receipt)
        self._look_for_end()
        self.pump()

    def _try_later(self, place: tuple[int, int]) -> None:
        wait = self._under_way.get(place, SOON)
        self._under_way[place] = min(2 * wait, LATEST)
        self.loop.later(wait, lambda: self._again(place))

    def _again(self, place: tuple[int, int]) -> None:
        letter = self.postman.outbox.get(place)
        if letter is None:
            self._under_way.pop(place, None)
        else:
            self._send(place, letter)

    # Who is there

    def changed(self, name: str, here: bool) -> None:
        """A link came or went."""
        if here:
            self._ask_ready(name)
        else:
            self.lost(name)

    def lost(self, name: str) -> None:
        """A party is gone."""
        number = self.numbers[name]
        if number not in self.postman.dead and not (
            self.postman.ended and name in self.heard_end
        ):  # that one may leave
            self.log.say("lost", "" if self.postman.ended else f"{name} is gone.", peer=name)
            self.postman.lost(number)
            self._tell_opened()
            self._look_for_end()
            self.pump()

    def _found(self, name: str) -> None:
        number = self.numbers[name]
        self._silent.pop(number, None)
        if number in self.postman.dead:
            self.log.say("found", f"{name} is back.", peer=name)
            self.postman.found(number)
            self._tell_opened()
        for place in self.postman.outbox:
            if place[0] == number and place in self._under_way:
                self._under_way[place] = SOON
        self.pump()

    def _ask_ready(self, name: str) -> None:
        def answered(answer: bytes | None, why: str) -> None:
            if answer in (IN_TRAINING, ENDED):
                self._found(name)
            elif self.numbers[name] in self.postman.dead and name in self.mail.link.up:
                self.loop.later(LATEST, lambda: self._ask_ready(name))

        self.mail.ask(name, "ready", self.run.encode(), answered)

    def _ready(self, asked: Asked) -> None:
        """A party asks whether this one is in its run; it may add that it has ended itself."""
        run = self.run.encode()
        if asked.body not in (run, run + HAS_ENDED):
            raise WireError("run", "is another one")
        if asked.body != run:
            self.heard_end.add(asked.sender)
        asked.answer(ENDED if self.postman.ended is not None and not self.awaits_words() else IN_TRAINING)

    def _watch(self) -> None:
        """Who is silent for long counts as gone, though its link may be up; so does one who was not there at first."""
        now, link = monotonic(), self.mail.link
        silent = {self.names[number] for number, since in self._silent.items() if now - since > self._patience}
        if now - self._began > self._patience:
            silent |= link.peers - link.up
        for name in silent & link.peers:
            if self.numbers[name] not in self.postman.dead:
                self.lost(name)
                if name in link.up:
                    self._ask_ready(name)
        self._say_waiting()
        self.loop.later(min(self._patience / 4, LATEST), self._watch)

    def _say_waiting(self) -> None:
        """For whom training waits, if it lasts."""
        postman = self.postman
        told = None
        if postman.ended is None and postman.waits_for:
            names = ", ".join(sorted(self.names[number] for number in postman.waits_for))
            told = postman.unreachable() if isinstance(postman, LonePostman) else f"Training waits for {names}."
        if told is not None and told == self._waiting:
            self.log.now_and_then(("waiting", told), told, often=1)
        self._waiting = told
