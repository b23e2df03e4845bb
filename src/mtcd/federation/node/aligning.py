"""Finding the samples that all parties have, before training or predicting. One party leads, the others answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any, Protocol

from mtcd.errors import DataError, MtcdError, WireError
from mtcd.federation.alignment import announce, answerer, asker, rows_of
from mtcd.federation.kit import Kit
from mtcd.federation.kit_schema import KitConfig
from mtcd.federation.node.asking import Answers, Questions
from mtcd.federation.node.log import Log, tidy
from mtcd.federation.node.mail import Asked, Mail
from mtcd.federation.node.parcels import unwrap, wrap

GIVEN_ORDER = "given order"
COMMON = ("federation", "parties", "links", "alignment", "standardise", "model", "method", "stop", "costs", "seed")


class Samples(Protocol):
    """A party's samples, as far as alignment is concerned."""

    @property
    def ids(self) -> Sequence[str]:
        """Of the samples; not asked for in the given order."""

    @property
    def samples(self) -> int:
        """How many."""


def agreement(config: KitConfig, purpose: str) -> str:
    """A digest of all that parties must agree on: kits of two different `federation init` do not work together."""
    content = {**config.model_dump(mode="json", include=set(COMMON)), "held_by": config.labels.held_by}
    text = json.dumps([purpose, config.seen_by, content], sort_keys=True)
    return blake2b(text.encode(), digest_size=16).hexdigest()


def agreed_rows(announcement: bytes, part: Samples) -> Sequence[int]:
    """From the ids that all have; or all rows, in the given order."""
    return rows_of(announcement, part.ids) if announcement else range(part.samples)


class Led:
    """The side of those who are led: it checks that the leader asks, and answers which samples are shared."""

    def __init__(self, mail: Mail, kit: Kit, leader: str, purpose: str, part: Samples | None, log: Log) -> None:
        self.mail, self.kit, self.leader, self.part, self.log = mail, kit, leader, part, log
        self._answering = False
        self.agreement = agreement(kit.config, purpose)
        if part is not None:
            mail.on("align", self._align)

    def read(self, asked: Asked, parts: int, *keys: str) -> tuple[dict[str, Any], list[bytes]]:
        """What the leader says."""
        if asked.sender != self.leader:
            raise WireError("sender", "does not lead here")
        head, found = unwrap(asked.body, ("agreement", *keys), parts)
        if head["agreement"] != self.agreement:
            problem = (
                "is another one: these kits are of two 'federation init', or one party trains and the other predicts"
            )
            raise WireError("agreement", f"{problem}, or both predict with blocks of different runs")
        return head, found

    def rows(self, announcement: bytes) -> Sequence[int]:
        """The rows that the leader names; in the given order it names none."""
        assert self.part is not None
        if (not announcement) != (self.kit.config.alignment == GIVEN_ORDER):
            raise WireError(
                "announcement", "of the common samples is missing, or there is one where there must be none"
            )
        return agreed_rows(announcement, self.part)

    def _align(self, asked: Asked) -> None:
        _, (request,) = self.read(asked, 1)
        part, kind = self.part, self.kit.config.alignment
        assert part is not None
        if kind == GIVEN_ORDER:
            asked.answer(json.dumps(part.samples).encode())
            return
        if self._answering:  # an earlier request, whose sender is gone: to be asked again
            asked.let_go()
            return
        self.log.say("align", f"{asked.sender} asks which samples we share ({kind}).")
        side = answerer(kind, part.ids, _secret(self.kit))
        self._answering = True

        def answered(response: bytes) -> None:
            self._answering = False
            asked.answer(response)

        def failed(error: MtcdError) -> None:
            self._answering = False
            self.mail.refuse(asked, "align", error)

        self.mail.loop.work(lambda: side.respond(request), answered, failed)


class Leader:
    """The side of the one who leads."""

    def __init__(self, questions: Questions, kit: Kit, purpose: str, part: Samples, log: Log) -> None:
        self.questions, self.kit, self.part, self.log = questions, kit, part, log
        self.me, self.agreement = kit.config.name, agreement(kit.config, purpose)
        self.others = [name for name in kit.config.parties if name != self.me]

    def wrapped(self, *parts: bytes, **head: Any) -> bytes:
        """As those who are led read it."""
        return wrap({"agreement": self.agreement, **head}, *parts)

    def align(self, then: Callable[[bytes], None]) -> None:
        """Find the common samples; ``then`` gets the announcement of them, empty in the given order."""
        kind = self.kit.config.alignment
        if kind == GIVEN_ORDER:
            same = dict.fromkeys(self.others, self.wrapped(b""))
            self.questions.ask("align", same, lambda answers: self._same_number(answers, then))
            return
        sides = {name: asker(kind, self.part.ids, _secret(self.kit)) for name in self.others}
        self.log.say("align", f"Aligning {self.part.samples} samples with {len(self.others)} parties ({kind}).")

        def requests() -> dict[str, bytes]:
            return {name: self.wrapped(side.request()) for name, side in sides.items()}

        def answered(answers: Answers) -> None:
            self.questions.loop.work(
                lambda: announce([_shared(name, sides[name], answer) for name, answer in answers.items()]), announced
            )

        def announced(announcement: bytes) -> None:
            count = len(agreed_rows(announcement, self.part))
            everybody = len(self.kit.config.parties)
            self.log.say("aligned", f"All {everybody} parties have {count} samples in common.", samples=count)
            then(announcement)

        self.questions.ask_when_made("align", self.others, requests, answered)

    def _same_number(self, answers: Answers, then: Callable[[bytes], None]) -> None:
        for name, answer in answers.items():
            if answer != json.dumps(self.part.samples).encode():
                told = tidy(answer[:20].decode(errors="replace"))
                raise DataError(
                    f"{name} has {told} samples, but {self.me} has {self.part.samples}: in the given order all need "
                    "the same. Align them by psi or hashed."
                )
        then(b"")


def _shared(name: str, side: Any, answer: bytes) -> set[str]:
    try:
        return set(side.shared(answer))
    except DataError as error:
        raise DataError(f"{name}: {error}") from None


def _secret(kit: Kit) -> bytes | None:
    return kit.alignment_secret() if kit.config.alignment == "hashed" else None
