"""In step: the policy, in a federation, of clients that exchange offers with their neighbours in every iteration
(DCPA).

All must stop at the same iteration. A limit that counts iterations is reached by all at the same
one. But a client that is asked to stop, or reaches a time limit, is the only one that knows. It
then proposes an iteration that no client can have finished when the proposal arrives, and sends it
to its neighbours, which forward it. Envelopes from one sender are processed in order, so no client
passes the proposed iteration unaware: the proposer is in iteration i and has sent no offer of the
next one, so a client d links away receives the proposal before it has finished iteration i + d. Of
several proposals, the earliest iteration counts.
"""

from __future__ import annotations

from typing import Any

from mtcd.federation.delivery.policy import RecoveryPolicy
from mtcd.federation.recovery.uploads import MakeUploads
from mtcd.federation.recovery.wait import Wait
from mtcd.methods.dcpa.dcpa import DCPAClient
from mtcd.protocol.codec.envelopes import End, Envelope
from mtcd.training.divergence import DIVERGED

TIME_IS_UP = "seconds"


def policy_of(number: int, party: Any, uploads: MakeUploads | None) -> RecoveryPolicy:
    """The policy of a client; DCPA has no server and no uploads."""
    return InStep(party)


class InStep(Wait):
    """The policy of a client of DCPA."""

    def __init__(self, party: DCPAClient) -> None:
        super().__init__()
        self.party = party

    def must_defer(self, envelope: Envelope) -> bool:
        """Until all earlier envelopes of its sender were processed."""
        # Gaps in the sequence: an earlier envelope is still under way, and may be a proposal to
        # stop.
        following, _ = self.delivery.seen.get(envelope.sender, (0, []))
        return envelope.sequence > following

    def finish(self, status: str) -> None:
        if status == DIVERGED:
            super().finish(status)
        else:
            self._propose(status)
            self.delivery.commit()

    def may_end(self, end: End) -> End | None:
        request = self.delivery.stop_request
        # The iteration that was agreed on, with the status of whoever proposed it.
        if request is not None and end.hop >= request[1]:
            return End(request[0], end.t, end.hop)
        # Only this client's clock says so. The others are asked to stop at an iteration that none
        # has reached.
        if end.status == TIME_IS_UP:
            self._propose(TIME_IS_UP)
            return None
        return end

    def receive_end(self, end: End, sender: int) -> None:
        if end.status == DIVERGED:
            super().receive_end(end, sender)
        elif self.delivery.ended is None:
            self._stop_at(end)

    def _propose(self, status: str) -> None:
        # K iterations ahead: no client is further away than K links.
        self._stop_at(End(status, 0, self.party.iteration + self.delivery.clients))

    def _stop_at(self, end: End) -> None:
        request = self.delivery.stop_request
        # The earliest counts. Forwarding only what is earlier ends the flood.
        if request is None or end.hop < request[1]:
            self.delivery.stop_request = end.status, end.hop
            for k in self.party.neighbours:
                self.delivery.send_control(k, end)
