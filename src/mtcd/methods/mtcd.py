"""The settings of MTCD, and of STCD as its special case. The parties are in ``token_parties.py``; a version without
messages, line by line as in the paper, is in ``reference.py``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from mtcd.checks import check_whole
from mtcd.errors import ConfigError, did_you_mean
from mtcd.ledger.costs import UNIT, Costs, Sizes
from mtcd.masking.pair_masks import MOST_PLACES
from mtcd.methods.accelerations import ACCELERATIONS, Acceleration
from mtcd.methods.combine import RULES, Combine
from mtcd.methods.combine.cluster import Cluster
from mtcd.methods.first_pass import Collecting, first_messages
from mtcd.methods.hosting import Done, Plan, Share
from mtcd.methods.membership import through_changes
from mtcd.methods.method import METHODS, NOT_IN_CONFIG, Method, Stepsize, check_connected
from mtcd.methods.private.settings import PrivateTours
from mtcd.methods.relay import Relay
from mtcd.methods.roaming import Roaming, Start, StartAt, plan_roaming
from mtcd.methods.schedule import Schedule
from mtcd.methods.sealed.settings import DEPTH as SEALED_DEPTH
from mtcd.methods.sealed.settings import SealedTours
from mtcd.methods.split_parties import SPLIT_PAYLOADS, FusionPlan, SplitToken
from mtcd.methods.split_setup import SplitParties, split_parties
from mtcd.methods.token_parties import TokenClient, TokenServer, opening
from mtcd.methods.touring_parties import TouringClient, TouringServer
from mtcd.network.changes import in_pieces
from mtcd.network.clusters import check_clusters, find_clusters
from mtcd.network.edges import ClientNames
from mtcd.network.topology import Network
from mtcd.network.tours import walk_through_all
from mtcd.network.walks import WALKS
from mtcd.privacy import DP, MASKED, PLAIN
from mtcd.protocol.batches import Batches
from mtcd.protocol.gathering import Fresh
from mtcd.protocol.model import Problem, SplitProblem
from mtcd.protocol.party import OnDemand, Parties, Progress
from mtcd.protocol.token import SURVEYED, Token
from mtcd.schema.bounds import MOST, Bounds
from mtcd.theory.stepsize import Smoothness, StepsizeRule, descent_limit, theorem_limit
from mtcd.transports import DEFAULT

GRADIENT, MAJORISE = "gradient", "majorise"
Clusters = Literal["auto"] | Sequence[Sequence[str | int]] | None


@METHODS.register("mtcd")
@dataclass(frozen=True)
class MTCD(Method):
    """Gamma ``tokens`` roam S ``hops`` each, Q ``local_updates`` of size ``stepsize`` per visit, then sync.

    ``combine``: 'average' (tokens may cross), 'cluster' (a token per cluster), 'visitors' and 'optimal' (ours).
    ``clusters``: lists of clients, or 'auto' to find them; tokens then stay in their cluster.
    ``start``: a client, or weights over clients, or one of these per token; uniform by default.
    ``acceleration``: 'conjugate', 'momentum' or 'anderson' (ours; ``walk`` 'tour', one token or one per cluster):
    tours or syncs start from a combination of the last ``depth``. Every tour then starts at the same client.
    ``adaptive``: conjugate tours choose step size, local updates and depth from their first tour, which takes
    ``stepsize``; the default with stepsize 'auto'.
    ``hops`` None: the one token roams for ever, without a server (STCD).
    ``schedule``: how the step size changes from epoch to epoch. For split networks, theta_0 takes ``fusion_updates``
    steps an iteration at the server (S*Q by default); in STCD it is updated at ``fusion_client``: a client (the
    first by default), or 'each' of them. Before STCD trains a split network, its token makes a ``first_pass`` on
    which clients only add their representations, so that Z is the aggregate of theta^0; without it, Z starts at 0.
    ``transport``: the form in which aggregates travel, 'float64' or 'float32'; parties compute in double precision.
    ``local_solver``: 'gradient' takes the Q steps on f itself; 'majorise' (ours) on the quadratic upper bound of f at
    the token that arrived, which costs one gradient and two products with the block per visit, whatever Q.
    """

    tokens: int | None = None
    hops: int | None = 16
    local_updates: int = 1
    stepsize: Stepsize = "auto"
    batch: int | None = None
    combine: str | None = None
    walk: str = "lazy"
    clusters: Clusters = None
    start: Start = None
    acceleration: str | None = None
    depth: int | None = None
    schedule: Schedule | None = None
    fusion_updates: int | None = None
    fusion_client: str | int | None = field(default=None, metadata=NOT_IN_CONFIG)
    first_pass: bool = field(default=True, repr=False, metadata=NOT_IN_CONFIG)
    adaptive: bool = field(default=False, metadata=NOT_IN_CONFIG)
    transport: str = field(default=DEFAULT, kw_only=True)
    local_solver: str = field(default=GRADIENT, kw_only=True)
    aggregation: str = field(default=PLAIN, kw_only=True, metadata=NOT_IN_CONFIG)

    def __post_init__(self) -> None:
        self._check_local_settings()
        for name, value in (("tokens", self.tokens), ("hops", self.hops), ("fusion_updates", self.fusion_updates)):
            if value is not None:
                check_whole(f"method.{name}", value)
        if not isinstance(self.first_pass, bool):
            raise ConfigError(f"method.first_pass is true or false, but is {self.first_pass!r}.")
        if self._rule.server_chooses and (self.batch is not None or self.hops is None):
            raise ConfigError(
                f"method.combine: {self.combine_rule} needs mtcd and the full batch, to compute f from the tokens: "
                "leave batch out, or choose another rule."
            )
        if not _are_clusters(self.clusters):
            raise ConfigError(f"method.clusters is 'auto' or a list of lists of clients, but is {self.clusters!r}.")
        if self.local_solver not in (GRADIENT, MAJORISE):
            hint = did_you_mean(str(self.local_solver), (GRADIENT, MAJORISE))
            raise ConfigError(f"method.local_solver: unknown solver {self.local_solver!r}: {hint}")
        if self.local_solver == MAJORISE and self.batch is not None:
            raise ConfigError("method.local_solver: majorise needs the full batch: leave batch out.")
        self._check_acceleration()
        if self.hops is None and (self.tokens not in (None, 1) or self.clusters is not None or self.batch is not None):
            raise ConfigError("stcd has one token, no clusters and the full batch: use mtcd for anything else.")
        if self.hops is None and self.schedule is not None:
            raise ConfigError("method.schedule changes the step size from sync to sync: stcd has none.")

        if self.transport != DEFAULT and (self._accelerated or self._rule.server_chooses):
            raise ConfigError(
                f"method.transport: {self.transport} changes tokens on their way, but acceleration and combine: "
                f"optimal compute with differences of tokens. Leave these out, or set transport: {DEFAULT}."
            )

        self._check_masked()
        summed = self.batch is not None or (self._rule.same_everywhere and not self._rule.server_chooses)
        if self.aggregation == MASKED and (self._accelerated or not summed):
            raise ConfigError(
                "privacy.aggregation: masked is for syncs that need the sum of tokens or uploads only: use batch, or "
                "combine: average or cluster, without acceleration."
            )

    def masked(self) -> MTCD:
        return replace(self, aggregation=MASKED) if self.has_server else super().masked()  # type: ignore[return-value]

    def _check_acceleration(self) -> None:
        if self.depth is not None:
            check_whole("method.depth", self.depth)
        kind = self._accelerated
        if self.adaptive and not (kind and kind.adapts):
            raise ConfigError("method.adaptive is for acceleration: conjugate, which chooses its own step sizes.")
        if kind and not WALKS[self.walk].repeats:
            raise ConfigError("method.acceleration needs a walk that repeats itself: set walk: tour.")
        if kind and self.hops is not None and (not self._rule.one_visitor or self.batch is not None):
            raise ConfigError("method.acceleration of mtcd is for a token per cluster and the full batch.")

    @property
    def kind(self) -> str:
        """'stcd' for the setting without a server."""
        return "stcd" if self.hops is None else "mtcd"

    @property
    def has_server(self) -> bool:  # type: ignore[override]
        """False for STCD."""
        return self.hops is not None

    @property
    def combine_rule(self) -> str:
        """The rule in use: ``combine``, or by default 'cluster' with clusters and 'average' without."""
        return self.combine or ("average" if self.clusters is None else "cluster")

    @property
    def one_token_per_client(self) -> bool:
        """Whether no client is visited by two tokens between two syncs, and its copy counts with weight 1."""
        return self._rule.one_visitor or (self.tokens in (None, 1) and not self._rule.server_chooses)

    @property
    def _rule(self) -> type[Combine]:
        return RULES[self.combine_rule]

    @property
    def _accelerated(self) -> type[Acceleration] | None:
        return None if self.acceleration is None else ACCELERATIONS[self.acceleration]

    def describe(self) -> str:
        walk = "" if self.walk == "lazy" else f", {self.walk}"
        walk += f", {self.acceleration}" if self.acceleration else ""
        walk += "" if self.local_solver == GRADIENT else f", {self.local_solver}"
        if self._accelerated and self._accelerated.uses_depth and not self.chooses_steps:
            walk += f" (M={self.most_starts})"
        Q = "auto" if self.chooses_steps else self.local_updates
        if self.hops is None:
            return f"STCD, Q={Q}{walk}"
        everywhere = self.clusters is None and not self._rule.one_visitor
        given = None if self.clusters is None or isinstance(self.clusters, str) else len(self.clusters)
        tokens = self.tokens or given or (1 if everywhere else "auto")
        batch = "" if self.batch is None else f", B={self.batch}"
        return f"MTCD, Γ={tokens}, S={self.hops}, Q={Q}{batch}, {self.combine_rule}{walk}"

    @property
    def chooses_steps(self) -> bool:
        """Whether the acceleration chooses step sizes and local updates, now or once 'auto' is resolved."""
        return self.adaptive or (self.stepsize == "auto" and self._accelerated is not None and self._accelerated.adapts)

    @property
    def most_starts(self) -> int:
        """M, the most tours or syncs that are combined."""
        kind = self._accelerated or Acceleration
        return self.depth or (kind.adaptive_depth if self.chooses_steps else kind.default_depth)

    def token_clusters(self, network: Network, seed: int) -> tuple[tuple[int, ...], ...] | None:
        if self.clusters is None and not self._rule.one_visitor:
            return None
        if self.clusters is None or self.clusters == "auto":
            return find_clusters(network, self.tokens, seed)
        found = check_clusters(network, self.clusters)
        if self.tokens not in (None, len(found)):
            raise ConfigError(
                f"method.tokens is {self.tokens}, but there are {len(found)} clusters: "
                "with a token per cluster both numbers must be the same."
            )
        return found

    @property
    def hops_per_sync(self) -> int:
        return self.hops or 1

    def with_stepsize(self, stepsize: float) -> MTCD:
        return replace(self, stepsize=stepsize)

    def with_resolved_stepsize(self, stepsize: float) -> MTCD:
        return replace(self, stepsize=stepsize, adaptive=self.chooses_steps)

    warm_starts = True

    def stepsize_limit(self, smoothness: Smoothness) -> StepsizeRule:
        rule = self._rule
        if self.hops is None or (rule.never_raises and not rule.covered):
            return descent_limit(smoothness)
        beyond = [] if rule.covered or self.tokens == 1 else [f"combine: {self.combine_rule}"]
        beyond += ["acceleration"] if self.acceleration else []
        return theorem_limit(smoothness, self.hops, self.local_updates, self.batch, beyond)

    def auto_stepsize(self, smoothness: Smoothness) -> StepsizeRule:
        if self.chooses_steps and self._accelerated:
            return self._accelerated.first_stepsize(smoothness)
        never_raises = self._rule.never_raises and self._rule.covered
        if self.batch is None and (never_raises or self.tokens == 1):
            return descent_limit(smoothness, averaged=(self.tokens or 1) > 1)
        return self.stepsize_limit(smoothness)

    def iteration_cost(self, network: Network, tokens: int, costs: Costs, sizes: Sizes = UNIT) -> float:
        hop = costs.between_clients(sizes.hop)
        if self.hops is None:
            return hop
        uplinks = tokens if self.batch is None else network.size
        server = uplinks * costs.with_server(sizes.uplink) + tokens * costs.with_server(sizes.downlink)
        return server + self.hops * tokens * hop

    def sizes(self, samples: int, outputs: int, network: Network, seed: int) -> Sizes:
        return self.with_stepsize(1.0).plan(samples, outputs, network, seed).sizes

    def check_network(self, network: Network) -> None:
        super().check_network(network)
        if self.hops is None:
            check_connected(network, "stcd")

    def notes(self, network: Network) -> tuple[str, ...]:
        apart = in_pieces(network) if self.hops is None and network.changes else []
        note = f"{'; '.join(apart)}: the token stays in its component until the others can be reached again."
        return (*super().notes(network), *((note[0].upper() + note[1:],) if apart else ()))

    def sealed(self, dp: DP | None = None) -> SealedTours:
        refused = {
            "tokens": self.tokens not in (None, 1),
            "clusters": self.clusters is not None,
            "batch": self.batch is not None,
            "start": self.start is not None,
            "schedule": self.schedule is not None,
            "transport": self.transport != DEFAULT,
            "stepsize": self.stepsize != "auto",
            "acceleration": self.acceleration not in (None, "conjugate"),
        }
        if given := [name for name, set_ in refused.items() if set_]:
            raise ConfigError(
                f"privacy.mode: sealed has one token on tours from the label holder, which are accelerated and have no "
                f"step size: leave method.{given[0]} out."
            )
        if WALKS[self.walk] is WALKS["lazy"]:
            raise ConfigError("privacy.mode: sealed needs a walk that is a tour: set method.walk: tour.")
        if dp is not None:
            if self.depth is not None:
                raise ConfigError("method.depth: with privacy.dp tours are not mixed: leave it out.")
            return PrivateTours(server=self.hops is not None, walk=self.walk, dp=dp)
        return SealedTours(server=self.hops is not None, walk=self.walk, depth=self.depth or SEALED_DEPTH)

    def plan(self, samples: int, outputs: int, network: Network, seed: int) -> Plan:
        """The settings, resolved for a problem and a network."""
        self.check_network(network)
        clusters = self.token_clusters(network, seed)
        tokens = (self.tokens or 1) if clusters is None else len(clusters)
        if tokens > 1000 + 10 * network.size:  # no mutants: far more, one more or less
            raise ConfigError(f"method.tokens is {tokens}, far more than {network.size} clients can keep apart.")
        roaming = self._roaming(network, tokens, clusters, seed)
        return Plan(
            tokens=tokens,
            hops=self.hops,
            local_updates=self.local_updates,
            stepsize=self.resolved_stepsize(),
            combine=self._rule() if tokens > 1 or self._rule.server_chooses else Cluster(),  # one token: all are equal
            batches=Batches(samples, self.batch, seed),
            roaming=roaming,
            outputs=outputs,
            schedule=self.schedule,
            acceleration=self.acceleration,
            depth=self.most_starts,
            adaptive=self.adaptive,
            majorises=self.local_solver == MAJORISE,
        )

    def _roaming(
        self, network: Network, tokens: int, clusters: tuple[tuple[int, ...], ...] | None, seed: int
    ) -> Roaming:
        start = self.start
        if self.acceleration and start is None and clusters is not None:
            start = [cluster[0] for cluster in clusters]
        roaming = plan_roaming(network, tokens, clusters, self.walk, start, seed, self.hops)
        if self._accelerated and self._accelerated.best_home and self.start is None:
            roaming = replace(roaming, starts=[StartAt([walk.best_start()]) for walk in roaming.walks])
        roaming = through_changes(roaming, network, clusters, whole_tours=self.acceleration is not None)
        longest = max(walk.length or 0 for walk in roaming.all_walks())
        if self.acceleration and self.hops is not None and self.hops < longest:
            raise ConfigError(
                f"method.hops is {self.hops}, but the longest tour of a cluster has {longest}: give that."
            )
        return roaming

    def parties(self, problem: Problem, network: Network, seed: int) -> Parties:
        plan = self.plan(problem.samples, problem.outputs, network, seed)
        if plan.combine.server_chooses:
            return plan.combine.parties(problem, network.size, plan)
        if self._accelerated and self._accelerated.smooth_only and problem.nonsmooth:
            raise ConfigError(f"method.acceleration: {self.acceleration} needs a smooth penalty: use momentum with l1.")
        role, host = (TokenClient, TokenServer) if self.acceleration is None else (TouringClient, TouringServer)
        if problem.warm and self.hops is None:
            plan = replace(plan, first_pass=tuple(walk_through_all(network, plan.roaming.first(0, 0))))
        clients = OnDemand(network.size, lambda k: role(k, problem.client(k), plan))
        if plan.first_pass:
            return self.equip(Parties([Collecting(client) for client in clients], None, first_messages(plan)))
        if self.hops is None:
            relays = OnDemand(network.size, lambda k: Relay(clients[k]))
            return self.equip(Parties(relays if network.changes else clients, None, plan.lone_token()))
        server = host(network.size, plan, problem)
        if self.aggregation == MASKED and plan.tokens_return and not 2 <= plan.tokens <= MOST_PLACES:
            raise ConfigError(
                "privacy.aggregation: the server learns the sum of all tokens, and with one token that is the token "
                "itself: use two tokens or more, or batch."
            )
        holders = plan.last_clients if plan.tokens_return else None
        return self.equip(Parties(clients, server, opening(server, clients, problem)), holders)

    def message_bounds(self, general: Bounds, network: Network, seed: int, samples: int) -> Bounds:
        split, outputs = general.split is not None, math.prod(general.shape[1:])
        plan = replace(self.plan(samples, outputs, network, seed), linear=not split)
        optimal = plan.combine.server_chooses
        snapshots = 0 if plan.acceleration is None else plan.depth + 1
        return replace(
            general,
            kinds=_payloads(plan, split),
            server=plan.hops is not None,
            tokens=plan.tokens,
            hops=MOST - 1 if plan.hops is None or plan.tokens_return else plan.hops,
            first_pass=max(0, len(self.first_visits(network, plan.roaming)) - 1) if split else 0,
            carries_change=plan.carries_change,
            snapshots=snapshots,
            products=plan.tokens if optimal else 2 * snapshots + 1 + SURVEYED if snapshots else 0,
            past=network.size if optimal else 0,
        )

    def split(self, problem: SplitProblem, network: Network, seed: int) -> SplitParties:
        self.check_split_transport()
        if self._rule.server_chooses or self.acceleration or network.changes or self.local_solver != GRADIENT:
            raise ConfigError(
                "combine: optimal, acceleration, local_solver and network.changes rest on linear representations: "
                "leave them out for split networks."
            )
        if self.hops is None and problem.fusion_keeps_statistics:
            raise ConfigError("stcd has no server to hold the running statistics of batch norm in the fusion module.")
        if self.aggregation == MASKED and self.batch is None:
            raise ConfigError("privacy.aggregation: masked needs batch for split networks, or svfl.")
        plan = self.plan(problem.samples, problem.outputs, network, seed)
        plan = replace(plan, first_pass=self.first_visits(network, plan.roaming))
        steps = self.fusion_updates or (self.hops or 1) * self.local_updates
        fusion = FusionPlan(steps, self._fusing(network) if self.hops is None else frozenset())
        lanes = plan.tokens if plan.combine.one_visitor else 1  # two tokens at a client take turns
        return split_parties(problem.stage(plan.batches, lanes), plan, fusion, self.aggregation == MASKED)

    def first_visits(self, network: Network, roaming: Roaming) -> tuple[int, ...]:
        """The clients of the first pass of a split network, in order; training starts at the last. () for none."""
        if self.hops is not None or not self.first_pass:
            return ()
        return tuple(walk_through_all(network, roaming.first(0, 0)))

    def _fusing(self, network: Network) -> frozenset[int]:
        """The clients at which theta_0 is updated, without a server."""
        if self.fusion_client == "each" and "each" not in network.clients:
            return frozenset(range(network.size))
        names = ClientNames(network.clients)
        return frozenset([names.number(0 if self.fusion_client is None else self.fusion_client, "fusion_client")])


@METHODS.register("stcd")
def STCD(  # noqa: N802 - reads as the method that it makes
    local_updates: int = 1,
    stepsize: Stepsize = "auto",
    walk: str = "lazy",
    start: Start = None,
    acceleration: str | None = None,
    depth: int | None = None,
    fusion_client: str | int | None = None,
    first_pass: bool = True,
    transport: str = DEFAULT,
    local_solver: str = GRADIENT,
) -> MTCD:
    """One token roams for ever, without server and sync: the decentralised special case of MTCD."""
    return MTCD(
        1,
        None,
        local_updates,
        stepsize,
        walk=walk,
        start=start,
        acceleration=acceleration,
        depth=depth,
        fusion_client=fusion_client,
        first_pass=first_pass,
        transport=transport,
        local_solver=local_solver,
    )


def _payloads(plan: Plan, split: bool) -> frozenset[type]:
    """The payload classes that the parties send."""
    if plan.hops is None:
        return frozenset({SplitToken, Progress} if split else {Token})
    if split:
        return SPLIT_PAYLOADS - {Done} if plan.tokens_return else SPLIT_PAYLOADS
    return frozenset({Token, Progress} if plan.tokens_return else {Token, Done, Share, Fresh, Progress})


def _are_clusters(given: object) -> bool:
    if given is None or isinstance(given, str):
        return given in (None, "auto")
    return isinstance(given, Sequence) and all(isinstance(g, Sequence) and not isinstance(g, str) for g in given)
