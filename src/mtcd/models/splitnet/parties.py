"""The parties of split networks: the roaming and sync of ``methods/mtcd``, for representations that
are not linear.

Differences: the token carries theta_0; the server (or a client, without one) updates theta_0; and
every client whose copies are averaged has to recompute its representation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mtcd.core.arrays import Array
from mtcd.methods.mtcd.client import Done, Plan, Share, TokenHost
from mtcd.methods.mtcd.server import TokenServer
from mtcd.models.splitnet.slots import (
    JOURNEY,
    THETA_0,
    VISITED,
    journey_of,
    theta_0_of,
    visited_by,
)
from mtcd.protocol.codec.payloads import Iteration, Payload, payload
from mtcd.protocol.gathering import Fresh
from mtcd.protocol.model import ClientNetwork, EpochLoss, SplitStage, State, Tensor, Visit
from mtcd.protocol.party import MONITOR, SERVER, Message, Progress, send
from mtcd.protocol.token import Token

NO_NUMBERS: Array = np.zeros(0)


@payload(8, "s>itself")
@dataclass(frozen=True, slots=True)
class UpdateFusion(Payload):
    """The server's message to itself to update theta_0, after it has sent the tokens."""

    t: Iteration


SPLIT_PAYLOADS: frozenset[type] = frozenset({Token, Done, Share, Fresh, UpdateFusion, Progress})
"""The payloads of split networks with a server."""


@dataclass(frozen=True, eq=False)
class FusionPlan:
    """Where theta_0 is updated: at the server, ``steps`` an iteration; without one, during visits
    at clients ``at``."""

    steps: int
    at: frozenset[int] = frozenset()


class SplitClient(TokenHost):
    """Client k. Its network holds theta_k or the copy of the last token; ``copies`` holds the other
    copies."""

    state_fields = ("t", "start", "copies", "in_hand")

    def __init__(
        self,
        number: int,
        network: ClientNetwork,
        plan: Plan,
        stage: SplitStage,
        fuses: bool = False,
    ) -> None:
        self.number = number
        self.network = network
        self.plan = plan
        self.stage = stage
        self.fuses = fuses
        self.t = 0
        self.start: State = {}
        self.copies: dict[int, State] = {}
        self.in_hand: int | None = None
        """The token whose copy is in the network; None: theta_k itself."""

    def visit(self, token: Token) -> None:
        """On the first pass, if there is one, add h_k, so that Z^0 is the aggregate of theta^0
        (Algorithm 1, line 2). After it, train.
        """
        with self.stage.lane(token.index):
            # Only on the first pass: afterwards the token contains h_k, and `join` does nothing.
            if self.plan.first_pass:
                token.aggregate = self.network.join(token.aggregate, token.t)
            if token.hop >= 0:
                self.train(token)

    def train(self, token: Token) -> None:
        """Q local updates of the copy theta_k(gamma) and of the token's aggregate (Algorithm 1,
        lines 7-9)."""
        plan = self.plan
        full_batch = self.plan.batches.size is None
        asked = Visit(
            t=token.t,
            # Statistics of a mini-batch are updated when the batch is represented (`share`), once
            # per batch.
            hop=token.hop if full_batch else None,
            local_updates=plan.local_updates,
            stepsize=plan.stepsize_at(token.t),
            fuses=self.fuses,
            updates_statistics=full_batch and (plan.hops is None or plan.tokens_return),
        )
        # The visit is the first of a newer iteration: the sync of the last one has taken place.
        if token.t != self.t:
            self.apply_sync(token.t)
        self.load_copy(token.index)
        token.aggregate = self.network.local_update(token.aggregate, theta_0_of(token), asked)
        # With the full batch, copies are averaged at the sync, and these clients have to upload
        # anew.
        if full_batch and plan.hops is not None:
            token.put(VISITED.name, visited_by(token) | {self.number})

    def load_copy(self, index: int) -> None:
        """Load the copy for this token into the network. With one token per client it is loaded
        already."""
        if self.plan.combine.one_visitor or self.in_hand == index:
            return
        # The network is about to hold a copy: theta^t must not be lost, as every copy starts from
        # it.
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
            # By the numbers of tokens: sums in another order would round differently.
            copies = [self.copies[index] for index in sorted(self.copies)]
            weight = self.plan.combine.weight(len(copies), self.plan.tokens)
            self.network.load(self.network.mixed(self.start, copies, weight))
        self.start = {}
        self.copies = {}
        self.in_hand = None
        self.t = t

    def share(self, t: int) -> Message:
        """Send h_k on the batch of iteration t to the server (Algorithm 2, line 5)."""
        with self.stage.lane(self.number):
            self.apply_sync(t)
            h = self.network.represent(t)
        return send(self.number, SERVER, Fresh(h, 0.0))

    def pass_on(self, token: Token) -> Sequence[Message]:
        """Send the token to the next client, or to the server after S hops (Algorithm 1, line
        10)."""
        first_pass = token.hop < 0
        on, *others = super().pass_on(token)
        if self.plan.hops is None:
            token.put(JOURNEY.name, replace(journey_of(token), heading=on.to))
        if first_pass:
            on.hop_floats = 0  # a message, but no hop of the training
        progress = []
        for _ in others:
            if token.hop >= 0:
                progress.append(Message(self.number, MONITOR, lone_progress(token, self.stage)))
        return [on, *progress]

    def done(self, token: Token) -> Done:
        return Done(token.index, visited_by(token))

    def next_client(self, token: Token) -> int:
        """The next client of the first pass or of the walk."""
        # A first pass goes the way that the plan has chosen; `hop` counts up to 0, where training
        # starts.
        if token.hop <= 0 and self.plan.first_pass:
            return self.plan.first_pass[token.hop - 1]
        return super().next_client(token)

    def parameters(self) -> Array:
        """Empty: the network holds the parameters."""
        return NO_NUMBERS

    def state(self) -> dict[str, Any]:
        """The state of the client and of its network."""
        return super().state() | {"network": self.network.full_state()}

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self.network.restore(state["network"])


class SplitServer(TokenServer):
    """The server: gathers Z^t, sends it out, and updates theta_0 while the tokens roam (Algorithm
    2)."""

    state_fields = (
        *TokenServer.state_fields,
        "uploads",
        "awaited",
        "fused",
        "start_loss",
        "losses",
    )

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
        """Whether an upload stays in the aggregate until the next one of the same client."""
        return self.plan.batches.size is None and not self.plan.tokens_return

    def ask(self, clients: Iterable[int]) -> Sequence[Message]:
        """Request h_k on the batch of this iteration (line 5)."""
        self.awaited = set(clients)
        return [Message(SERVER, k, Share(self.t)) for k in sorted(self.awaited)]

    def receive(self, message: Message) -> Sequence[Message]:
        if isinstance(message.payload, UpdateFusion):
            if message.payload.t == self.t:  # the sync may have updated theta_0 before
                self.update_fusion()
            return []
        return super().receive(message)

    def gather(self, client: int, fresh: Fresh) -> Sequence[Message]:
        """Z^t, once all requested uploads have arrived (line 6)."""
        self.uploads[client] = fresh.representation
        self.awaited.discard(client)
        if self.awaited:
            return []
        self.stage.join()
        # In the order of clients, whoever answered first: the sum must not depend on it.
        self.aggregate = self.stage.aggregate([self.uploads[k] for k in range(self.clients)])
        if not self.keeps_uploads:
            self.uploads = {}
        return self.start_iteration()

    def start_iteration(self) -> Sequence[Message]:
        """Send Z^t to Gamma start clients, then update theta_0 (lines 8 and 10)."""
        # Before the update of theta_0, which follows the tokens: clients use theta_0^t (Algorithm
        # 2).
        self.theta_0 = self.stage.fusion.values()
        if self.start_loss is None:
            self.start_loss = self._first_loss()
        self.stage.epoch_loss = self.epoch_loss
        # A message to itself: the server must send all tokens before it computes.
        return [*super().start_iteration(), Message(SERVER, SERVER, UpdateFusion(self.t))]

    def _first_loss(self) -> float:
        """The loss at the start; with mini-batches at least that of zero representations, as one
        batch may fit well."""
        first = float(self.stage.fusion.loss(self.aggregate, self.theta_0, self.t))
        if self.plan.batches.size is None:
            return first
        return max(first, self.stage.fusion.blank_loss())

    def epoch_loss(self) -> EpochLoss | None:
        """The mean loss of the last epoch, up to the batch of Z^t; None unless an epoch begins at
        t."""
        per_epoch = self.plan.batches.per_epoch
        if self.t % per_epoch or self.start_loss is None:
            return None
        latest = self.stage.fusion.loss(self.aggregate, self.theta_0, self.t)
        mean = latest
        if self.t:
            mean = (self.losses + latest) / per_epoch
        return EpochLoss(self.start_loss, float(mean))

    def token(self, index: int) -> Token:
        """The token at the start of the iteration. All tokens share Z^t: no client writes to it or
        to theta_0."""
        return Token(index, self.t, 0, self.aggregate, 0.0, slots={THETA_0.name: self.theta_0})

    def update_fusion(self) -> None:
        """Update theta_0 on Z^t, once in an iteration."""
        if self.fused < self.t:
            loss = self.stage.fusion.local_update(
                self.aggregate, self.t, self.fusion.steps, self.plan.stepsize_at(self.t)
            )
            # The first batch of an epoch is left out: the one after its last takes its place
            # (`epoch_loss`).
            self.losses = self.losses + loss if self.t % self.plan.batches.per_epoch else 0.0
            self.fused = self.t

    def sync(self) -> Sequence[Message]:
        """All tokens are back: combine them, or request new representations from the clients whose
        copies changed."""
        # If the message to itself has not been processed yet, as all tokens came back first.
        self.update_fusion()
        self.stage.join()
        if self.plan.tokens_return:
            return super().sync()
        visited = {k for back in self.back.values() if isinstance(back, Done) for k in back.visited}
        self.back = {}
        self.t += 1
        # With mini-batches all represent the next batch; rounds of svfl upload with the full batch too.
        all_upload = self.plan.batches.size is not None or self.plan.uploads_representations
        return self.ask(range(self.clients) if all_upload else visited)

    def combine(self, tokens: Sequence[Token]) -> None:
        """Add up the changes: each token has changed the contributions of its own cluster."""
        start = self.aggregate
        self.aggregate = start + sum(token.aggregate - start for token in tokens)

    def state(self) -> dict[str, Any]:
        """The state of the server and of theta_0."""
        return super().state() | {"fusion": self.stage.fusion.full_state()}

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self.stage.fusion.restore(state["fusion"])


def lone_progress(token: Token, stage: SplitStage) -> Progress:
    """The progress report of a lone token; it sets the ``epoch_loss`` of the stage, on the full
    batch."""

    def loss() -> float:
        stage.join()
        return float(stage.fusion.loss(token.aggregate, theta_0_of(token), token.t))

    if not journey_of(token).start_loss:  # the first report
        token.put(JOURNEY.name, replace(journey_of(token), start_loss=loss()))
    stage.epoch_loss = lambda: EpochLoss(journey_of(token).start_loss, loss())
    return Progress(token.hop, token.t, None, 0.0)
