"""Optimal sync: the server chooses the weights that minimise f, see ``methods/optimal_weights.py``."""

from __future__ import annotations

from collections.abc import Sequence

from mtcd.core.arrays import Array
from mtcd.methods.mtcd.client import Plan
from mtcd.methods.mtcd.combine.rule import RULES, Combine
from mtcd.methods.mtcd.server import opening
from mtcd.methods.optimal_sync.parties import OptimalClient, OptimalServer
from mtcd.protocol.model import Problem
from mtcd.protocol.party import OnDemand, Parties


@RULES.register("optimal")
class Optimal(Combine):
    """The weights that minimise f, one for each token. A variant of ours, without a theorem."""

    never_raises = True
    server_chooses = True
    planned = frozenset({"crossing", "clustered"})

    def weight(self, visitors: int, tokens: int) -> float:
        raise NotImplementedError("the server chooses the weights, sync by sync")

    def parties(self, problem: Problem, clients: int, plan: Plan) -> Parties:
        """The parties; ``gather`` computes the model from clients and server together."""
        hosts = OnDemand(clients, lambda k: OptimalClient(k, problem.client(k), plan))
        server = OptimalServer(clients, plan, problem)
        return Parties(hosts, server, opening(server, hosts, problem), gather=_gather)


def _gather(clients: Sequence[OptimalClient], server: OptimalServer) -> list[Array]:
    return [client.after_sync(server.past) for client in clients]
