"""Before training: everybody finds the samples that all have, gets the labels, and agrees on the run.

The holder of the labels leads. It asks every other party, until it has an answer,

- ``align``: which samples do we share? (private set intersection, hashes, or just how many in the given order)
- ``prepare``: these are the samples that all have; what must I know to settle the step size?
- ``start``: the run with its number, step size and labels. The server gets its own: sizes, and the labels only where
  the federation file allows it.

What was agreed goes into the folder of each party before training. After a restart it is read from there. Whoever
restarts earlier is asked again, as nothing has happened yet.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Protocol

from mtcd.errors import ConfigError, DataError, WireError
from mtcd.federation.alignment import announce, answerer, asker, rows_of
from mtcd.federation.kit import Kit
from mtcd.federation.kit_schema import KitConfig
from mtcd.federation.names import SERVER
from mtcd.federation.node.log import Log, tidy
from mtcd.federation.node.loop import Loop
from mtcd.federation.node.mail import Asked, Mail
from mtcd.federation.node.parcels import unwrap, wrap

AGAIN = 0.3  # seconds until the next try
AGAIN_REFUSED = 3.0
GIVEN_ORDER = "given order"
COMMON = ("federation", "parties", "links", "alignment", "standardise", "model", "method", "stop", "costs", "seed")


class Part(Protocol):
    """What a party brings, and what the holder of the labels makes of all."""

    @property
    def ids(self) -> Sequence[str]:
        """Of the samples; not asked for in the given order."""

    @property
    def samples(self) -> int:
        """Rows of the table."""

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

    def rows(self, part: Part) -> Sequence[int]:
        """The rows that a party uses."""
        return agreed_rows(self.announcement, part)

    def packed(self) -> bytes:
        """As a block of bytes."""
        return wrap({"run": self.run, "told": self.told}, self.labels, self.announcement)

    @staticmethod
    def unpacked(data: bytes) -> Agreed:
        """From one."""
        head, (labels, announcement) = unwrap(data, ("run", "told"), 2)
        run = head["run"]
        if (
            not isinstance(run, str)
            or not 1 <= len(run) <= 64
            or not run.isalnum()
            or not isinstance(head["told"], dict)
        ):
            raise WireError("run", "is not the number of a run")
        return Agreed(run, head["told"], labels, announcement)


def agreement(config: KitConfig) -> str:
    """A digest of all that parties must agree on: kits of different foundings do not train together."""
    content = {**config.model_dump(mode="json", include=set(COMMON)), "held_by": config.labels.held_by}
    return blake2b(json.dumps(content, sort_keys=True).encode(), digest_size=16).hexdigest()


def agreed_rows(announcement: bytes, part: Part) -> Sequence[int]:
    """From the ids that all have; or all rows, in the given order."""
    if announcement:
        return rows_of(announcement, part.ids)
    return range(part.samples)


class Opening:
    """The side of those who are led: they answer. ``start`` is called once, with what was agreed."""

    def __init__(self, mail: Mail, kit: Kit, part: Part | None, log: Log, start: Callable[[Agreed], None]) -> None:
        self.kit, self.part, self.log, self.start = kit, part, log, start
        self.agreement = agreement(kit.config)
        self.agreed: Agreed | None = None
        for kind, handler in {"align": self._align, "prepare": self._prepare, "start": self._start}.items():
            mail.on(kind, handler)

    def _from_leader(self, asked: Asked, parts: int, *keys: str) -> tuple[dict[str, Any], list[bytes]]:
        if asked.sender != self.kit.config.labels.held_by:
            raise WireError("sender", "does not hold the labels, and so does not lead")
        head, found = unwrap(asked.body, ("agreement", *keys), parts)
        if head["agreement"] != self.agreement:
            raise WireError(
                "agreement", "is another one: the kits are of different foundings; ask the founder for new ones"
            )
        return head, found

    def _align(self, asked: Asked) -> None:
        _, (request,) = self._from_leader(asked, 1)
        part = self._part()
        kind = self.kit.config.alignment
        if kind == GIVEN_ORDER:
            asked.answer(json.dumps(part.samples).encode())
            return
        self.log.say("align", f"{asked.sender} asks which samples we share ({kind}).")
        asked.answer(answerer(kind, part.ids, _secret(self.kit)).respond(request))

    def _prepare(self, asked: Asked) -> None:
        _, (announcement,) = self._from_leader(asked, 1)
        part = self._part()
        asked.answer(part.facts(agreed_rows(announcement, part)))

    def _start(self, asked: Asked) -> None:
        _, (packed,) = self._from_leader(asked, 1)
        agreed = Agreed.unpacked(packed)
        if self.agreed is not None and self.agreed.run != agreed.run:
            raise ConfigError(
                f"{self.kit.config.name} is in another run: start it with a new folder (--out) for a new one."
            )
        if self.agreed is None:
            self.agreed = agreed
            self.start(agreed)
        asked.answer()

    def _part(self) -> Part:
        if self.part is None:
            raise WireError("receiver", "is the server, which has no samples")
        return self.part


class Leading:
    """The side of the holder of the labels. ``start`` is called once; then the others are told to start too."""

    def __init__(
        self, mail: Mail, loop: Loop, kit: Kit, part: Part, log: Log, start: Callable[[Agreed], None], told: set[str]
    ) -> None:
        self.mail, self.loop, self.kit, self.part, self.log, self.start = mail, loop, kit, part, log, start
        self.me, self.agreement = kit.config.name, agreement(kit.config)
        self.others = [name for name in kit.config.parties if name != self.me]
        self.told = told
        """Who has confirmed that it starts: one that has, and forgot, must not start again from nothing."""
        self.waits_for: set[str] = set()

    def lead(self) -> None:
        """Begin with the samples."""
        kind, config = self.kit.config.alignment, self.kit.config
        if kind == GIVEN_ORDER:
            requests = dict.fromkeys(self.others, b"")
            self._ask_all("align", requests, self._same_number)
            return
        sides = {name: asker(kind, self.part.ids, _secret(self.kit)) for name in self.others}
        self.log.say("align", f"Aligning {self.part.samples} samples with {len(self.others)} parties ({kind}).")

        def answered(answers: dict[str, bytes]) -> None:
            shared = [self._shared(name, sides[name], answer) for name, answer in answers.items()]
            announcement = announce(shared)
            count = len(agreed_rows(announcement, self.part))
            self.log.say("aligned", f"All {len(config.parties)} parties have {count} samples in common.", samples=count)
            self._prepare(announcement)

        self._ask_all("align", {name: side.request() for name, side in sides.items()}, answered)

    def tell(self, agreed: Agreed) -> None:
        """Tell everybody who has not confirmed it to start."""
        config = self.kit.config
        packed = agreed.packed()
        requests = dict.fromkeys(self.others, packed)
        if SERVER in config.peers:
            labels = agreed.labels if "server" in config.labels.shared_with else b""
            requests[SERVER] = Agreed(agreed.run, agreed.told, labels, b"").packed()
        requests = {name: body for name, body in requests.items() if name not in self.told}
        self._ask_all("start", requests, lambda _: None, lambda name: self.told.add(name))

    def _shared(self, name: str, side: Any, answer: bytes) -> set[str]:
        try:
            return set(side.shared(answer))
        except DataError as error:
            raise DataError(f"{name}: {error}") from None

    def _same_number(self, answers: dict[str, bytes]) -> None:
        for name, answer in answers.items():
            if answer != json.dumps(self.part.samples).encode():
                raise DataError(
                    f"{name} has {tidy(answer[:20].decode())} samples, but {self.me} has {self.part.samples}: "
                    "in the given order all need the same. Align them by psi or hashed."
                )
        self._prepare(b"")

    def _prepare(self, announcement: bytes) -> None:
        def answered(answers: dict[str, bytes]) -> None:
            rows = agreed_rows(announcement, self.part)
            told, labels = self.part.settle(rows, {self.me: self.part.facts(rows), **answers})
            agreed = Agreed(secrets.token_hex(8), told, labels, announcement)
            self.start(agreed)
            self.tell(agreed)

        self._ask_all("prepare", dict.fromkeys(self.others, announcement), answered)

    def _ask_all(
        self,
        kind: str,
        bodies: dict[str, bytes],
        then: Callable[[dict[str, bytes]], None],
        each: Callable[[str], None] = lambda name: None,
    ) -> None:
        """Ask everybody, again and again; ``then`` has all answers, in the order of the parties."""
        answers: dict[str, bytes] = {}
        self.waits_for = set(bodies)
        if not bodies:
            then(answers)

        def ask(name: str) -> None:
            body = wrap({"agreement": self.agreement}, bodies[name])
            self.mail.ask(name, kind, body, lambda answer, why: heard(name, answer, why))

        def heard(name: str, answer: bytes | None, why: str) -> None:
            if answer is None:
                if why:
                    self.log.now_and_then(("waiting", kind, name, why), f"{name} does not {kind}: {why}")
                self.loop.later(AGAIN_REFUSED if why else AGAIN, lambda: ask(name))
                return
            answers[name] = answer
            self.waits_for.discard(name)
            each(name)
            if len(answers) == len(bodies):
                then({one: answers[one] for one in bodies})

        for name in bodies:
            ask(name)


def _secret(kit: Kit) -> bytes | None:
    return kit.alignment_secret() if kit.config.alignment == "hashed" else None
