"""Rounds: the policy of the server of SVFL, which continues without clients that are down: see
``uploads.py``."""

from __future__ import annotations

from typing import Any

from mtcd.federation.delivery.policy import RecoveryPolicy
from mtcd.federation.recovery.uploads import Uploads
from mtcd.methods.svfl.svfl import Shared, SVFLServer
from mtcd.privacy.masked.double_server import DoubleMaskingServer
from mtcd.privacy.masked.recovery import MaskedUploads
from mtcd.protocol.codec.envelopes import Envelope
from mtcd.protocol.party import SERVER, Message


class RoundServer(RecoveryPolicy):
    """The policy of the server of SVFL; ``masked``: the party around it, if uploads have double
    masks."""

    is_gathering = True

    def __init__(self, party: SVFLServer, masked: DoubleMaskingServer | None = None) -> None:
        self.party = party
        self.uploads = (
            Uploads(self, party, party.batches) if masked is None else MaskedUploads(self, masked)
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
        aggregate = self.party.aggregate
        return Message(SERVER, client, Shared(self.now, aggregate), aggregate.size)

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
