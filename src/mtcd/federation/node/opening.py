"""Before training: everybody finds the samples that all have, gets the labels, and agrees on the run.

The holder of the labels leads. It asks every other party, until it has an answer,

- ``align``: which samples do we share? (see ``aligning.py``)
- ``prepare``: these are the samples that all have; what must I know to settle the step size?
- ``start``: the run with its number, step size and labels. The server gets its own: sizes, and the labels only where
  the federation file allows it.

What was agreed goes into the folder of each party before training. After a restart it is read from there. Whoever
restarts earlier is asked again, as nothing has happened yet.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from mtcd.errors import ConfigError, WireError
from mtcd.federation.kit import Kit
from mtcd.federation.names import SERVER
from mtcd.federation.node.aligning import Leader, Led, Samples, agreed_rows
from mtcd.federation.node.asking import Answers, Questions
from mtcd.federation.node.log import Log
from mtcd.federation.node.mail import Asked, Mail
from mtcd.federation.node.parcels import unwrap, wrap

PURPOSE = "training"
WHICH = "which"


class Part(Samples, Protocol):
    """What a party participant, and what the holder of the labels makes of all."""

    def facts(self, rows: Sequence[int]) -> bytes:
        """What the holder of the labels must know to settle the run."""

    def settle(self, rows: Sequence[int], facts: Mapping[str, bytes]) -> tuple[dict[str, Any], bytes]:
        """The holder: what all parties must know, and the labels."""


@dataclass(frozen=True)
class Agreed:
    """What training starts from."""

    run: str
    told: dict[str, Any]
    labels: bytes
    announcement: bytes

    def packed(self) -> bytes:
        """As a block of bytes."""
        return wrap({"run": self.run, "told": self.told}, self.labels, self.announcement)

    @staticmethod
    def unpacked(data: bytes) -> Agreed:
        """From one."""
        head, (labels, announcement) = unwrap(data, ("run", "told"), 2)
        run = head["run"]
        if not isinstance(run, str) or not 1 <= len(run) <= 64 or not (run.isascii() and run.isalnum()):
            raise WireError("run", "is not the number of a run")
        if not isinstance(head["told"], dict):
            raise WireError("settings", "are not those of a run")
        return Agreed(run, head["told"], labels, announcement)


class Opening:
    """The side of those who are led: they answer. ``start`` is called once, with what was agreed."""

    def __init__(self, mail: Mail, kit: Kit, part: Part | None, log: Log, start: Callable[[Agreed], Any]) -> None:
        self.mail, self.kit, self.part, self.start = mail, kit, part, start
        self.agreed: Agreed | None = None
        self._confirmed: str | None = None
        """The run that the leader says it is in."""
        self.led = Led(mail, kit, kit.config.labels.held_by, PURPOSE, part, log)
        mail.on("start", self._start)
        if part is not None:
            mail.on("prepare", self._prepare)

    def _prepare(self, asked: Asked) -> None:
        _, (announcement,) = self.led.read(asked, 1)
        assert self.part is not None
        asked.answer(self.part.facts(self.led.rows(announcement)))

    def _start(self, asked: Asked) -> None:
        _, (packed,) = self.led.read(asked, 1)
        agreed = Agreed.unpacked(packed)
        if self.agreed is not None and self.agreed.run != agreed.run:
            raise ConfigError(
                f"{self.kit.config.name} is in another run: start it with a new folder (--out) for a new one."
            )
        if not asked.straight and agreed.run not in (self._confirmed, self.agreed and self.agreed.run):
            self._confirm(agreed.run)
            asked.let_go()  # to be asked again
            return
        if self.agreed is None:
            self._check(agreed)
            self.start(agreed)
            self.agreed = agreed
        asked.answer()

    def _confirm(self, run: str) -> None:
        """What came over others may be an old message, sent once more by one of them: the answer to this is new."""

        def answered(answer: bytes | None, why: str) -> None:
            if answer == run.encode():
                self._confirmed = run

        self.mail.ask(self.led.leader, WHICH, run.encode(), answered)

    def _check(self, agreed: Agreed) -> None:
        """Who trains is told the samples and the labels; the server no samples, and labels only if it may know them."""
        may_know = self.part is not None or SERVER in self.kit.config.labels.shared_with
        if bool(agreed.labels) != may_know:
            raise WireError("labels", "are missing, or are not for this party")
        if self.part is not None:
            self.led.rows(agreed.announcement)
        elif agreed.announcement:
            raise WireError("announcement", "of the common samples is not for the server")


class Leading:
    """The side of the holder of the labels.

    ``start`` makes the own party ready, once, and says who sets the training going, if that is one. Then the others are
    told to start too, that one last: nobody is in training before all are ready, and ``go`` is called.
    """

    def __init__(
        self,
        questions: Questions,
        kit: Kit,
        part: Part,
        log: Log,
        start: Callable[[Agreed], str | None],
        go: Callable[[], None],
        told: set[str],
    ) -> None:
        self.questions, self.kit, self.part, self.start, self.go = questions, kit, part, start, go
        self.leader = Leader(questions, kit, PURPOSE, part, log)
        self.told = told
        """Who has confirmed that it starts: one that has, and forgot, must not start again from nothing."""

    def lead(self) -> None:
        """Begin with the samples."""
        self.leader.align(self._prepare)

    def tell(self, agreed: Agreed, opener: str | None) -> None:
        """Tell everybody who has not confirmed it to start."""
        self.questions.mail.on(WHICH, lambda asked: asked.answer(agreed.run.encode()))

        def ready(answers: Answers) -> None:
            self.go()
            if opener == SERVER:
                labels = agreed.labels if SERVER in self.kit.config.labels.shared_with else b""
                self._tell([SERVER], Agreed(agreed.run, agreed.told, labels, b""))
            elif opener in self.leader.others:
                self._tell([opener], agreed)

        self._tell([name for name in self.leader.others if name != opener], agreed, ready)

    def _tell(
        self, names: Sequence[str], agreed: Agreed, then: Callable[[Answers], None] = lambda answers: None
    ) -> None:
        body = self.leader.wrapped(agreed.packed())
        self.questions.ask("start", {name: body for name in names if name not in self.told}, then, self.told.add)

    def _prepare(self, announcement: bytes) -> None:
        def answered(answers: Answers) -> None:
            rows = agreed_rows(announcement, self.part)
            own = {self.kit.config.name: self.part.facts(rows)}
            told, labels = self.part.settle(rows, {**own, **answers})
            agreed = Agreed(secrets.token_hex(8), told, labels, announcement)
            self.tell(agreed, self.start(agreed))

        bodies = dict.fromkeys(self.leader.others, self.leader.wrapped(announcement))
        self.questions.ask("prepare", bodies, answered)
