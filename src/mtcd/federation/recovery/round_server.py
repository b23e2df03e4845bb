"""Rounds: the policy of a server such as that of SVFL, which continues without clients that are down: see
``uploads.py``."""

from __future__ import annotations

from typing import Any, Protocol

from mtcd.federation.delivery.policy import RecoveryPolicy
from mtcd.federation.recovery.uploads import KeptUploads, MakeUploads, Summing, Uploads
from mtcd.protocol.batches import Batches
from mtcd.protocol.codec.envelopes import Envelope
from mtcd.protocol.party import Message


class RoundsServer(Summing, Protocol):
    """The server of a method whose rounds take an upload of every client (``Recovery.ROUNDS``)."""

    batches: Batches
    round: int

    def absent(self, round_: int) -> frozenset[int]:
        """The clients that are absent in a round."""

    def request(self, client: int) -> Message:
        """The aggregate of the round for a client."""


class RoundServer(RecoveryPolicy):
    """The policy of a server of rounds; ``uploads`` makes what keeps them, where this is not
    recovery's own."""

    is_gathering = True

    def __init__(self, party: RoundsServer, uploads: MakeUploads | None = None) -> None:
        self.party = party
        self.uploads: KeptUploads = (
            Uploads(self, party, party.batches) if uploads is None else uploads(self)
        )

    @property
    def waits_for(self) -> frozenset[int]:
        return self.uploads.waits_for

    @property
    def now(self) -> int:
        """The round whose uploads are requested."""
        return self.party.round

    @property
    def left(self) -> frozenset[int]:
        """The clients that have left as planned."""
        return self.party.absent(self.party.round)

    def request(self, client: int) -> Message:
        """The aggregate, to which the client answers with an upload."""
        return self.party.request(client)

    def batch_of(self, iteration: int) -> int:
        """The upload of a round is for the batch of the next one."""
        return iteration + 1

    def snapshot(self, record: dict[str, Any]) -> dict[str, Any]:
        return self.uploads.snapshot(record)

    def restore(self, record: dict[str, Any] | None) -> None:
        self.uploads.restore(record)

    def process(self, envelope: Envelope) -> list[Message]:
        return self.uploads.receive(envelope)

    def route(self, message: Message) -> Message | None:
        return self.uploads.route(message)

    def peer_lost(self, k: int) -> None:
        self.uploads.complete_without_down()
