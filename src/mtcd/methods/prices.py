"""What an iteration of a method costs, and when its iterations add up to a sync or an epoch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mtcd.protocol.batches import Batches
from mtcd.protocol.ledger.costs import UNIT, Costs, Sizes

Beside = Callable[[Costs, Sizes], float]
"""The cost of messages of other sizes, at these prices."""


def nothing(costs: Costs, sizes: Sizes) -> float:
    """No message of another size is sent."""
    return 0.0


@dataclass(frozen=True)
class Prices:
    """The messages that an iteration is charged for, as the paper counts them.

    An iteration is a sync, a round or an exchange; of STCD, a hop.

    Parameters
    ----------
    uplinks, downlinks
        Messages to the server, and from it.
    hops
        Messages between clients.
    beside
        The cost of messages of other sizes, such as those that open masks.

    Examples
    --------
    >>> Prices(uplinks=2, downlinks=2, hops=50).iteration(Costs(ratio=100))
    4.5
    """

    uplinks: float = 0.0
    downlinks: float = 0.0
    hops: float = 0.0
    beside: Beside = nothing

    def iteration(self, costs: Costs, sizes: Sizes = UNIT) -> float:
        """The cost of an iteration.

        Parameters
        ----------
        costs
            What a message, or a number in it, costs on each kind of link.
        sizes
            The numbers in a message, for costs per number.
        """
        # As the paper counts: a message with the server has a price of its own, whichever way it goes.
        server = self.uplinks * costs.with_server(sizes.uplink)
        server += self.downlinks * costs.with_server(sizes.downlink)
        return server + self.hops * costs.between_clients(sizes.hop) + self.beside(costs, sizes)


@dataclass(frozen=True)
class Timeline:
    """How iterations, as histories count them, add up.

    Parameters
    ----------
    batch
        The samples of a mini-batch; None for all.
    hops_per_sync
        Iterations from one sync, or round, to the next.

    Examples
    --------
    >>> Timeline(batch=5, hops_per_sync=8).epoch(samples=20)
    32
    """

    batch: int | None = None
    hops_per_sync: int = 1

    def epoch(self, samples: int) -> int:
        """Iterations per epoch, a pass over all samples; with the full batch, per sync."""
        # The seed decides which samples are in a batch, not how many batches there are.
        return Batches(samples, self.batch, 0).per_epoch * self.hops_per_sync
