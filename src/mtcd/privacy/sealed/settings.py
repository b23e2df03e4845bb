"""Sealed tours as a method: ``mtcd`` (the server keeps the key) or ``stcd`` (the label holder does)
in sealed mode; and its messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import networkx as nx

from mtcd.core.errors import ConfigError
from mtcd.methods.messages import Messages
from mtcd.methods.method import Method, check_connected
from mtcd.methods.mtcd.roaming import Roaming, plan_roaming
from mtcd.methods.past_weights import PAST
from mtcd.methods.prices import Prices
from mtcd.models.glm.model import LinearProblem
from mtcd.network.topology import Network
from mtcd.privacy.sealed.bfv.cipher import SchemeName
from mtcd.privacy.sealed.bfv.parameters import SECURE_BITS, SENT_PRIMES, choose_parameters
from mtcd.privacy.sealed.checks import SealedChecks
from mtcd.privacy.sealed.client import LabelHolder, SealedClient
from mtcd.privacy.sealed.conditions import SealedConditions, SealedSizes, sizes_of
from mtcd.privacy.sealed.holder import LoneHolder, SealedServer
from mtcd.privacy.sealed.payloads import (
    NextTour,
    SealedAnswer,
    SealedEnd,
    SealedKeys,
    SealedRequest,
    SealedToken,
)
from mtcd.privacy.sealed.plan import MakeKey, SealedPlan, beside
from mtcd.protocol.codec.limits import Bounds
from mtcd.protocol.ledger.costs import Costs, Sizes
from mtcd.protocol.model import Problem
from mtcd.protocol.party import MONITOR, Client, Message, OnDemand, Parties, Party, Progress
from mtcd.theory.stepsize import Smoothness, StepsizeRules

DEPTH = 20


@dataclass(frozen=True)
class SealedTours(Method):
    """Tours of one encrypted token: see docs/privacy.md. ``server``: whether a server keeps the
    key.

    ``holder`` is the label holder, by number, where tours begin and end. ``scheme`` is the cipher:
    'bfv', or 'clear' for tests, which hides nothing. ``accept_revealed_columns`` and
    ``accept_revealed_labels`` are those of ``mtcd.Privacy``.
    """

    server: bool = True
    walk: str = "tour"
    depth: int = DEPTH
    holder: int = 0
    scheme: SchemeName = "bfv"
    accept_revealed_columns: bool = False
    accept_revealed_labels: bool = False
    known: SealedSizes | None = field(default=None, repr=False)
    """The sizes of all blocks, in a process that has some of them."""

    stepsize = None
    local_updates = 1
    batch = None
    gradient_steps = False
    steps = (
        "each update is the minimum of a bound of f over the block, each tour starts at the best "
        "mix of the last"
    )
    hides_objective = True
    tells_label_sums = True
    """Whether a server is told sums over labels."""

    @property
    def kind(self) -> str:
        if self.server:
            return "mtcd"
        return "stcd"

    @property
    def has_server(self) -> bool:  # type: ignore[override]
        """Whether a server keeps the key."""
        return self.server

    def describe(self) -> str:
        holder = "label holder"
        if self.server:
            holder = "server"
        return f"Sealed tours, M={self.depth}, key at the {holder}"

    def with_stepsize(self, stepsize: float) -> SealedTours:
        return self  # it has none

    def stepsize_rules(self, smoothness: Smoothness) -> StepsizeRules:
        raise ConfigError(
            "Sealed tours have no step size: each update is the minimum of a bound of f over the "
            "block."
        )

    @property
    def conditions(self) -> SealedConditions:  # type: ignore[override]
        """The cap on tours."""
        return SealedConditions(self)

    @property
    def checks(self) -> SealedChecks:
        """What would tell labels or columns, and is refused."""
        return SealedChecks(self)

    def check(self, network: Network, problem: Problem | None = None) -> None:
        check_connected(network, "privacy.mode: sealed")
        # A single party is trained in the open.
        if network.size < 2:
            raise ConfigError(
                "privacy.mode: sealed needs two clients or more: one alone has nobody to hide from."
            )
        if network.changes:
            raise ConfigError(
                "privacy.mode: sealed is not for networks that change (network.changes)."
            )
        if problem is not None:
            self.checks.problem(problem)

    def notes(self, network: Network) -> tuple[str, ...]:
        cap = "A training ends after at most half as many tours as"
        if self.server:
            return (
                "Sealed: the server keeps the key; it learns the scores of samples that it cannot "
                f"name. {cap} all parties have columns together.",
            )
        return (
            "Sealed without a server: the label holder keeps the key and learns the others' "
            f"scores. {cap} the smallest other party has columns.",
        )

    def most_tours(self, columns: Sequence[int]) -> int:
        """The cap on tours, of parties with so many columns each.

        Without a server it is half of the smallest d_k of the others: the label holder would learn
        their column space. With a server it is half of all columns, of which the server sees the
        changes of scores.
        """
        # each opened token is a vector of the space; half of it leaves as much unknown
        if self.server:
            return max(1, sum(columns) // 2)
        # The label holder knows its own columns.
        narrowest = min(d for k, d in enumerate(columns) if k != self.holder)
        return max(1, narrowest // 2)

    def in_federation(self, holder: int) -> SealedTours:
        """The same in a federation, where this client holds the labels."""
        return replace(self, holder=holder)

    def prices(self, network: Network, tokens: int = 1) -> Prices:
        length = self.tour_length(network, 0)
        if self.server:
            requests = network.size + self.tells_label_sums

            def answers(costs: Costs, sizes: Sizes) -> float:
                return requests * costs.with_server(1.0)

            # requests and the token go up; the token comes down, in half of the bytes
            return Prices(requests + 1, 1, length, answers)

        ways = sum(len(way) - 1 for way in _ways(network, self.holder).values())

        def to_holder(costs: Costs, sizes: Sizes) -> float:
            return ways * (costs.between_clients(sizes.uplink) + costs.between_clients(1.0))

        return Prices(hops=length, beside=to_holder)

    def messages(self, network: Network, seed: int, samples: int, outputs: int = 1) -> Messages:
        return SealedMessages(self, network, seed, samples, outputs)

    def token_numbers(self, samples: int) -> int:
        """The numbers in a token."""
        return samples + beside(self.depth)

    def _roaming(self, network: Network, seed: int) -> tuple[Roaming, int]:
        # From the label holder: tours begin and end where the labels are.
        roaming = plan_roaming(network, 1, None, self.walk, self.holder, seed, None)
        [walk] = roaming.walks
        if walk.length is None:
            raise ConfigError(
                "privacy.mode: sealed needs a walk that is a tour: set method.walk: tour."
            )
        return replace(roaming, hops=walk.length), walk.length

    def tour_length(self, network: Network, seed: int) -> int:
        """The hops of a tour."""
        return self._roaming(network, seed)[1]

    def parties(
        self,
        problem: Problem,
        network: Network,
        seed: int,
        agreed: SealedSizes | None = None,
        make_key: MakeKey | None = None,
    ) -> Parties:
        """``agreed``: in a federation, where no party has the whole problem; ``make_key`` loads or
        makes the key."""
        self.check(network, problem)
        assert isinstance(problem, LinearProblem)
        sizes = agreed or self.known or sizes_of(problem)
        # Also with sizes that were agreed: the label holder sent them, and is not trusted to check.
        self.checks.sizes(sizes.columns, problem.samples, network.clients)
        plan = self.plan(problem, network, seed, sizes)
        plan.parameters()  # refuses sizes for which there is no cipher
        for k, X in enumerate(problem.blocks):
            if X.shape[1]:  # in a federation, only the own block is known here
                self.checks.resolution(plan, X, network.clients[k])

        def client(k: int) -> SealedClient:
            block = plan.block(problem.blocks[k], problem.penalties[k])
            if k != self.holder:
                return SealedClient(k, block, plan)
            if self.server:
                return LabelHolder(k, block, plan, problem.labels)
            return LoneHolder(k, block, plan, problem.labels, make_key)

        server = None
        if self.server:
            server = SealedServer(plan, make_key)
        # The key holder tells itself to begin, so that the first tour is like all others.
        first = [Message(plan.holder, plan.holder, NextTour(1))]
        report = Message(plan.holder, MONITOR, Progress(0, 0, None, 0.0))
        return Parties(OnDemand(network.size, client), server, [report, *first], gather=gathered)

    def plan(
        self, problem: LinearProblem, network: Network, seed: int, agreed: SealedSizes | None
    ) -> SealedPlan:
        """What all parties know."""
        sizes = agreed or self.known or sizes_of(problem)
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
            columns=sizes.columns,
            start=sizes.start,
            scheme=self.scheme,
            seed=seed,
            most_tours=self.most_tours(sizes.columns),
        )


def _ways(network: Network, holder: int) -> dict[int, list[int]]:
    """The shortest way of each other client to the key holder."""
    ways: dict[int, list[int]] = nx.single_source_shortest_path(network.graph, holder)
    return ways


def gathered(clients: Sequence[Client], server: Party | None) -> list[Any]:
    """theta at the end of the last tour, which the clients hold when they are told the weights of
    the mix."""
    [holder] = [one for one in (server, *clients) if isinstance(one, SealedServer | LoneHolder)]
    tour, weights = holder.holding.completed + 1, holder.holding.steering.weights
    found = []
    for client in clients:
        if isinstance(client, SealedClient):
            found.append(client.block.preview(tour, weights))
    return found


PRIME_BYTES = 7  # of a coefficient modulo one prime, on the wire
# of one ciphertext: two polynomials of degree 16384, four primes of eight bytes each
MOST_BYTES = 1_048_576
MOST_KEY_BYTES = 8_388_608  # of public keys: those of the largest ring have 5.5 MiB
HEADER = 4096  # bytes of a ciphertext beside its polynomials, and some to spare


@dataclass(frozen=True, eq=False)
class SealedMessages(Messages):
    """The messages of sealed tours on one network."""

    method: SealedTours

    @property
    def sizes(self) -> Sizes:
        """In numbers of eight bytes: of a request, of the token as the server sends it, and as a
        client does."""
        numbers = self.method.token_numbers(self.samples)
        # Of the smallest party: what a token needs does not depend on the widest.
        p = choose_parameters(numbers, (1,), 2 * (self.network.size + 2))
        # A fresh token from the server has a seed in place of its second polynomial: half of the
        # bytes.
        token = 2 * p.degree * PRIME_BYTES * (len(p.modulus_bits) - 1) * p.layout().ciphertexts / 8
        request = p.degree * (PRIME_BYTES * SENT_PRIMES - p.spared()) / 8
        return Sizes(request, token / 2, token)

    def declared(self, general: Bounds) -> Bounds:
        method = self.method
        kinds = {SealedKeys, SealedToken, SealedRequest, SealedAnswer, NextTour, Progress}
        ciphertexts = 1 + method.token_numbers(self.samples) // min(SECURE_BITS)
        bounds = replace(
            general,
            kinds=frozenset(kinds | {SealedEnd} if method.server else kinds),
            server=method.server,
            tokens=1,
            hops=method.tour_length(self.network, self.seed),
        )
        return bounds.with_slots(
            PAST.name,
            snapshots=method.depth + 1,
            past=method.depth + 1,
            products=max(SECURE_BITS),  # as many columns as the largest ring has room for
            sealed_bytes=ciphertexts * MOST_BYTES + HEADER,
            sealed_keys=MOST_KEY_BYTES,
        )
