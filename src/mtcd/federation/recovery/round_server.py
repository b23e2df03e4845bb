"""Rounds: the policy of the server of SVFL, which continues without clients that are down: see ``uploads.py``."""

from __future__ import annotations

from typing import Any

from mtcd.federation.delivery.envelopes import Envelope
from mtcd.federation.delivery.policy import RecoveryPolicy
from mtcd.federation.recovery.uploads import Uploads
from mtcd.methods.svfl import Shared, SVFLServer
from mtcd.protocol.gathering import Fresh
from mtcd.protocol.party import SERVER, Message


class RoundServer(RecoveryPolicy):
    """The policy of the server of SVFL."""

    is_gathering = True

    def __init__(self, party: SVFLServer) -> None:
        self.party, self.uploads = party, Uploads(self, party, party.batches)

    @property
    def waits_for(self) -> frozenset[int]:
        """The server needs at least one client."""
        down = self.delivery.down
        return down if len(down) == self.party.clients else frozenset()

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
        upload = envelope.message.payload
        assert isinstance(upload, Fresh)
        return self.uploads.receive(envelope, upload)

    def route(self, message: Message) -> Message | None:
        return self.uploads.route(message)

    def peer_lost(self, k: int) -> None:
        self.uploads.complete_without_down()
