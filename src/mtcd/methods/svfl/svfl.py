"""SVFL: the client-server baseline (FedBCD). All clients upload, the server returns the aggregate
to all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import ClassVar

from mtcd.core.arrays import Array
from mtcd.core.checks import check_whole
from mtcd.core.errors import ConfigError
from mtcd.methods.messages import Messages, equipped
from mtcd.methods.method import METHODS, NOT_IN_CONFIG, Stepsize, TokenMethod, resolved_stepsize
from mtcd.methods.mtcd.checks import GRADIENT
from mtcd.methods.mtcd.combine.cluster import Cluster
from mtcd.methods.mtcd.plan import Plan
from mtcd.methods.mtcd.roaming import plan_roaming
from mtcd.methods.mtcd.stepsizes import Schedule, scheduled
from mtcd.methods.prices import Prices
from mtcd.methods.server_sum import PLAIN_SUM, ServerSum
from mtcd.methods.svfl.accelerated import AcceleratedRounds, accelerated_rounds
from mtcd.network.changes import absences
from mtcd.network.topology import Network
from mtcd.protocol.batches import Batches
from mtcd.protocol.codec.limits import Bounds
from mtcd.protocol.codec.payloads import Aggregate, Iteration, Payload, payload
from mtcd.protocol.gathering import Fresh, Gathering
from mtcd.protocol.ledger.costs import Costs, Sizes
from mtcd.protocol.model import ClientModel, LocalUpdates, Problem, Theta
from mtcd.protocol.party import (
    MONITOR,
    SERVER,
    Client,
    Message,
    OnDemand,
    Parties,
    Party,
    Progress,
    Recovery,
    Summed,
    send,
)
from mtcd.protocol.transports.transport import DEFAULT
from mtcd.theory.stepsize import Smoothness, StepsizeRules, theorem_limit

LATER = frozenset({"acceleration", "depth", "adaptive", "local_solver"})
"""Settings that SVFL has had since rounds can be accelerated."""


@payload(7, "s>c")
@dataclass(frozen=True, slots=True)
class Shared(Payload):
    """The aggregate on the batch of this round, to every client."""

    opens_round: ClassVar[bool] = True

    round: Iteration
    aggregate: Aggregate

    @property
    def rounds_ended(self) -> int:
        return self.round

    @property
    def floats(self) -> int:
        return self.aggregate.size

    @property
    def t(self) -> int:
        """The iteration, under the name of other payloads."""
        return self.round


@METHODS.register("svfl")
@dataclass(frozen=True)
class SVFL(TokenMethod):
    """The client-server baseline: in every round all clients talk to the server.

    The server sends the aggregate to all K clients. Each takes Q steps, in which the others' parts
    are those of the start of the round, and uploads.

    Parameters
    ----------
    local_updates : int, default 1
        Q, the steps of a client in each round.
    stepsize : float or 'auto', default 'auto'
        The step size; 'auto' takes it from the smoothness of the problem.
    batch : int, optional
        The number of samples in a mini-batch; all samples unless given.
    schedule : Schedule, optional
        How the step size changes from epoch to epoch.
    fusion_updates : int, optional
        Of split networks: the steps of theta_0 at the server per round.
    acceleration : 'conjugate', 'momentum' or 'anderson', optional
        Ours: rounds start from a combination of the last ``depth``, as accelerated tours of MTCD
        do; the full batch only.
    depth : int, optional
        How many earlier rounds an acceleration combines.
    adaptive : bool, default False
        Whether conjugate rounds choose step size, local updates and depth from their first round,
        which takes ``stepsize``. So they do with stepsize 'auto', too.
    transport : 'float64' or 'float32', default 'float64'
        The form in which aggregates travel.
    local_solver : 'gradient', 'majorise' or 'newton', default 'gradient'
        With ``acceleration``: as of :class:`mtcd.MTCD`.
    aggregation : 'plain', 'masked' or 'double-masked', default 'plain'
        Whether the server sees each upload, or their sum only; set by ``Privacy(aggregation=...)``.

    Examples
    --------
    >>> import mtcd
    >>> mtcd.SVFL(local_updates=5, stepsize=0.01).batch is None
    True
    """

    local_updates: int = 1
    stepsize: Stepsize = "auto"
    batch: int | None = None
    schedule: Schedule | None = None
    fusion_updates: int | None = None
    acceleration: str | None = field(default=None, kw_only=True)
    depth: int | None = field(default=None, kw_only=True)
    adaptive: bool = field(default=False, kw_only=True, metadata=NOT_IN_CONFIG)
    transport: str = field(default=DEFAULT, kw_only=True)
    local_solver: str = field(default=GRADIENT, kw_only=True)
    aggregation: ServerSum = field(default=PLAIN_SUM, kw_only=True, metadata=NOT_IN_CONFIG)

    def __post_init__(self) -> None:
        self._check_local_settings()
        self.aggregation.check(self)
        if self.fusion_updates is not None:
            check_whole("method.fusion_updates", self.fusion_updates)
        if self.acceleration is not None:
            accelerated_rounds(self)  # refuses settings that do not go together
            return

        for name, unset in (("depth", None), ("adaptive", False), ("local_solver", GRADIENT)):
            if getattr(self, name) != unset:
                raise ConfigError(
                    f"method.{name} of svfl is for accelerated rounds: set acceleration, or leave "
                    f"{name} out."
                )

    def __repr__(self) -> str:
        # checkpoints compare methods by their text, and those of before have none of the later ones
        shown = []
        for one in fields(self):
            value = getattr(self, one.name)
            if one.name not in LATER or value != one.default:
                shown.append(f"{one.name}={value!r}")
        return f"SVFL({', '.join(shown)})"

    @property
    def kind(self) -> str:
        return "svfl"

    def describe(self) -> str:
        Q = "auto" if self.chooses_steps else self.local_updates
        parts = [f"SVFL, Q={Q}"]
        if self.batch is not None:
            parts.append(f"B={self.batch}")
        if self.acceleration is not None:
            parts.append(accelerated_rounds(self).describe_acceleration())
        return ", ".join(parts)

    def with_stepsize(self, stepsize: float) -> SVFL:
        return replace(self, stepsize=stepsize, adaptive=self.chooses_steps)

    warm_starts = True
    sums_uploads = True

    @property
    def chooses_steps(self) -> bool:  # type: ignore[override]
        """Whether the acceleration chooses step sizes and local updates."""
        return self.acceleration is not None and accelerated_rounds(self).chooses_steps

    @property
    def loss_at_server(self) -> str:  # type: ignore[override]
        """The acceleration, which computes f at the server."""
        return "" if self.acceleration is None else "acceleration"

    def stepsize_rules(self, smoothness: Smoothness) -> StepsizeRules:
        if self.acceleration is not None:
            return accelerated_rounds(self).stepsize_rules(smoothness)
        return StepsizeRules(theorem_limit(smoothness, 1, self.local_updates, self.batch))

    def stepsize_at(self, t: int, batches: Batches) -> float:
        """The step size of round t, by the schedule."""
        return scheduled(resolved_stepsize(self), self.schedule, t, batches)

    def prices(self, network: Network, tokens: int = 1) -> Prices:
        def opening(costs: Costs, sizes: Sizes) -> float:
            return self.aggregation.opening_cost(network, costs)

        return Prices(network.size, network.size, beside=opening)

    def parties(self, problem: Problem, network: Network, seed: int) -> Parties:
        self.check(network)
        if self.acceleration is not None:
            return self._rounds(network).parties(problem, network, seed)

        batches = Batches(problem.samples, self.batch, seed)
        clients = OnDemand(network.size, lambda k: SVFLClient(k, problem.client(k), self, batches))
        server = SVFLServer(network, batches.zeros(problem.outputs), batches)

        opening: Sequence[Message]
        if problem.warm:
            server.round = -1  # the round before the first: K uploads
            opening = [client.upload(0) for client in clients]
        else:
            opening = server.start_round()

        summed = Summed(server.aggregate, batches=batches, batch_of=_next_batch)
        return equipped(self, Parties(clients, server, opening, summed=summed))

    def messages(self, network: Network, seed: int, samples: int, outputs: int = 1) -> Messages:
        if self.acceleration is not None:
            return self._rounds(network).messages(network, seed, samples, outputs)
        return RoundMessages(self, network, seed, samples, outputs)

    def _rounds(self, network: Network) -> AcceleratedRounds:
        """The tokens of accelerated rounds: one for each client."""
        return accelerated_rounds(self, network.size)

    def plan(self, samples: int, outputs: int, network: Network, seed: int) -> Plan:
        """MTCD with one token per client, which stays there, and a sync after each visit: what SVFL
        is for models whose representations are not linear, and for accelerated rounds."""
        self.check(network)
        if self.acceleration is not None:
            return self._rounds(network).plan(samples, outputs, network, seed)

        K = network.size
        alone = [[k] for k in range(K)]
        return Plan(
            tokens=K,
            hops=1,
            local_updates=self.local_updates,
            stepsize=resolved_stepsize(self),
            combine=Cluster(),
            batches=Batches(samples, self.batch, seed),
            roaming=plan_roaming(network, K, alone, "lazy", None, seed, hops=1),
            outputs=outputs,
            schedule=self.schedule,
            charges_hops=False,
            uploads_representations=True,
        )


class RoundMessages(Messages):
    """The messages of SVFL."""

    def declared(self, general: Bounds) -> Bounds:
        return replace(general, kinds=frozenset({Shared, Fresh, Progress}))


def _next_batch(payload: Payload) -> int | None:
    """The batch whose representation a message requests."""
    return payload.round + 1 if isinstance(payload, Shared) else None


class SVFLClient(Client):
    """Client k: Q steps on a private copy of the aggregate."""

    state_fields = ("theta",)
    recovery = Recovery.ROUNDS

    def __init__(self, number: int, model: ClientModel, method: SVFL, batches: Batches) -> None:
        self.number, self.model, self.batches = number, model, batches
        self.local_updates, self.method = method.local_updates, method
        self.theta = model.initial()

    def receive(self, message: Message) -> Sequence[Message]:
        shared = message.payload
        assert isinstance(shared, Shared)
        eta = self.method.stepsize_at(shared.round, self.batches)
        updates = LocalUpdates(self.local_updates, eta, self.batches.rows(shared.round))
        self.theta = self.model.local_update(self.theta, shared.aggregate.copy(), updates)
        return [self.upload(shared.round + 1)]

    def upload(self, round_: int) -> Message:
        """Send h_k on the batch of a round to the server."""
        h = self.model.represent(self.theta, self.batches.rows(round_))
        return send(self.number, SERVER, Fresh(h, self.model.penalty(self.theta)))

    def parameters(self) -> Theta:
        """theta_k after the local updates of the latest round."""
        return self.theta


class SVFLServer(Party):
    """The server: sums the representations and sends the sum to all; of absent clients, the last
    upload counts."""

    state_fields = ("round", "aggregate", "penalty", "gathering")
    recovery = Recovery.ROUNDS

    def __init__(self, network: Network, aggregate: Array, batches: Batches) -> None:
        self.clients, self.batches, self.absences = network.size, batches, absences(network)
        self.aggregate, self.penalty = aggregate, 0.0
        self.round = 0
        self.gathering = Gathering(
            network.size, dict.fromkeys(self.absent(0), Fresh(aggregate, 0.0))
        )

    def absent(self, round_: int) -> frozenset[int]:
        """The clients that are absent in a round."""
        return next(absent for begins, absent in reversed(self.absences) if begins <= round_)

    def last_sync(self) -> tuple[int, int]:
        return self.round, self.round

    def start_round(self) -> Sequence[Message]:
        """Send the aggregate to every present client."""
        # f follows from the aggregate of all samples only.
        known = self.aggregate if self.batches.size is None else None
        progress = Progress(self.round, self.round, known, self.penalty)

        shared, absent = Shared(self.round, self.aggregate), self.absent(self.round)
        messages = [Message(SERVER, MONITOR, progress)]
        for k in range(self.clients):
            if k not in absent:
                messages.append(send(SERVER, k, shared))
        return messages

    def receive(self, message: Message) -> Sequence[Message]:
        assert isinstance(message.payload, Fresh)
        sums = self.gathering.add(message.sender, message.payload, self.absent(self.round + 1))
        if sums is None:
            return []
        self.aggregate, self.penalty = sums
        self.round += 1
        return self.start_round()
