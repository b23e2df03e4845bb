"""Predicting new samples together: every party has its own columns of them, one sees the result.

The leader (who sees predictions, or the holder of the labels if the server sees them) aligns the new samples on their
ids, tells all which they are, and a token pass adds up what the parties' blocks make of them. Nothing is kept on the
way: whoever is killed is started again, and so is the pass.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mtcd.errors import DataError, WireError
from mtcd.federation.kit import Kit
from mtcd.federation.names import SERVER
from mtcd.federation.node.aligning import Leader, Led, agreed_rows
from mtcd.federation.node.asking import Answers
from mtcd.federation.node.log import Log
from mtcd.federation.node.mail import Asked
from mtcd.federation.node.passing import Passing, Seeing, Sums, from_sums, is_seer, server_takes_part, to_sums
from mtcd.federation.node.station import Station

PURPOSE = "predicting"
AGAIN = 20.0  # seconds after which a pass that has not come back is begun anew
SAY_WAITING = 5.0
LEAVE = 0.3
MOST = 2**30


class NewSamples(Protocol):
    """New samples of a party, and its block of the model."""

    @property
    def ids(self) -> Sequence[str]:
        """Of the samples."""

    @property
    def samples(self) -> int:
        """How many."""

    @property
    def width(self) -> int:
        """Numbers per sample in the sum."""

    def part(self, rows: Sequence[int]) -> NDArray[Any]:
        """What this party adds for these rows: (rows, width)."""

    def decided(self, sums: NDArray[np.float64]) -> NDArray[np.generic]:
        """The predictions for such a sum."""

    def classes(self) -> Any:
        """What the server must know to decide, in JSON."""


Written = Callable[[Sequence[str], NDArray[np.generic]], str]
"""Writes ids and predictions; returns a sentence."""


class Predictor:
    """One party, or the server. ``new`` is None at a server, which has ``decide`` instead.

    ``run`` is the number of the run that left the blocks, and must be the same for all.
    """

    def __init__(
        self,
        kit: Kit,
        new: NewSamples | None,
        write: Written,
        decide: Callable[[NDArray[np.float64], Any], NDArray[np.generic]] | None,
        show: Callable[[str], None] | None,
        log: Path | None = None,
        run: str = "",
    ) -> None:
        self.kit, self.config, self.new, self.write, self.decide = kit, kit.config, new, write, decide
        self.station = Station(kit, Log(kit.config.name, log, show))
        mail, questions = self.station.mail, self.station.questions
        self.leader = self.config.seen_by if self.config.seen_by != SERVER else self.config.labels.held_by
        self.leads = self.config.name == self.leader
        self.rows: Sequence[int] | None = None
        self.finished = False
        self.seeing = Seeing(mail, questions, self.config) if is_seer(self.config) else None
        if new is not None and not is_seer(self.config):
            Passing(mail, questions, self.config, self._own_part)
        if self.leads:
            assert new is not None
            self.leading = Leader(questions, kit, PURPOSE + run, new, self.station.log)
        else:
            self.led = Led(mail, kit, self.leader, PURPOSE + run, new, self.station.log)
            mail.on("done", self._done)
            mail.on("collect" if new is None else "rows", self._collect if new is None else self._take_rows)

    def run(self) -> None:
        """Until the seer has the predictions."""
        self.station.run(self._begin)

    def _begin(self) -> None:
        if self.leads:
            self.leading.align(self._aligned)
        self._say_waiting()

    def _say_waiting(self) -> None:
        if not self.finished:
            waits = sorted(self.station.questions.waits_for) if self.leads else [self.leader]
            if waits:
                self.station.say_waiting(waits)
            self.station.loop.later(SAY_WAITING, self._say_waiting)

    # The leader

    def _aligned(self, announcement: bytes) -> None:
        assert self.new is not None
        self.rows = agreed_rows(announcement, self.new)
        bodies = dict.fromkeys(self.leading.others, self.leading.wrapped(announcement))
        self.station.questions.ask("rows", bodies, self._pass)

    def _pass(self, answers: Answers) -> None:
        assert self.new is not None
        assert self.rows is not None
        certificates = {name: b64encode(told).decode() for name, told in answers.items()}
        certificates[self.config.name] = b64encode(self._certificate()).decode()
        if not server_takes_part(self.config):
            self._see((len(self.rows), self.new.width), certificates, self._seen_by_party)
            return
        sizes = {"samples": len(self.rows), "width": self.new.width}
        body = self.leading.wrapped(**sizes, classes=self.new.classes(), certificates=certificates)
        self.station.questions.ask("collect", {SERVER: body}, lambda _: self._tell_done())

    def _seen_by_party(self, sums: Sums) -> None:
        assert self.new is not None
        assert self.rows is not None
        total = from_sums(sums + self._own_part())
        ids = [self.new.ids[row] for row in self.rows] if self.new.ids else [str(row + 1) for row in self.rows]
        self._finish(self.write(ids, self.new.decided(total)))
        self._tell_done()

    def _tell_done(self) -> None:
        body, server = self.leading.wrapped(), [SERVER] if server_takes_part(self.config) else []
        self._finish(f"{self.config.seen_by} has the predictions." if not is_seer(self.config) else "")
        bodies = dict.fromkeys([*self.leading.others, *server], body)
        self.station.questions.ask("done", bodies, lambda _: self.station.loop.stop())

    # Those who are led

    def _take_rows(self, asked: Asked) -> None:
        _, (announcement,) = self.led.read(asked, 1)
        self.rows = self.led.rows(announcement)
        asked.answer(self._certificate())

    def _collect(self, asked: Asked) -> None:
        head, _ = self.led.read(asked, 0, "samples", "width", "classes", "certificates")
        for name in ("samples", "width"):
            if type(head[name]) is not int or not 1 <= head[name] < MOST:
                raise WireError(name, "is no number that can be")
        if head["samples"] * head["width"] * 8 > self.config.limits.message_mb * 2**20:
            raise WireError("samples", "are more than fit into a message")

        def seen(sums: Sums) -> None:
            assert self.decide is not None
            predictions = self.decide(from_sums(sums), head["classes"])
            self._finish(self.write([str(i + 1) for i in range(head["samples"])], predictions))
            asked.answer()

        self._see((head["samples"], head["width"]), head["certificates"], seen)

    def _done(self, asked: Asked) -> None:
        self.led.read(asked, 0)
        asked.answer()
        self._finish(f"{self.config.seen_by} has the predictions." if not is_seer(self.config) else "")
        self.station.loop.later(LEAVE, self.station.loop.stop)  # when the answer has gone

    # All

    def _own_part(self) -> Sums:
        assert self.new is not None
        if self.rows is None:
            raise WireError("pass", "comes before it is known which samples are meant")
        return to_sums(self.new.part(self.rows))

    def _certificate(self) -> bytes:
        seal = self.station.mail.seal
        assert seal is not None  # it is a party
        return seal.certificate

    def _see(self, shape: tuple[int, int], certificates: Any, seen: Callable[[Sums], None]) -> None:
        """Begin a pass, and once more whenever it does not come back."""
        assert self.seeing is not None
        if self.finished:
            return
        self.seeing.begin(shape, certificates, seen)
        self.station.loop.later(AGAIN, lambda: self._see(shape, certificates, seen))

    def _finish(self, told: str) -> None:
        if not self.finished:
            self.finished = True
            self.station.log.say("predicted", told)


def as_json(classes: Sequence[Any]) -> Any:
    """Classes of labels, as others can read them."""
    return json.loads(json.dumps(list(classes)))


def classes_from(told: Any) -> tuple[str | float, ...]:
    """Checked."""
    if not isinstance(told, list) or not all(isinstance(one, str | float | int) for one in told):
        raise DataError("The leader does not say what classes there are.")
    return tuple(told)
