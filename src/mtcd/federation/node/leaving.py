"""After the end: a party stays until all who are there have heard of it, as some may hear of it only over others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from mtcd.federation.delivery.envelopes import End
from mtcd.federation.node.asking import Questions
from mtcd.federation.node.presence import ENDED, HAS_ENDED
from mtcd.federation.node.training import Trainer

LONGEST = 30.0  # seconds, for those who have not heard of it
FOR_THE_GONE = 10.0  # one who is to be told may be about to start again
STEP = 0.2
SILENT_TRIES = 5  # after which one who is no neighbour is taken to be away


class Leaving:
    """Of one party, once. ``step`` stops the loop, or comes again."""

    def __init__(self, trainer: Trainer, questions: Questions) -> None:
        self.trainer, self.questions = trainer, questions
        self.mail, self.loop = trainer.mail, trainer.loop
        self._began = self.loop.now()
        self._unanswered: Counter[str] = Counter()

    def step(self) -> None:
        """Leave if nobody is to be waited for.

        Who is gone and is to be told by us has some time to come back: nobody else may tell it.
        """
        trainer, link, reliable = self.trainer, self.mail.link, self.trainer.reliable
        if reliable.ended is None:  # it was ended by a token that does not count
            return
        undelivered = {trainer.names[to] for to, _ in reliable.outbox if to != reliable.number}
        untold = undelivered | self.questions.waits_for
        unaware = (undelivered | link.up) - trainer.heard_end | self.questions.waits_for
        stayed = self.loop.now() - self._began
        expected = untold if stayed < FOR_THE_GONE else set()
        waited_for = {name for name in unaware if name in expected or not self._is_away(name)}
        if not (waited_for or trainer.awaits_words()) or stayed > LONGEST:
            self._leave(untold & unaware)
            return
        ended = b"" if trainer.awaits_words() else HAS_ENDED  # who still waits needs the others: they pass words on
        for name in unaware:
            self.mail.ask(name, "ready", trainer.run.encode() + ended, self._heard(name))
        self.loop.later(STEP, self.step)

    def _leave(self, untold: set[str]) -> None:
        if untold:
            names = ", ".join(sorted(untold))
            told = f"Not told that the run has ended: {names}. Started again, this party tells them."
            self.trainer.log.say("left", told)
        self._write_down()
        self.loop.stop()

    def _write_down(self) -> None:
        """Who has heard of the end: started again, this party need not tell it twice."""
        reliable, names = self.trainer.reliable, self.trainer.names
        for place, envelope in list(reliable.outbox.items()):
            if isinstance(envelope.message.payload, End) and names[envelope.to] in self.trainer.heard_end:
                del reliable.outbox[place]
        reliable.commit()

    def _is_away(self, name: str) -> bool:
        link = self.mail.link
        return name not in link.up if name in link.peers else self._unanswered[name] >= SILENT_TRIES

    def _heard(self, name: str) -> Callable[[bytes | None, str], None]:
        def heard(answer: bytes | None, why: str) -> None:
            self._unanswered[name] = 0 if answer is not None else self._unanswered[name] + 1
            if answer == ENDED:
                self.trainer.heard_end.add(name)

        return heard
