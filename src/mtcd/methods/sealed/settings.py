"""Sealed tours as a method: ``mtcd`` (the server keeps the key) or ``stcd`` (the label holder does) in sealed mode."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import networkx as nx
import numpy as np

from mtcd.arrays import Array
from mtcd.data.sparse import is_sparse
from mtcd.errors import ConfigError, DataError
from mtcd.ledger.costs import UNIT, Costs, Sizes
from mtcd.methods.method import Method, check_connected
from mtcd.methods.roaming import Roaming, plan_roaming
from mtcd.methods.sealed.client import LabelHolder, SealedClient
from mtcd.methods.sealed.holder import LoneHolder, SealedServer
from mtcd.methods.sealed.payloads import NextTour, SealedAnswer, SealedEnd, SealedKeys, SealedRequest, SealedToken
from mtcd.methods.sealed.plan import MakeKey, SealedPlan, beside
from mtcd.model.linear import LinearProblem
from mtcd.network.topology import Network
from mtcd.objective.weighted import Weighted
from mtcd.privacy import DP
from mtcd.protocol.model import Problem
from mtcd.protocol.party import MONITOR, Client, Message, OnDemand, Parties, Party, Progress
from mtcd.schema.bounds import Bounds
from mtcd.sealing.cipher import SchemeName
from mtcd.sealing.parameters import SECURE_BITS, choose_parameters
from mtcd.theory.stepsize import Smoothness, StepsizeRule

FEWEST_ROWS = 10
PRIME_BYTES = 7  # of a coefficient modulo one prime, on the wire
MOST_BYTES = 1_048_576  # of one ciphertext: two polynomials of degree 16384, four primes of eight bytes each
MOST_KEY_BYTES = 8_388_608  # of public keys: those of the largest ring have 5.5 MiB
HEADER = 4096  # bytes of a ciphertext beside its polynomials, and some to spare
DEPTH = 20


@dataclass(frozen=True)
class SealedTours(Method):
    """Tours of one encrypted token: see docs/privacy.md. ``server``: whether a server keeps the key.

    ``holder`` is the label holder, by number, where tours begin and end. ``scheme`` is the cipher: 'bfv', or 'clear'
    for tests, which hides nothing.
    """

    server: bool = True
    walk: str = "tour"
    depth: int = DEPTH
    holder: int = 0
    scheme: SchemeName = "bfv"

    stepsize = None
    local_updates = 1
    batch = None
    gradient_steps = False
    steps = "each update is the minimum of a bound of f over the block, each tour starts at the best mix of the last"

    @property
    def kind(self) -> str:
        return "mtcd" if self.server else "stcd"

    @property
    def has_server(self) -> bool:  # type: ignore[override]
        """Whether a server keeps the key."""
        return self.server

    @property
    def reads_objective(self) -> bool:
        return False

    def describe(self) -> str:
        return f"Sealed tours, M={self.depth}, key at the {'server' if self.server else 'label holder'}"

    def with_stepsize(self, stepsize: float) -> SealedTours:
        return self  # it has none

    def stepsize_limit(self, smoothness: Smoothness) -> StepsizeRule:
        raise ConfigError("Sealed tours have no step size: each update is the minimum of a bound of f over the block.")

    def sealed(self, dp: DP | None = None) -> SealedTours:
        if dp is not None:
            raise ConfigError("privacy.dp: give mtcd.MTCD(walk='tour') as the method.")
        return self

    def resolved_stepsize(self) -> float:
        """1: each update goes all the way to the minimum of the bound."""
        return 1.0

    def check_network(self, network: Network) -> None:
        check_connected(network, "privacy.mode: sealed")
        if network.size < 2:
            raise ConfigError("privacy.mode: sealed needs two clients or more: one alone has nobody to hide from.")
        if network.changes:
            raise ConfigError("privacy.mode: sealed is not for networks that change (network.changes).")

    def check_problem(self, problem: Problem) -> None:
        if not isinstance(problem, LinearProblem):
            raise ConfigError("privacy.mode: sealed is for linear models only.")
        if isinstance(problem.loss, Weighted):
            raise ConfigError("privacy.mode: sealed takes no weights of samples or classes: leave them out.")
        if not problem.loss.separable or problem.outputs != 1:
            raise ConfigError(
                "privacy.mode: sealed needs a loss of the form a(z) - y z with one number per sample: ridge, linear "
                "or logistic."
            )
        if problem.nonsmooth:
            raise ConfigError("privacy.mode: sealed needs a smooth penalty: set model.l1 to 0.")
        for k, X in enumerate(problem.blocks):
            check_columns(X, f"client {k}", problem.penalties[k].free)

    def notes(self, network: Network) -> tuple[str, ...]:
        if self.server:
            return ("Sealed: the server keeps the key; it learns the scores of samples that it cannot name.",)
        return (
            "Sealed without a server: the label holder keeps the key and learns the others' scores, so training ends "
            "after at most half as many tours as the smallest other party has columns. With a server it need not.",
        )

    def most_iterations(self, problem: Problem) -> int | None:
        if self.server or not isinstance(problem, LinearProblem) or len(problem.blocks) < 2:
            return None
        return self.most_tours(self.sizes_of(problem))

    def most_tours(self, sizes: SealedSizes) -> int | None:
        """Without a server: half of the smallest d_k of the others, after which it would learn their column space."""
        return None if self.server else sizes.most_tours

    def in_federation(self, holder: int) -> SealedTours:
        """The same in a federation, where this client holds the labels."""
        return replace(self, holder=holder)

    def iteration_cost(self, network: Network, tokens: int, costs: Costs, sizes: Sizes = UNIT) -> float:
        length, K = self._roaming(network, 0)[1], network.size  # no mutants: of the same length with any seed
        hops = length * costs.between_clients(sizes.hop)
        if self.server:  # K requests and the token up; K answers and the token, in half of the bytes, down
            visits = K * (costs.with_server(sizes.uplink) + costs.with_server(1.0))
            return hops + visits + costs.with_server(2 * sizes.uplink) + costs.with_server(sizes.downlink)
        ways = sum(len(way) - 1 for way in _ways(network, self.holder).values())
        return hops + ways * (costs.between_clients(sizes.uplink) + costs.between_clients(1.0))

    def sizes(self, samples: int, outputs: int, network: Network, seed: int) -> Sizes:
        """In numbers of eight bytes: of a request, of the token as the server sends it, and as a client does."""
        p = choose_parameters(self.token_numbers(samples), (1,), 2 * (network.size + 2))  # no mutants: for the ring
        token = 2 * p.degree * PRIME_BYTES * (len(p.modulus_bits) - 1) * p.layout().ciphertexts / 8
        request = p.degree * (2 * PRIME_BYTES * 2 - sum(p.dropped())) / 8
        return Sizes(request, token / 2, token)

    def token_numbers(self, samples: int) -> int:
        """The numbers in a token."""
        return samples + beside(self.depth)

    def _roaming(self, network: Network, seed: int) -> tuple[Roaming, int]:
        roaming = plan_roaming(network, 1, None, self.walk, self.holder, seed, None)
        [walk] = roaming.walks
        if walk.length is None:
            raise ConfigError("privacy.mode: sealed needs a walk that is a tour: set method.walk: tour.")
        return replace(roaming, hops=walk.length), walk.length

    def sizes_of(self, problem: LinearProblem) -> SealedSizes:
        """What parties must know of each other's parts, from a problem that has them all."""
        columns = [X.shape[1] for X in problem.blocks]
        others = [d for k, d in enumerate(columns) if k != self.holder]
        return SealedSizes(max(columns), min(others), start_bound(problem))

    def parties(
        self,
        problem: Problem,
        network: Network,
        seed: int,
        agreed: SealedSizes | None = None,
        make_key: MakeKey | None = None,
    ) -> Parties:
        """``agreed``: in a federation, where no party has the whole problem; ``make_key`` loads or makes the key."""
        self.check_network(network)
        self.check_problem(problem)
        assert isinstance(problem, LinearProblem)
        plan = self.plan(problem, network, seed, agreed)
        plan.parameters()  # refuses sizes for which there is no cipher

        def client(k: int) -> SealedClient:
            block = plan.block(problem.blocks[k], problem.penalties[k])
            if k != self.holder:
                return SealedClient(k, block, plan)
            if self.server:
                return LabelHolder(k, block, plan, problem.labels)
            return LoneHolder(k, block, plan, problem.labels, make_key)

        server = SealedServer(plan, make_key) if self.server else None
        first = [Message(plan.holder, plan.holder, NextTour(1))]
        report = Message(plan.holder, MONITOR, Progress(0, 0, None, 0.0))
        return Parties(OnDemand(network.size, client), server, [report, *first], gather=gathered)

    def plan(self, problem: LinearProblem, network: Network, seed: int, agreed: SealedSizes | None) -> SealedPlan:
        """What all parties know."""
        sizes = agreed or self.sizes_of(problem)
        roaming, length = self._roaming(network, seed)
        return SealedPlan(
            network=network,
            roaming=roaming,
            length=length,
            home=self.holder,
            server=self.server,
            depth=self.depth,
            loss=problem.loss,
            samples=problem.samples,
            widest=sizes.widest,
            start=sizes.start,
            scheme=self.scheme,
            seed=seed,
            most_tours=self.most_tours(sizes),
        )

    def message_bounds(self, general: Bounds, network: Network, seed: int, samples: int) -> Bounds:
        kinds = {SealedKeys, SealedToken, SealedRequest, SealedAnswer, NextTour, Progress}
        ciphertexts = 1 + self.token_numbers(samples) // min(SECURE_BITS)
        return replace(
            general,
            kinds=frozenset(kinds | {SealedEnd} if self.server else kinds),
            server=self.server,
            tokens=1,
            hops=self._roaming(network, seed)[1],
            snapshots=self.depth + 1,
            past=self.depth + 1,
            products=max(SECURE_BITS),  # as many columns as the largest ring has room for
            sealed_bytes=ciphertexts * MOST_BYTES + HEADER,
            sealed_keys=MOST_KEY_BYTES,
        )


def _ways(network: Network, holder: int) -> dict[int, list[int]]:
    """The shortest way of each other client to the key holder."""
    ways: dict[int, list[int]] = nx.single_source_shortest_path(network.graph, holder)
    return ways


@dataclass(frozen=True)
class SealedSizes:
    """The largest d_k, the smallest of the clients other than the label holder, and a bound of f(0)."""

    widest: int
    narrowest: int
    start: float

    @property
    def most_tours(self) -> int:
        """Tours after which a label holder with the key would learn the column space of another client."""
        return max(1, self.narrowest // 2)


def start_bound(problem: LinearProblem) -> float:
    """The least power of two above f(0): clients need no more of it for their scales."""
    value = problem.read_off(np.zeros(problem.samples), 0.0)
    return 2.0 ** math.ceil(math.log2(value)) if value > 0 else 1.0


def gathered(clients: Sequence[Client], server: Party | None) -> list[Any]:
    """theta at the end of the last tour, which the clients hold when they are told the weights of the mix."""
    holder = server if isinstance(server, SealedServer) else next(c for c in clients if isinstance(c, LoneHolder))
    assert isinstance(holder, SealedServer | LoneHolder)
    holding = holder.holding
    return [
        client.block.preview(holding.completed + 1, holding.steering.weights)
        for client in clients
        if isinstance(client, SealedClient)
    ]


def check_columns(X: Any, party: str, free: int = 0) -> None:
    """Reject a column that singles out fewer than ten rows: its gradients would tell their labels.

    A column singles out the rows in which it does not have its most frequent value; a constant one singles out none.
    """
    dense = np.asarray(X.toarray() if is_sparse(X) else X, float)
    for j in range(dense.shape[1] - free):
        apart = _singled_out(dense[:, j])
        if 0 < apart < FEWEST_ROWS:
            raise DataError(
                f"Column {j + 1} of {party} differs from its usual value in {apart} rows only: in a sealed training "
                f"its gradient would tell the labels of these rows. Leave out columns with fewer than {FEWEST_ROWS} "
                "such rows."
            )


def _singled_out(column: Array) -> int:
    return len(column) - int(np.unique(column, return_counts=True)[1].max())
