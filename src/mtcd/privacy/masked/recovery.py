"""Double-masked uploads: the party itself continues without clients that are down, see
``double_client.py``.

It takes the place of ``Uploads``, whose server has the last upload of each client in the clear.
"""

from __future__ import annotations

from typing import Any

from mtcd.federation.delivery.policy import RecoveryPolicy
from mtcd.privacy.masked.double_server import DoubleMaskingServer
from mtcd.privacy.masked.payloads import DoubleMaskedUpload, OpenedMasks, PublicKey, SignedKey
from mtcd.protocol.codec.envelopes import Envelope
from mtcd.protocol.party import Message


class MaskedUploads:
    """Of one server. The policy calls its methods in place of its own."""

    kinds: tuple[type, ...] = (PublicKey, SignedKey, DoubleMaskedUpload, OpenedMasks)

    def __init__(self, policy: RecoveryPolicy, party: DoubleMaskingServer) -> None:
        self.policy, self.party = policy, party

    @property
    def waits_for(self) -> frozenset[int]:
        """The clients that are down and without which there is no sum."""
        # Who is down is known to the delivery, and may have changed since the last message.
        self._look()
        return self.party.waits_for()

    def snapshot(self, record: dict[str, Any]) -> dict[str, Any]:
        """The state is that of the party."""
        return record

    def restore(self, record: dict[str, Any] | None) -> None:
        """The party is restored before."""

    def receive(self, envelope: Envelope) -> list[Message]:
        """Process a key, an upload or the seeds of masks. Returns the reports for the monitor."""
        self._look()
        return self.policy.delivery.run_party(envelope)

    def complete_without_down(self) -> None:
        """A client is down: perhaps the others have all answered."""
        delivery = self.policy.delivery
        if delivery.ended is None:
            self._look()
            # Without the client that went down the sync may be complete: nobody else will say so.
            delivery.reports += delivery.send(self.party.advance(), None)
            delivery.commit()

    def route(self, message: Message) -> Message | None:
        """The party requests uploads from participants only."""
        return message

    def _look(self) -> None:
        self.party.down = self.policy.delivery.down
