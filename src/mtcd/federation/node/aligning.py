"""Sample alignment before training or predicting: one party leads and sends requests, the others
follow and answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any, Protocol

from mtcd.core.errors import DataError, MtcdError, WireError
from mtcd.federation.alignment import announce, rows_of
from mtcd.federation.credentials.bundle import Bundle
from mtcd.federation.credentials.bundle_schema import BundleConfig
from mtcd.federation.node.chunks import unwrap, wrap
from mtcd.federation.node.link import IncomingRequest
from mtcd.federation.node.log import Log, tidy
from mtcd.federation.node.rpc import Answers, Rpc, RpcClient
from mtcd.federation.psi_process import AlignmentProgress, answerer_apart, asker_apart

GIVEN_ORDER = "given order"
COMMON = (
    "federation",
    "parties",
    "links",
    "alignment",
    "standardise",
    "model",
    "method",
    "stop",
    "costs",
    "seed",
)


class Samples(Protocol):
    """The samples of a party."""

    @property
    def ids(self) -> Sequence[str]:
        """The ids of the samples; unused with ``alignment: given order``."""

    @property
    def samples(self) -> int:
        """The number of samples."""


def agreement(config: BundleConfig, purpose: str) -> str:
    """A digest of all settings on which parties must agree: bundles of different `federation init`
    do not mix."""
    # Not all of the config: names of columns and addresses are each party's own affair.
    content = {
        **config.model_dump(mode="json", include=set(COMMON)),
        "held_by": config.labels.held_by,
    }
    if config.holdout is not None:
        content["holdout"] = config.holdout
    if config.privacy is not None:
        content["privacy"] = config.privacy.model_dump(mode="json")
    # Sorted keys: two processes must write the same text for the same settings.
    text = json.dumps([purpose, config.seen_by, content], sort_keys=True)
    return blake2b(text.encode(), digest_size=16).hexdigest()


def agreed_rows(announcement: bytes, part: Samples) -> Sequence[int]:
    """The rows of the announced common ids; with ``alignment: given order``, all rows."""
    if not announcement:
        return range(part.samples)
    return rows_of(announcement, part.ids)


class AlignmentFollower:
    """A follower of the alignment: checks that requests come from the leader, and answers them."""

    def __init__(
        self, rpc: Rpc, bundle: Bundle, leader: str, purpose: str, part: Samples | None, log: Log
    ) -> None:
        self.rpc, self.bundle, self.leader, self.part, self.log = rpc, bundle, leader, part, log
        self._answering = False
        self.progress = AlignmentProgress()
        self.agreement = agreement(bundle.config, purpose)
        if part is not None:
            rpc.on("align", self._align)

    def read(
        self, request: IncomingRequest, parts: int, *keys: str, more: int = 0
    ) -> tuple[dict[str, Any], list[bytes]]:
        """Decode a request of the leader, and check the agreement digest."""
        # Only the leader: anybody else could ask for the common samples with ids of its own choice.
        if request.sender != self.leader:
            raise WireError("sender", "is not the leader")
        head, found = unwrap(request.body, ("agreement", *keys), parts, more)
        if head["agreement"] != self.agreement:
            problem = (
                "is another one: the bundles come from different 'federation init', one party "
                "trains and the other"
            )
            raise WireError(
                "agreement", f"{problem} predicts, or both predict with blocks of different runs"
            )
        return head, found

    def rows(self, announcement: bytes) -> Sequence[int]:
        """The rows that the leader announces; with ``alignment: given order`` the announcement is
        empty."""
        assert self.part is not None
        # Empty for given order, and only for it: a leader could otherwise choose rows by their
        # numbers.
        if (not announcement) != (self.bundle.config.alignment == GIVEN_ORDER):
            raise WireError(
                "announcement",
                "of the common samples does not fit the alignment of this federation",
            )
        return agreed_rows(announcement, self.part)

    def _align(self, request: IncomingRequest) -> None:
        _, (blinded,) = self.read(request, 1)
        part, kind = self.part, self.bundle.config.alignment
        assert part is not None
        if kind == GIVEN_ORDER:
            request.answer(json.dumps(part.samples).encode())
            return
        if self._answering:  # an earlier request is in progress: the leader retries
            request.drop()
            return
        self.log.say("align", f"Aligning samples with {request.sender} ({kind}).")
        # In a thread: blinding ids takes seconds, and the loop must answer the operator meanwhile.
        side = answerer_apart(kind, part.ids, _secret(self.bundle), self.progress)
        self._answering = True

        def answered(response: bytes) -> None:
            self._answering = False
            request.answer(response)

        def failed(error: MtcdError) -> None:
            self._answering = False
            self.rpc.refuse(request, "align", error)

        self.rpc.loop.work(lambda: side.respond(blinded), answered, failed)


class AlignmentLeader:
    """The leader of the alignment."""

    def __init__(
        self, rpc_client: RpcClient, bundle: Bundle, purpose: str, part: Samples, log: Log
    ) -> None:
        self.rpc_client, self.bundle, self.part, self.log = rpc_client, bundle, part, log
        self.me, self.agreement = bundle.config.name, agreement(bundle.config, purpose)
        self.others = [name for name in bundle.config.parties if name != self.me]
        self.progress = AlignmentProgress()

    def wrapped(self, *parts: bytes, **head: Any) -> bytes:
        """Encode a request to the followers, with the agreement digest."""
        return wrap({"agreement": self.agreement, **head}, *parts)

    def align(self, then: Callable[[bytes], None]) -> None:
        """Find the common samples, and call ``then`` with their announcement (empty with ``given
        order``)."""
        kind = self.bundle.config.alignment
        if kind == GIVEN_ORDER:
            same = dict.fromkeys(self.others, self.wrapped(b""))
            self.rpc_client.ask("align", same, lambda answers: self._same_number(answers, then))
            return
        secret = _secret(self.bundle)
        # A side for each party, which remembers what was asked of it until the answer is there.
        sides = {
            name: asker_apart(kind, self.part.ids, secret, self.progress) for name in self.others
        }
        self.log.say(
            "align",
            f"Aligning {self.part.samples} samples with {len(self.others)} parties ({kind}).",
        )

        def requests() -> dict[str, bytes]:
            return {name: self.wrapped(side.request()) for name, side in sides.items()}

        def answered(answers: Answers) -> None:
            def found() -> bytes:
                shared = [_shared(name, sides[name], answer) for name, answer in answers.items()]
                return announce(shared)

            self.rpc_client.loop.work(found, announced)

        def announced(announcement: bytes) -> None:
            count = len(agreed_rows(announcement, self.part))
            parties = len(self.bundle.config.parties)
            self.log.say(
                "aligned", f"All {parties} parties have {count} samples in common.", samples=count
            )
            then(announcement)

        self.rpc_client.ask_when_made("align", self.others, requests, answered)

    def _same_number(self, answers: Answers, then: Callable[[bytes], None]) -> None:
        for name, answer in answers.items():
            # The text of a number, compared as it is: an answer that is no number differs too.
            if answer != json.dumps(self.part.samples).encode():
                reported = tidy(answer[:20].decode(errors="replace"))
                raise DataError(
                    f"{name} has {reported} samples, but {self.me} has {self.part.samples}: with "
                    "'alignment: given order' all tables need the same samples. Use alignment: "
                    "psi or hashed."
                )
        then(b"")


def _shared(name: str, side: Any, answer: bytes) -> set[str]:
    try:
        return set(side.shared(answer))
    except DataError as error:
        raise DataError(f"{name}: {error}") from None


def _secret(bundle: Bundle) -> bytes | None:
    # Only this kind needs it: it is not derived where nothing depends on it.
    if bundle.config.alignment != "hashed":
        return None
    return bundle.alignment_secret()
