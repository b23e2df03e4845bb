"""Optimal sync: the server chooses the weights that minimise f, see ``methods/optimal_weights.py``."""

from __future__ import annotations

from collections.abc import Sequence

from mtcd.core.arrays import Array
from mtcd.methods.mtcd.combine.rule import RULES, Combine
from mtcd.methods.mtcd.features import Roles
from mtcd.methods.mtcd.plan import Plan
from mtcd.methods.optimal_sync.parties import OptimalClient, OptimalServer
from mtcd.methods.optimal_sync.tally import TALLY
from mtcd.methods.past_weights import PAST
from mtcd.protocol.codec.limits import Bounds
from mtcd.protocol.model import ClientModel, Problem


@RULES.register("optimal")
class Optimal(Combine):
    """The weights that minimise f, one for each token. A variant of ours, without a theorem."""

    never_raises = True
    server_chooses = True
    planned = frozenset({"crossing", "clustered"})

    def weight(self, visitors: int, tokens: int) -> float:
        raise NotImplementedError("the server chooses the weights, sync by sync")

    @classmethod
    def roles(cls) -> Roles:
        return OptimalSync()


class OptimalSync(Roles):
    """Makes the parties of a run with optimal sync."""

    def bounds(self, bounds: Bounds, plan: Plan) -> Bounds:
        """Tokens carry inner products with the changes of all tokens, and weights of past syncs."""
        return bounds.with_slots(
            PAST.name, TALLY.name, products=plan.tokens, past=bounds.clients, visited=bounds.clients
        )

    def client(self, number: int, model: ClientModel, plan: Plan) -> OptimalClient:
        """The party of client k, which combines its copies once it knows the weights."""
        return OptimalClient(number, model, plan)

    def server(self, clients: int, plan: Plan, problem: Problem) -> OptimalServer:
        """The party that chooses the weights."""
        return OptimalServer(clients, plan, problem)

    @staticmethod
    def gather(clients: Sequence[OptimalClient], server: OptimalServer) -> list[Array]:
        """The model: clients hold their copies until they know the weights, which the server has."""
        return [client.after_sync(server.past) for client in clients]
