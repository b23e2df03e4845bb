"""MTCD, and STCD as its special case: the settings, checked, and the parties that they make.

Four files of this folder are the algorithm, from its settings to a visit and a sync. Read them
beside the paper, in this order:

- here, what a user sets;
- ``plan.py``: the settings, resolved for one problem and network, and new tokens;
- ``client.py``: the visit of a token, from its arrival to the next hop (Algorithm 1);
- ``server.py``: the sync (Algorithm 2).

Beside them are the rules of the sync (``combine/``), the walks of tokens (``roaming.py``), step
sizes (``stepsizes.py``, ``schedule.py``), messages (``messages.py``), and the interfaces by which
features join (``features.py``). ``testing/references/mtcd.py`` is the paper line by line, without
messages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

from mtcd.core.errors import ConfigError
from mtcd.methods.messages import Messages, equipped
from mtcd.methods.method import (
    METHODS,
    NOT_IN_CONFIG,
    Stepsize,
    TokenClusters,
    TokenMethod,
    check_connected,
    resolved_stepsize,
)
from mtcd.methods.mtcd.checks import GRADIENT, MAJORISE, NEWTON, check_settings, check_solver
from mtcd.methods.mtcd.client import Plan, Share
from mtcd.methods.mtcd.combine import RULES, Combine
from mtcd.methods.mtcd.combine.cluster import Cluster
from mtcd.methods.mtcd.description import description_of
from mtcd.methods.mtcd.features import (
    ACCELERATIONS,
    PLAIN_ROLES,
    AccelerationKind,
    Roles,
    TokenFeature,
)
from mtcd.methods.mtcd.messages import TokenMessages
from mtcd.methods.mtcd.roaming import Roaming, Start, plan_roaming, through_changes
from mtcd.methods.mtcd.server import opening
from mtcd.methods.mtcd.stepsizes import Schedule, TokenStepsizes
from mtcd.methods.mtcd.wrapped import Collecting, first_messages
from mtcd.methods.prices import Prices, Timeline
from mtcd.methods.server_sum import PLAIN_SUM, ServerSum
from mtcd.network.balance import balanced
from mtcd.network.changes import in_pieces
from mtcd.network.clusters import check_clusters, find_clusters
from mtcd.network.topology import Network
from mtcd.network.tours import walk_through_all
from mtcd.protocol.batches import Batches
from mtcd.protocol.codec.payloads import Payload
from mtcd.protocol.ledger.costs import Costs, Sizes
from mtcd.protocol.model import Problem
from mtcd.protocol.party import OnDemand, Parties, Summed
from mtcd.protocol.transports.transport import DEFAULT, TRANSPORTS
from mtcd.theory.stepsize import Smoothness, StepsizeRules

Clusters = Literal["auto", "balanced"] | Sequence[Sequence[str | int]] | None


@METHODS.register("mtcd")
@dataclass(frozen=True)
class MTCD(TokenMethod):
    """Multi-token coordinate descent: tokens roam over the clients, and sync at a server.

    Each of Gamma ``tokens`` makes S ``hops`` from neighbour to neighbour; at every visit a client
    takes Q ``local_updates`` on its own block, and the token's aggregate follows. Then the server
    combines the tokens.

    Parameters
    ----------
    tokens : int, optional
        Gamma; by default one, or one per cluster.
    hops : int, optional, default 16
        S, the hops of each token between two syncs. None: one token roams for ever, without a
        server (STCD).
    local_updates : int, default 1
        Q, the steps of a client at each visit.
    stepsize : float or 'auto', default 'auto'
        eta, the step size; 'auto' takes it from the smoothness of the problem.
    batch : int, optional
        The number of samples in a mini-batch; all samples unless given.
    combine : str, optional
        The rule of the sync: 'average' (tokens may cross), 'cluster' (a token per cluster), or
        ours: 'visitors', 'optimal', 'memory'.
    walk : str, default 'lazy'
        How a token chooses the next client: 'lazy' is the paper's random walk; 'tour' goes round a
        closed walk through all clients (docs/beyond.md).
    clusters : 'auto', 'balanced' or lists of clients, optional
        Tokens stay in their cluster; 'auto' finds clusters in the network, 'balanced' evens out the
        length of their tours.
    start : client, weights over clients, or one of these per token, optional
        Where tokens start; uniform by default.
    acceleration : 'conjugate', 'twin', 'momentum' or 'anderson', optional
        Ours, with ``walk`` 'tour' and one token, or one per cluster: tours or syncs start from a
        combination of the last ``depth``. Every tour then starts at the same client. 'twin' is for
        :func:`STCD`.
    depth : int, optional
        How many earlier tours an acceleration combines.
    schedule : Schedule, optional
        How the step size changes from epoch to epoch.
    fusion_updates : int, optional
        Of split networks: the steps of theta_0 at the server per iteration; S*Q by default.
    fusion_client : client or 'each', optional
        Of split networks without a server: where theta_0 is updated; the first client by default.
    first_pass : bool, default True
        Whether the token of STCD first visits all clients of a split network, which only add their
        representations: Z is then the aggregate of theta^0. Otherwise Z starts at 0.
    adaptive : bool, default False
        Whether conjugate tours choose step size, local updates and depth from their first tour,
        which takes ``stepsize``. So they do with stepsize 'auto', too.
    features : tuple of TokenFeature
        What a kind of model adds to tokens and visits; set by the kind of model.
    transport : 'float64', 'float32' or 'delta32', default 'float64'
        The form in which aggregates travel; parties compute in double precision. With
        ``acceleration``, 'delta32' has half the bytes.
    local_solver : 'gradient', 'majorise' or 'newton', default 'gradient'
        'gradient' takes the Q steps on f itself. 'majorise' (ours) takes them on the quadratic
        upper bound of f at the token that arrived: one gradient and two products with the block per
        visit, whatever Q. 'newton' (ours): each of the Q updates is up to three Newton steps on f
        of the block, which all but minimise it; the step size has no effect.
    aggregation : 'plain', 'masked' or 'double-masked', default 'plain'
        Whether the server sees each upload, or their sum only; set by ``Privacy(aggregation=...)``.

    Examples
    --------
    >>> import mtcd
    >>> mtcd.MTCD(tokens=2, hops=8, local_updates=5).local_updates
    5
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
    features: tuple[TokenFeature, ...] = field(
        default=(), kw_only=True, repr=False, metadata=NOT_IN_CONFIG
    )
    transport: str = field(default=DEFAULT, kw_only=True)
    local_solver: str = field(default=GRADIENT, kw_only=True)
    aggregation: ServerSum = field(default=PLAIN_SUM, kw_only=True, metadata=NOT_IN_CONFIG)

    warm_starts = True

    def __post_init__(self) -> None:
        self._check_local_settings()
        check_settings(self)
        self.aggregation.check(self)

    @property
    def kind(self) -> str:
        """'stcd' for the setting without a server."""
        if self.hops is None:
            return "stcd"
        return "mtcd"

    @property
    def has_server(self) -> bool:  # type: ignore[override]
        """Whether tokens sync at a server: for STCD they do not."""
        return self.hops is not None

    @property
    def sums_uploads(self) -> bool:  # type: ignore[override]
        """False for STCD, which has no server."""
        return self.has_server

    @property
    def loss_at_server(self) -> str:  # type: ignore[override]
        """The acceleration of syncs, or the rule with which the server chooses weights."""
        if not self.has_server:
            return ""
        if self.acceleration is not None:
            return "acceleration"
        return f"combine: {self.combine_rule}" if self._rule.server_chooses else ""

    @property
    def combine_rule(self) -> str:
        """The rule in use: ``combine``, or by default 'cluster' with clusters and 'average'
        without."""
        if self.combine:
            return self.combine
        return "average" if self.clusters is None else "cluster"

    @property
    def one_token_per_client(self) -> bool:
        """Whether no client is visited by two tokens between two syncs, and its copy counts with
        weight 1."""
        lone = self.tokens in (None, 1) and not self._rule.server_chooses
        return self._rule.one_visitor or lone

    @property
    def _rule(self) -> type[Combine]:
        return RULES[self.combine_rule]

    @property
    def _accelerated(self) -> type[AccelerationKind] | None:
        if self.acceleration is None:
            return None
        return ACCELERATIONS[self.acceleration]

    def describe(self) -> str:
        return description_of(self)

    @property
    def chooses_steps(self) -> bool:  # type: ignore[override]
        """Whether the acceleration chooses step sizes and local updates, now or once 'auto' is
        resolved."""
        if self.adaptive:
            return True
        if self.local_solver == NEWTON:  # there is no step size to choose
            return False
        kind = self._accelerated
        return self.stepsize == "auto" and kind is not None and kind.adapts

    def chosen(self, slots: Mapping[str, Any], smoothness: Smoothness) -> tuple[str, ...]:
        """What a run says at its end of the steps that were chosen on the way.

        Parameters
        ----------
        slots
            What the last token carries.
        smoothness
            Of the problem.
        """
        kind = self._accelerated
        told = "" if kind is None else kind.chosen(slots, smoothness)
        return (told,) if told else ()

    def timeline(self) -> Timeline:
        return Timeline(self.batch, self.hops or 1)

    def with_stepsize(self, stepsize: float) -> Self:
        # Once 'auto' is a number, whether it was one is remembered in `adaptive`.
        return replace(self, stepsize=stepsize, adaptive=self.chooses_steps)

    def stepsize_rules(self, smoothness: Smoothness) -> StepsizeRules:
        return TokenStepsizes(self, smoothness)

    def prices(self, network: Network, tokens: int = 1) -> Prices:
        if self.hops is None:
            return Prices(hops=1)

        def opening(costs: Costs, sizes: Sizes) -> float:
            return self.aggregation.opening_cost(network, costs)

        # With mini-batches all clients represent the next batch; with the full batch the tokens are
        # the uploads (the paper's costs: 2 Gamma with the server, S Gamma hops).
        uplinks = tokens if self.batch is None else network.size
        return Prices(uplinks, tokens, self.hops * tokens, opening)

    def check(self, network: Network, problem: Problem | None = None) -> None:
        super().check(network, problem)
        if self.hops is None:
            check_connected(network, "stcd")

    def notes(self, network: Network) -> tuple[str, ...]:
        notes = super().notes(network)
        note = TRANSPORTS[self.transport].note
        if note:
            notes = (*notes, note)

        apart: Sequence[str] = ()
        if self.hops is None and network.changes:
            apart = in_pieces(network)
        if not apart:
            return notes

        where = "; ".join(apart)
        where = where[0].upper() + where[1:]
        stays = "the token stays in its component until the others can be reached again."
        return (*notes, f"{where}: {stays}")

    def token_clusters(self, network: Network, seed: int) -> TokenClusters:
        # Without clusters a token may go everywhere. A rule that needs one visitor per client
        # implies them.
        if self.clusters is None and not self._rule.one_visitor:
            return None
        if self.clusters is None or self.clusters == "auto":
            return find_clusters(network, self.tokens, seed)
        if self.clusters == "balanced":
            return balanced(network, find_clusters(network, self.tokens, seed))
        found = check_clusters(network, self.clusters)
        if self.tokens not in (None, len(found)):
            raise ConfigError(
                f"method.tokens is {self.tokens}, but there are {len(found)} clusters: "
                "with a token per cluster both numbers must be the same."
            )
        return found

    def plan(self, samples: int, outputs: int, network: Network, seed: int) -> Plan:
        """The settings, resolved for a problem and a network."""
        self.check(network)
        clusters = self.token_clusters(network, seed)
        tokens = (self.tokens or 1) if clusters is None else len(clusters)
        # Each client keeps a copy of theta_k for every token that visits it.
        if tokens > 1000 + 10 * network.size:  # far more, one more or less
            raise ConfigError(
                f"method.tokens is {tokens}, far more than {network.size} clients can keep apart."
            )
        # One token: all rules are equal, and this one costs least.
        combine: Combine = Cluster()
        if tokens > 1 or self._rule.server_chooses:
            combine = self._rule()
        roaming = self._roaming(network, tokens, clusters, seed)
        return Plan(
            tokens=tokens,
            hops=self.hops,
            local_updates=self.local_updates,
            stepsize=resolved_stepsize(self),
            combine=combine,
            batches=Batches(samples, self.batch, seed),
            roaming=roaming,
            outputs=outputs,
            schedule=self.schedule,
            roles=self._roles(),
            majorises=self.local_solver == MAJORISE,
            newton=self.local_solver == NEWTON,
            features=self.features,
        )

    def _roles(self) -> Roles:
        """The parties that the acceleration or the rule of the sync needs."""
        if self._accelerated is not None:
            return self._accelerated.roles(self)
        return self._rule.roles() or PLAIN_ROLES

    def _roaming(
        self, network: Network, tokens: int, clusters: TokenClusters, seed: int
    ) -> Roaming:
        if self._accelerated is not None:
            return self._accelerated.roaming(self, network, tokens, clusters, seed)
        roaming = plan_roaming(network, tokens, clusters, self.walk, self.start, seed, self.hops)
        return through_changes(roaming, network, clusters)

    def parties(self, problem: Problem, network: Network, seed: int) -> Parties:
        plan = self.plan(problem.samples, problem.outputs, network, seed)
        roles = plan.roles
        roles.check(problem)
        check_solver(self, problem)
        # With theta = 0 the first token is zero and free. From another start the lone token
        # collects Z^0 by itself.
        if problem.warm and self.hops is None:
            plan = replace(
                plan, first_pass=tuple(walk_through_all(network, plan.roaming.lone_start))
            )
        # On demand: a process that hosts some clients makes only those.
        clients = OnDemand(network.size, lambda k: roles.client(k, problem.client(k), plan))
        if plan.first_pass:
            return equipped(
                self,
                Parties([Collecting(client) for client in clients], None, first_messages(plan)),
            )
        if self.hops is None:
            hosts = OnDemand(network.size, lambda k: plan.roaming.hosted(clients[k]))
            return equipped(self, Parties(hosts, None, plan.lone_token()))
        server = roles.server(network.size, plan, problem)
        # What is summed comes from whoever has a token last, if tokens carry the aggregates.
        holders = plan.last_clients if plan.tokens_return else None
        summed = Summed(
            server.aggregate,
            token_holders=holders,
            batches=plan.batches,
            batch_of=_requested_batch,
        )
        first = opening(server, clients, problem)
        return equipped(self, Parties(clients, server, first, gather=roles.gather, summed=summed))

    def messages(self, network: Network, seed: int, samples: int, outputs: int = 1) -> Messages:
        return TokenMessages(self, network, seed, samples, outputs)


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
    """Single-token coordinate descent: one token roams for ever, without a server and syncs.

    The decentralised special case of :class:`MTCD`, with ``hops=None``.

    Parameters
    ----------
    local_updates : int, default 1
        Q, the steps of a client at each visit.
    stepsize : float or 'auto', default 'auto'
        eta, the step size; 'auto' takes it from the smoothness of the problem.
    walk : str, default 'lazy'
        How the token chooses the next client: 'lazy' is the paper's random walk.
    start : client or weights over clients, optional
        Where the token starts; uniform by default.
    acceleration : 'conjugate', 'twin', 'momentum' or 'anderson', optional
        With ``walk`` 'tour': tours start from a combination of the last ``depth`` (docs/beyond.md).
    depth : int, optional
        How many earlier tours an acceleration combines.
    fusion_client : client or 'each', optional
        Of split networks: where theta_0 is updated; the first client by default.
    first_pass : bool, default True
        Of split networks: whether the token first collects the representations of all clients.
    transport : 'float64', 'float32' or 'delta32', default 'float64'
        As of :class:`MTCD`.
    local_solver : 'gradient', 'majorise' or 'newton', default 'gradient'
        As of :class:`MTCD`.

    Returns
    -------
    MTCD
        The method, without a server.

    Examples
    --------
    >>> import mtcd
    >>> mtcd.STCD(local_updates=5).has_server
    False
    """
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


def _requested_batch(payload: Payload) -> int | None:
    """The batch whose representation a message requests."""
    if isinstance(payload, Share):
        return payload.t
    return None
