"""Rounds: the policy of the server of SVFL in a federation, which continues without clients that
are down: see ``federation/recovery/uploads.py``. Clients wait for the server."""

from __future__ import annotations

from typing import Any

from mtcd.federation.delivery.policy import RecoveryPolicy, UploadRules
from mtcd.federation.recovery.uploads import MakeUploads, Uploads
from mtcd.federation.recovery.wait import Wait
from mtcd.methods.svfl.svfl import Shared, SVFLServer
from mtcd.protocol.codec.envelopes import Envelope
from mtcd.protocol.party import SERVER, Message


def policy_of(number: int, party: Any, uploads: MakeUploads | None) -> RecoveryPolicy:
    """The policy of the server, or of a client, which waits for the server."""
    if number == SERVER:
        return RoundServer(party, uploads)
    return Wait(needs=frozenset({SERVER}))


class RoundServer(RecoveryPolicy):
    """The policy of the server of SVFL.

    Parameters
    ----------
    party
        The server.
    uploads
        Makes what takes the place of ``Uploads``, given this policy, where the party around the
        server has the uploads; None where the server has them in the clear.
    """

    is_gathering = True
    uploads: UploadRules

    def __init__(self, party: SVFLServer, uploads: MakeUploads | None = None) -> None:
        self.party = party
        if uploads is None:
            self.uploads = Uploads(self, party, party.batches)
        else:
            self.uploads = uploads(self)

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

    def process(self, envelope: Envelope) -> list[Message]:
        return self.uploads.receive(envelope)

    def route(self, message: Message) -> Message | None:
        return self.uploads.route(message)

    def peer_lost(self, k: int) -> None:
        self.uploads.complete_without_down()
