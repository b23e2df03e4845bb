"""Wait: the policy of parties that cannot continue without a party that is down.

What accelerated tours, optimal sync and changing networks remember of earlier tours and syncs
cannot be undone by other parties, so their parties wait until all are up again. A client of SVFL
needs only the server.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from mtcd.federation.delivery.policy import RecoveryPolicy
from mtcd.protocol.codec.envelopes import End, Envelope
from mtcd.training.divergence import DIVERGED


class Wait(RecoveryPolicy):
    """Waits for parties that are down: all of them, or only those that this party ``needs``."""

    def __init__(self, needs: frozenset[int] | None = None) -> None:
        self.needs = needs

    @property
    def waits_for(self) -> frozenset[int]:
        down = self.delivery.down
        if self.needs is None:
            return down
        return down & self.needs


# In step: the policy of clients of which all take part in every iteration, as those of DCPA and
# Tree-CG.
#
# All must stop at the same iteration. A limit that counts iterations is reached by all at the
# same one. But a client that is asked to stop, or reaches a time limit, is the only one that
# knows. It then proposes an iteration that no client can have finished when the proposal arrives,
# and sends it to the clients with which it exchanges messages, which forward it. Envelopes from
# one sender are processed in order, so no client passes the proposed iteration unaware; which one
# that is depends on the method (`InStepClient.earliest_stop`). Of several proposals, the earliest
# iteration counts.


TIME_IS_UP = "seconds"


class InStepClient(Protocol):
    """What the policy asks of a client."""

    iteration: int
    """The one that it is in."""
    neighbours: Sequence[int]
    """The clients with which it exchanges messages."""

    def earliest_stop(self, clients: int) -> int:
        """An iteration that no client finishes before it has received a proposal that this client
        sends now.

        Parameters
        ----------
        clients
            K.
        """
        ...


class InStep(Wait):
    """The policy of a client."""

    def __init__(self, party: InStepClient) -> None:
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
        self._stop_at(End(status, 0, self.party.earliest_stop(self.delivery.clients)))

    def _stop_at(self, end: End) -> None:
        request = self.delivery.stop_request
        # The earliest counts. Forwarding only what is earlier ends the flood.
        if request is None or end.hop < request[1]:
            self.delivery.stop_request = end.status, end.hop
            for k in self.party.neighbours:
                self.delivery.send_control(k, end)
