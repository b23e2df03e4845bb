"""Makes the parties of a split network, takes their snapshots and resumes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from mtcd.core.errors import ConfigError, MtcdError
from mtcd.methods.method import Method, TokenMethod
from mtcd.methods.mtcd.client import Done
from mtcd.methods.mtcd.features import PLAIN_ROLES
from mtcd.methods.mtcd.plan import Plan
from mtcd.methods.server_sum import PLAIN_SUM, ServerSum
from mtcd.models.splitnet.parties import (
    SPLIT_PAYLOADS,
    FusionPlan,
    SplitClient,
    SplitServer,
    lone_progress,
)
from mtcd.models.splitnet.slots import (
    JOURNEY,
    THETA_0,
    VISITED,
    Journey,
    journey_of,
    theta_0_of,
)
from mtcd.network.edges import ClientNames
from mtcd.network.topology import Network
from mtcd.network.tours import walk_through_all
from mtcd.protocol.codec.limits import MOST, Bounds, TensorShapes
from mtcd.protocol.ledger.costs import Costs, Sizes
from mtcd.protocol.model import SplitProblem, SplitStage, State, Tensor
from mtcd.protocol.party import MONITOR, Message, Parties, Progress, Summed
from mtcd.protocol.state import Snapshot
from mtcd.protocol.token import Token
from mtcd.protocol.transports.transport import DEFAULT

PLACES = ("t", "hop", "previous")  # of a token


@dataclass(frozen=True)
class SplitParties:
    """All parties. The position of the training is in the server or, without one, in the lone
    token."""

    clients: Sequence[SplitClient]
    server: SplitServer | None
    token: Token | None
    stage: SplitStage
    aggregation: ServerSum = PLAIN_SUM
    """How the server gets the sum of uploads."""

    def parties(self) -> Parties:
        """The parties at the start: the server requests all representations, or the lone token
        starts."""
        if self.server is not None:
            return self._parties(self.server.ask(range(len(self.clients))))
        assert self.token is not None
        return self._parties(_arriving(self.token, self.stage))

    def snapshot(self) -> Snapshot:
        """The networks of all parties, and the position of the training."""
        tensors = _prefixed("fusion/", self.stage.fusion.full_state())
        for k, network in enumerate(self.stage.clients):
            tensors |= _prefixed(f"client/{k}/", network.full_state())
        facts, own = self._position()
        return Snapshot(facts, tensors | _prefixed("parties/", own))

    def _position(self) -> tuple[dict[str, float | None], dict[str, Tensor]]:
        if self.server is not None:
            uploads = {f"upload.{k}": h for k, h in self.server.uploads.items()}
            losses = {"start_loss": self.server.start_loss, "losses": float(self.server.losses)}
            return {"t": self.server.t, **losses}, {"H": self.server.aggregate, **uploads}
        assert self.token is not None
        theta_0 = {f"theta_0.{i}": value for i, value in enumerate(theta_0_of(self.token))}
        places = {name: getattr(self.token, name) for name in PLACES}
        journey = journey_of(self.token)
        places |= {"heading": journey.heading, "start_loss": journey.start_loss}
        return places, {"H": self.token.aggregate, **theta_0}

    def resume(self, snapshot: Snapshot) -> Sequence[Message]:
        """Restore all parties; returns the messages that continue the training."""
        facts = snapshot.facts
        tensors = _with_prefix("parties/", snapshot.tensors)
        try:
            self.stage.fusion.restore(_with_prefix("fusion/", snapshot.tensors))
            for k, network in enumerate(self.stage.clients):
                network.restore(_with_prefix(f"client/{k}/", snapshot.tensors))
        except (RuntimeError, KeyError) as error:
            raise MtcdError(
                f"The checkpoint is of other networks than those given: {error}"
            ) from None
        # All parties hold one model at a snapshot, so all are in the same iteration.
        for client in self.clients:
            client.t = facts["t"]
        if self.server is not None:
            self.server.t = facts["t"]
            self.server.aggregate = tensors["H"]
            self.server.start_loss = facts.get("start_loss")
            self.server.losses = facts.get("losses", 0.0)
            self.server.uploads = {int(k): h for k, h in _with_prefix("upload.", tensors).items()}
            # The server has Z^t: tokens set out anew, as at the beginning of this iteration.
            return self.server.start_iteration()
        assert self.token is not None
        token = self.token
        for name in PLACES:
            setattr(token, name, facts[name])
        token.put(JOURNEY.name, Journey(facts["heading"], facts.get("start_loss", 0.0)))
        token.aggregate = tensors["H"]
        # The tensors of theta_0 by number; how many there are, the module tells.
        count = len(theta_0_of(token))
        token.put(THETA_0.name, [tensors[f"theta_0.{i}"] for i in range(count)])
        return _arriving(token, self.stage)

    def adopt(self, messages: Iterable[Message]) -> None:
        """Take over the lone token, if it is under way in another process, in one of these
        messages."""
        for message in messages:
            if self.token is not None and isinstance(message.payload, Token):
                for name in (*PLACES, "aggregate", "slots"):
                    setattr(self.token, name, getattr(message.payload, name))

    def _parties(self, opening: Sequence[Message]) -> Parties:
        parties = Parties(
            self.clients,
            self.server,
            opening,
            gather=self._gather,
            checkpointed=self,
            adopt=self.adopt,
            epoch_loss=lambda: self.stage.epoch_loss(),
        )
        if not self.aggregation.hides_parts:
            return parties

        length = self.clients[0].plan.batches.length
        summed = Summed(self.stage.empty()[:length])
        return self.aggregation.parties(replace(parties, summed=summed))

    def _gather(self, clients: Sequence[SplitClient], server: SplitServer | None) -> list[State]:
        """The weights of all networks, copies combined, theta_0 last (without a server: that of the
        token)."""
        self.stage.join()
        for client in clients:
            client.apply_sync(client.t)
        fusion = self.stage.fusion.weights()
        if self.token is not None:
            # The token's theta_0 is the latest. The module also has statistics, which stay.
            for i, value in enumerate(theta_0_of(self.token)):
                fusion = {**fusion, f"parameter.{i}": value}
        return [*(network.weights() for network in self.stage.clients), fusion]


def _prefixed(prefix: str, tensors: State) -> dict[str, Tensor]:
    return {prefix + name: value for name, value in tensors.items()}


def _with_prefix(prefix: str, tensors: State) -> dict[str, Tensor]:
    """The tensors whose names have this prefix, without it."""
    found = {}
    for name, value in tensors.items():
        if name.startswith(prefix):
            found[name.removeprefix(prefix)] = value
    return found


def _arriving(token: Token, stage: SplitStage) -> list[Message]:
    """The messages with which the token arrives at a client, free of charge; no progress during the
    first pass."""
    at = journey_of(token).heading
    progress = []
    if token.hop >= 0:
        progress.append(Message(at, MONITOR, lone_progress(token, stage)))
    return [*progress, Message(at, at, token)]


def split_plan(method: Method, samples: int, outputs: int, network: Network, seed: int) -> Plan:
    """The plan of a method for a split network, whose representations are not linear.

    Raises
    ------
    ConfigError
        If the method, or one of its settings, rests on linear representations.
    """
    if not isinstance(method, TokenMethod):
        raise ConfigError(
            f"{method.kind} trains linear models only: use mtcd, stcd or svfl for split networks."
        )
    method.aggregation.check_split()
    if method.transport != DEFAULT:
        raise ConfigError("method.transport: split networks always send float32: leave it out.")

    plan = replace(method.plan(samples, outputs, network, seed), linear=False)
    # A sync of these adds or averages representations, which is wrong unless h_k is linear in
    # theta_k.
    if plan.roles is not PLAIN_ROLES or plan.majorises or network.changes:
        raise ConfigError(
            "combine: optimal, acceleration, local_solver and network.changes rest on linear "
            "representations: leave them out for split networks."
        )
    if plan.hops is not None or not getattr(method, "first_pass", True):
        return plan
    # Without a server Z^0 is formed on the way: the token passes through all clients first.
    way = walk_through_all(network, plan.roaming.lone_start)
    return replace(plan, first_pass=tuple(way))


def fusing(method: Method, network: Network) -> frozenset[int]:
    """The clients at which theta_0 is updated, without a server."""
    asked = getattr(method, "fusion_client", None)
    # Unless a client has this name.
    if asked == "each" and "each" not in network.clients:
        return frozenset(range(network.size))

    names = ClientNames(network.clients)
    return frozenset([names.number(0 if asked is None else asked, "fusion_client")])


def fusion_plan(method: Method, plan: Plan, network: Network) -> FusionPlan:
    """Where theta_0 is updated, and how often."""
    # S*Q unless given: as many steps as a token makes in an iteration
    steps = getattr(method, "fusion_updates", None) or (plan.hops or 1) * plan.local_updates
    at: frozenset[int] = frozenset()
    if plan.hops is None:
        at = fusing(method, network)
    return FusionPlan(steps, at)


def split_parties(
    method: Method, problem: SplitProblem, network: Network, seed: int
) -> SplitParties:
    """The parties of a method for a split network, with a server unless the token roams for ever."""
    aggregation = method.aggregation
    plan = split_plan(method, problem.samples, problem.outputs, network, seed)
    if plan.hops is None and problem.fusion_keeps_statistics:
        raise ConfigError(
            "stcd has no server to hold the running statistics of batch norm in the fusion module."
        )
    uploads = plan.batches.size is not None or plan.uploads_representations
    if aggregation.hides_parts and not uploads:
        raise ConfigError("privacy.aggregation: masked needs batch for split networks, or svfl.")

    fusion = fusion_plan(method, plan, network)
    lanes = plan.tokens if plan.combine.one_visitor else 1  # two tokens at a client take turns
    stage = problem.stage(plan.batches, lanes)
    # A concatenation has a slot for each client: summed masks would hide nothing.
    if aggregation.hides_parts and not stage.sums:
        raise ConfigError(
            "privacy.aggregation: masked gives the server the sum of the representations: set "
            "model.aggregation to sum or mean. In a concatenation it would see each by itself."
        )
    clients = []
    for k, net in enumerate(stage.clients):
        clients.append(SplitClient(k, net, plan, stage, k in fusion.at))
    if plan.hops is not None:
        server = SplitServer(len(clients), plan, stage, fusion)
        return SplitParties(clients, server, None, stage, aggregation)

    way = plan.first_pass or (plan.roaming.lone_start,)
    # `hop` counts from below 0 up to 0, where training begins.
    token = Token(0, 0, 1 - len(way), stage.empty(), 0.0)
    token.slots = {THETA_0.name: stage.fusion.values(), JOURNEY.name: Journey(way[0])}
    return SplitParties(clients, None, token, stage)


def split_bounds(
    method: Method,
    run: str,
    network: Network,
    seed: int,
    samples: int,
    outputs: int,
    shapes: TensorShapes,
) -> Bounds:
    """The bounds of the messages of a run, which every party computes from the agreed settings."""
    plan = split_plan(method, samples, outputs, network, seed)
    # Computed from the agreed settings alone, before anything arrives: whatever is outside of these
    # bounds is refused.
    bounds = Bounds(
        run,
        network.size,
        split_payloads(plan),
        (plan.batches.length, outputs),
        server=plan.hops is not None,
        tokens=plan.tokens,
        # a token that goes up to a server roams on while it is unreachable
        hops=MOST - 1 if plan.hops is None or plan.tokens_return else plan.hops,
        first_pass=max(0, len(plan.first_pass) - 1),
        tensors=shapes,
    )
    slots = (THETA_0, JOURNEY) if plan.hops is None else (THETA_0, VISITED)
    bounds = bounds.with_slots(*(slot.name for slot in slots), visited=network.size)
    return method.aggregation.bounds(bounds)


def split_payloads(plan: Plan) -> frozenset[type]:
    """The payload classes that the parties send."""
    if plan.hops is None:
        return frozenset({Token, Progress})
    if plan.tokens_return:
        return SPLIT_PAYLOADS - {Done}  # the token itself comes back
    return SPLIT_PAYLOADS


def split_sizes(plan: Plan, widths: Sequence[int], theta_0: int) -> Sizes:
    """Numbers in messages of a split network: clients upload ``widths`` a sample; tokens carry
    theta_0."""
    token = plan.aggregate_floats + theta_0
    # Without tokens that return, the server gets what clients upload at the sync.
    upload = token if plan.tokens_return else _representation(plan, widths)
    return Sizes(upload, token, token)


def opening_cost(plan: Plan, widths: Sequence[int], theta_0: int, costs: Costs) -> float:
    """The cost before the first iteration: all representations, uploaded or collected on a first
    pass."""
    if plan.hops is None:
        hop = split_sizes(plan, widths, theta_0).hop
        return max(0, len(plan.first_pass) - 1) * costs.between_clients(hop)
    return len(widths) * costs.with_server(_representation(plan, widths))


def _representation(plan: Plan, widths: Sequence[int]) -> float:
    """Numbers in the upload of one client, on average."""
    return plan.batches.length * sum(widths) / len(widths)
