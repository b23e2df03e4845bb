"""A token per cluster, and a sync that minimises f over what every cluster has changed in the last
syncs:

    theta^{t+1} = argmin of f(theta^t + sum_gamma sum_i w_{gamma,i} delta_gamma^(i))

delta_gamma^(i) is what token gamma changed in sync t - i, in its own cluster. ``combine: optimal``
has one weight for each token, and an acceleration one for each sync: the server has seen Gamma
changes at each of them, and here none is added up before it is weighed.

The loss follows from the tokens. Clusters share no client, so the penalty's inner products of
changes of two clusters are 0, and each token brings those of its own: 2M + 2 numbers for M syncs.
The server sends each token the weights of its own cluster, M + 1 numbers; a client applies them at
its next visit to the changes that it remembers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from mtcd.core.arrays import Array
from mtcd.core.errors import ConfigError
from mtcd.methods.cluster_memory.parties import MemoryClient, MemoryServer, syncs_kept
from mtcd.methods.cluster_memory.slots import SUMS, WEIGHTS
from mtcd.methods.mtcd.combine.rule import RULES, Combine
from mtcd.methods.mtcd.features import Roles
from mtcd.methods.mtcd.plan import Plan
from mtcd.methods.mtcd.roaming import Roaming
from mtcd.network.tours import closed_walk
from mtcd.protocol.codec.limits import Bounds
from mtcd.protocol.model import ClientModel, Problem

if TYPE_CHECKING:
    from mtcd.methods.mtcd.mtcd import MTCD
    from mtcd.methods.planned import PlanSetting

NEARLY_SOLVED = 20
"""Q on the upper bound of f that the planner tries beside Newton's steps."""
LONGEST_EVENED = 40
"""Where tours are longer, the search for even ones takes seconds."""


@RULES.register("memory")
class ClusterMemory(Combine):
    """The weights that minimise f, one for each cluster and sync. A variant of ours, without a
    theorem."""

    one_visitor = True
    never_raises = True
    server_chooses = True
    whole_tours = True
    planned = frozenset({"clustered"})

    def weight(self, visitors: int, tokens: int) -> float:
        raise NotImplementedError("the server chooses the weights, sync by sync")

    @classmethod
    def tried(cls, method: MTCD, setting: PlanSetting) -> Iterator[MTCD]:
        """Blocks that are solved, or all but solved: a sync mends how clusters go together, not
        what a visit has left. In clusters of even tours, where these are shorter."""
        if setting.nonsmooth:  # the rule needs a smooth penalty
            return

        method = replace(_evened(method, setting), stepsize=setting.alone)
        yield replace(method, local_solver="newton")
        yield replace(method, local_updates=NEARLY_SOLVED, local_solver="majorise")

    @classmethod
    def roles(cls) -> Roles:
        return MemoryRoles()


def _evened(method: MTCD, setting: PlanSetting) -> MTCD:
    """The method in balanced clusters, if their longest tour is shorter, and to search for them is
    quick."""
    assert method.hops is not None
    if method.clusters != "auto" or method.hops > LONGEST_EVENED:
        return method

    even = replace(method, clusters="balanced")
    clusters = even.token_clusters(setting.network, setting.seed)
    assert clusters is not None
    longest = max(len(closed_walk(setting.network, cluster)) for cluster in clusters)
    if longest >= method.hops:
        return method
    return replace(even, hops=longest)


class MemoryRoles(Roles):
    """Makes the parties of a run with this rule."""

    def check(self, problem: Problem) -> None:
        """Reject a penalty whose minimum the inner products do not tell."""
        if problem.nonsmooth:
            raise ConfigError(
                "method.combine: memory needs a smooth penalty: use combine: optimal with l1."
            )

    def bounds(self, bounds: Bounds, plan: Plan) -> Bounds:
        """A token has the weights of its cluster; the end of a training tells those of all."""
        kept = syncs_kept(plan.tokens)
        limits = {"cluster weights": plan.tokens * (kept + 1), "cluster sums": 2 * kept + 2}
        return bounds.with_slots(WEIGHTS.name, SUMS.name, **limits)

    def client(self, number: int, model: ClientModel, plan: Plan) -> MemoryClient:
        """The party of client k, which remembers what it has changed."""
        return MemoryClient(number, model, plan)

    def server(self, clients: int, plan: Plan, problem: Problem) -> MemoryServer:
        """The party that chooses the weights."""
        check_visits(plan)
        return MemoryServer(clients, plan, problem)

    @staticmethod
    def gather(clients: Sequence[MemoryClient], server: MemoryServer) -> list[Array]:
        """The model: clients apply the weights of a sync at their next visit."""
        return [client.at_sync(server.t, server.weights) for client in clients]


def check_visits(plan: Plan) -> None:
    """Reject walks on which a client might miss the weights of a sync: nobody keeps them for it."""
    if type(plan.roaming) is not Roaming:
        raise ConfigError(
            "method.combine: memory needs all clients in every sync: leave network.changes out, or "
            "use combine: cluster."
        )

    assert plan.hops is not None
    for walk in plan.roaming.all_walks():
        if not walk.repeats or walk.length is None:
            raise ConfigError(
                "method.combine: memory needs a walk that visits every client of its cluster "
                "between two syncs: set walk: tour."
            )
        if plan.hops < walk.length:
            raise ConfigError(
                f"method.hops is {plan.hops}, but the longest tour of a cluster has at least "
                f"{walk.length}: combine: memory needs a whole tour between two syncs."
            )
