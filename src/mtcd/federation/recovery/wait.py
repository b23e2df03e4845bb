"""Wait: the policy of parties that cannot continue without a party that is down.

What accelerated tours, optimal sync and changing networks remember of earlier tours and syncs
cannot be undone by other parties, so their parties wait until all are up again. A client of SVFL
needs only the server.
"""

from __future__ import annotations

from mtcd.federation.delivery.policy import RecoveryPolicy


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
