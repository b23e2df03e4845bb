"""The parties of split networks: the same roaming and sync as ``token_parties.py``, for representations that are not
linear. What is different: the token carries theta_0, the server (or a client, without one) updates it, and whatever
copies are averaged, every client it concerns has to represent its samples anew.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from mtcd.arrays import Array
from mtcd.methods.hosting import Done, Plan, Share, TokenHost
from mtcd.methods.token_parties import TokenServer
from mtcd.network.walks import NOWHERE
from mtcd.protocol.gathering import Fresh
from mtcd.protocol.model import ClientNetwork, EpochLoss, SplitStage, State, Tensor, Visit
from mtcd.protocol.party import MONITOR, SERVER, Message, Progress, send
from mtcd.protocol.token import HOPS, Token
from mtcd.schema.arrays import FusionField
from mtcd.schema.bounds import Bounds
from mtcd.schema.fields import Whole
from mtcd.schema.payloads import Payload, payload
from mtcd.schema.types import Iteration, Number, last_client

NO_NUMBERS: Array = np.zeros(0)


@payload(8, "s>itself")
@dataclass(frozen=True, slots=True)
class UpdateFusion(Payload):
    """The server reminds itself of theta_0, once the tokens are on their way."""

    t: Iteration


@payload(3, HOPS)
@dataclass(slots=True)
class SplitToken(Token):
    """Z = (H, theta_0). ``heading``: the client that it is on its way to.

    Without a server, ``hop`` is negative on the first pass: so many hops are left before training starts. Nobody else
    remembers the loss at the start then, so it goes along as ``start_loss``: like t and hop, it is not counted.
    """

    theta_0: Annotated[Sequence[Tensor], FusionField()] = ()
    heading: Annotated[int, Whole(last_client, low=NOWHERE)] = NOWHERE
    start_loss: Number = 0.0

    @property
    def floats(self) -> int:
        return math.prod(self.aggregate.shape) + self.extra

    @property
    def wide_floats(self) -> int:
        return 0  # theta_0 travels as the aggregate does

    def expected_extra(self, bounds: Bounds) -> int:
        return sum(math.prod(shape) for shape in bounds.theta_0)


SPLIT_PAYLOADS: frozenset[type] = frozenset({SplitToken, Done, Share, Fresh, UpdateFusion, Progress})
"""Those of split networks with a server."""


@dataclass(frozen=True, eq=False)
class FusionPlan:
    """Who updates theta_0: the server with so many ``steps`` an iteration, or, without one, clients ``at`` visits."""

    steps: int
    at: frozenset[int] = frozenset()


class SplitClient(TokenHost):
    """Client k: its network holds theta_k, or the copy of the token that came last; the other copies are kept."""

    state_fields = ("t", "start", "copies", "in_hand")

    def __init__(self, number: int, network: ClientNetwork, plan: Plan, stage: SplitStage, fuses: bool = False) -> None:
        self.number, self.network, self.plan, self.stage, self.fuses = number, network, plan, stage, fuses
        self.t = 0
        self.start: State = {}
        self.copies: dict[int, State] = {}
        self.in_hand: int | None = None
        """Whose copy is in the network; None: theta_k itself."""

    def visit(self, token: Token) -> None:
        """With a first pass, the client adds h_k when the token first comes by, so that Z^0 is true to theta^0
        (Algorithm 1, line 2). Once that is over, it trains.
        """
        assert isinstance(token, SplitToken)
        with self.stage.lane(token.index):
            if self.plan.first_pass:
                token.aggregate = self.network.join(token.aggregate, token.t)
            if token.hop >= 0:
                self.train(token)

    def train(self, token: SplitToken) -> None:
        """Q local updates of the copy theta_k(gamma), the token kept true (Algorithm 1, lines 7-9)."""
        plan, full_batch = self.plan, self.plan.batches.size is None
        asked = Visit(
            t=token.t,
            hop=token.hop if full_batch else None,
            local_updates=plan.local_updates,
            stepsize=plan.stepsize_at(token.t),
            fuses=self.fuses,
            updates_statistics=full_batch and (plan.hops is None or plan.tokens_return),
        )
        if token.t != self.t:
            self.apply_sync(token.t)
        self.take_up(token.index)
        token.aggregate = self.network.local_update(token.aggregate, token.theta_0, asked)
        if full_batch and plan.hops is not None:
            token.tally.visited.add(self.number)

    def take_up(self, index: int) -> None:
        """Put the copy for this token into the network. Where no other token comes by, it is there already."""
        if self.plan.combine.one_visitor or self.in_hand == index:
            return
        if self.in_hand is None:
            self.start = self.network.state()
        else:
            self.copies[self.in_hand] = self.network.state()
            self.network.load(self.copies.get(index, self.start))
        self.in_hand = index

    def apply_sync(self, t: int) -> None:
        """The sync: theta_k = sum_gamma w_k,gamma theta_k(gamma) (Algorithm 2, line 11)."""
        if self.in_hand is not None:
            self.copies[self.in_hand] = self.network.state()
            copies = [self.copies[index] for index in sorted(self.copies)]
            weight = self.plan.combine.weight(len(copies), self.plan.tokens)
            self.network.load(self.network.mixed(self.start, copies, weight))
        self.start, self.copies, self.in_hand, self.t = {}, {}, None, t

    def share(self, t: int) -> Message:
        """Send h_k on the batch of iteration t to the server (Algorithm 2, line 5)."""
        with self.stage.lane(self.number):
            self.apply_sync(t)
            h = self.network.represent(t)
        return send(self.number, SERVER, Fresh(h, 0.0))

    def pass_on(self, token: Token) -> Sequence[Message]:
        """On to a neighbour, or up to the server after S hops (Algorithm 1, line 10)."""
        assert isinstance(token, SplitToken)
        first_pass = token.hop < 0
        on, *others = super().pass_on(token)
        token.heading = on.to
        if first_pass:
            on.hop_floats = 0  # a message, but no hop of the training
        told = [Message(self.number, MONITOR, lone_progress(token, self.stage)) for _ in others if token.hop >= 0]
        return [on, *told]

    def next_client(self, token: Token) -> int:
        """Where the first pass or the walk leads from here."""
        if token.hop <= 0 and self.plan.first_pass:
            return self.plan.first_pass[token.hop - 1]
        return super().next_client(token)

    def parameters(self) -> Array:
        """They stay in the network."""
        return NO_NUMBERS

    def state(self) -> dict[str, Any]:
        """What it must not forget, and what its network must not."""
        return super().state() | {"network": self.network.memory()}

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self.network.remember(state["network"])


class SplitServer(TokenServer):
    """The server: gathers Z^t, sends it out, and updates theta_0 while the tokens roam (Algorithm 2)."""

    state_fields = (*TokenServer.state_fields, "uploads", "awaited", "fused", "start_loss", "losses")

    def __init__(self, clients: int, plan: Plan, stage: SplitStage, fusion: FusionPlan) -> None:
        super().__init__(clients, plan, None)
        self.stage, self.fusion = stage, fusion
        self.knows_objective = False
        self.uploads: dict[int, Tensor] = {}
        self.awaited: set[int] = set()
        self.theta_0: Sequence[Tensor] = ()
        self.fused = -1
        """The last iteration in which theta_0 was updated."""
        self.start_loss: float | None = None
        self.losses: float | Tensor = 0.0
        """The sum over the iterations of this epoch but its first."""

    @property
    def keeps_uploads(self) -> bool:
        """Whether what a client once told stays in the aggregate until it tells something new."""
        return self.plan.batches.size is None and not self.plan.tokens_return

    def ask(self, clients: Iterable[int]) -> Sequence[Message]:
        """Ask for h_k on the batch of this iteration (line 5)."""
        self.awaited = set(clients)
        return [Message(SERVER, k, Share(self.t)) for k in sorted(self.awaited)]

    def receive(self, message: Message) -> Sequence[Message]:
        if isinstance(message.payload, UpdateFusion):
            if message.payload.t == self.t:  # a reminder that comes late finds it done
                self.update_fusion()
            return []
        return super().receive(message)

    def gather(self, client: int, fresh: Fresh) -> Sequence[Message]:
        """Z^t, when all whom the server asked have told theirs (line 6)."""
        self.uploads[client] = fresh.representation
        self.awaited.discard(client)
        if self.awaited:
            return []
        self.stage.join()
        self.aggregate = self.stage.aggregate([self.uploads[k] for k in range(self.clients)])
        self.uploads = self.uploads if self.keeps_uploads else {}
        return self.start_iteration()

    def start_iteration(self) -> Sequence[Message]:
        """Send Z^t to Gamma start clients, and then turn to theta_0 (lines 8 and 10)."""
        self.theta_0 = self.stage.fusion.values()
        if self.start_loss is None:
            self.start_loss = self._first_loss()
        self.stage.epoch_loss = self.epoch_loss
        return [*super().start_iteration(), Message(SERVER, SERVER, UpdateFusion(self.t))]

    def _first_loss(self) -> float:
        """A batch may be fit by chance, so with mini-batches the loss is at least that of saying nothing."""
        first = float(self.stage.fusion.loss(self.aggregate, self.theta_0, self.t))
        return first if self.plan.batches.size is None else max(first, self.stage.fusion.blank_loss())

    def epoch_loss(self) -> EpochLoss | None:
        """The mean loss of as many batches as there are in an epoch, up to that of Z^t; where an epoch begins."""
        per_epoch = self.plan.batches.per_epoch
        if self.t % per_epoch or self.start_loss is None:
            return None
        latest = self.stage.fusion.loss(self.aggregate, self.theta_0, self.t)
        return EpochLoss(self.start_loss, float((self.losses + latest) / per_epoch) if self.t else float(latest))

    def token(self, index: int) -> Token:
        """A token as it sets out. All share one Z^t: no client writes into what it is given, theta_0 is not theirs."""
        return SplitToken(index, self.t, 0, self.aggregate, 0.0, extra=self.stage.fusion.size, theta_0=self.theta_0)

    def update_fusion(self) -> None:
        """Steps of theta_0 on Z^t, once in an iteration."""
        if self.fused < self.t:
            loss = self.stage.fusion.local_update(
                self.aggregate, self.t, self.fusion.steps, self.plan.stepsize_at(self.t)
            )
            self.losses = self.losses + loss if self.t % self.plan.batches.per_epoch else 0.0
            self.fused = self.t

    def sync(self) -> Sequence[Message]:
        """All tokens are back. Either they tell the new aggregate, or those whom it concerns are asked for theirs."""
        self.update_fusion()
        self.stage.join()
        if self.plan.tokens_return:
            return super().sync()
        visited = {k for back in self.back.values() if isinstance(back, Done) for k in back.visited}
        self.back = {}
        self.t += 1
        everybody = self.plan.batches.size is not None or not self.plan.charges_hops
        return self.ask(range(self.clients) if everybody else visited)

    def combine(self, tokens: Sequence[Token]) -> None:
        """Each token has changed what its own cluster put in: the changes add up."""
        start = self.aggregate
        self.aggregate = start + sum(token.aggregate - start for token in tokens)

    def state(self) -> dict[str, Any]:
        """What it must not forget, and theta_0 with all that belongs to it."""
        return super().state() | {"fusion": self.stage.fusion.memory()}

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self.stage.fusion.remember(state["fusion"])


def lone_progress(token: SplitToken, stage: SplitStage) -> Progress:
    """The progress that a token reports which is alone. It has the full batch, so its loss can be seen."""

    def loss() -> float:
        stage.join()
        return float(stage.fusion.loss(token.aggregate, token.theta_0, token.t))

    if not token.start_loss:  # the first moment
        token.start_loss = loss()
    stage.epoch_loss = lambda: EpochLoss(token.start_loss, loss())
    return Progress(token.hop, token.t, None, 0.0)
