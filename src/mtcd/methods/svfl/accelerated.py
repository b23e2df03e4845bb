"""Accelerated rounds of SVFL: what the server sends next is a combination of the last rounds.

With a token for each client, which makes one visit there and returns, a round is an iteration of
MTCD, and its acceleration at the sync is that of rounds. The token of client k carries, beside the
aggregate, the instruction of the server on its way down, and the inner products that the client
adds on its way up. So the parties are those of accelerated tours, whatever the acceleration, and
the iterates are those of MTCD with a cluster for each client.

It differs from MTCD in what is charged: a round has 2K messages with the server and no hop.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mtcd.methods.mtcd.checks import GRADIENT
from mtcd.methods.mtcd.mtcd import MTCD
from mtcd.methods.mtcd.plan import Plan
from mtcd.methods.prices import Prices
from mtcd.network.topology import Network

if TYPE_CHECKING:
    from mtcd.methods.svfl.svfl import SVFL


@dataclass(frozen=True)
class AcceleratedRounds(MTCD):
    """MTCD with a cluster for each client, whose visits end without a hop."""

    @property
    def kind(self) -> str:
        return "svfl"

    def describe_acceleration(self) -> str:
        """The acceleration with its depth and its local solver, for legends and tables."""
        kind = self._accelerated
        assert kind is not None
        shown = str(self.acceleration)
        if self.local_solver != GRADIENT:
            shown += f", {self.local_solver}"
        if kind.uses_depth and not self.chooses_steps:
            shown += f" (M={kind.most_starts(self)})"
        return shown

    def plan(self, samples: int, outputs: int, network: Network, seed: int) -> Plan:
        plan = super().plan(samples, outputs, network, seed)
        return replace(plan, charges_hops=False)

    def prices(self, network: Network, tokens: int = 1) -> Prices:
        return replace(super().prices(network, network.size), hops=0.0)


def accelerated_rounds(method: SVFL, clients: int | None = None) -> AcceleratedRounds:
    """The tokens whose syncs are the rounds of this method.

    Parameters
    ----------
    method
        The settings, with an acceleration.
    clients
        K; None to check the settings before there is a network.

    Raises
    ------
    ConfigError
        If the settings do not go together.
    """
    clusters = None
    if clients is not None:
        clusters = tuple((k,) for k in range(clients))

    return AcceleratedRounds(
        hops=1,
        local_updates=method.local_updates,
        stepsize=method.stepsize,
        batch=method.batch,
        combine="cluster",
        walk="tour",
        clusters=clusters,
        acceleration=method.acceleration,
        depth=method.depth,
        schedule=method.schedule,
        adaptive=method.adaptive,
        transport=method.transport,
        local_solver=method.local_solver,
        aggregation=method.aggregation,
    )
