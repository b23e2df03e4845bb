"""Makes the parties of a split network, takes their snapshots and resumes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from mtcd.core.errors import ConfigError, MtcdError
from mtcd.methods.mtcd.client import Plan
from mtcd.methods.server_sum import PLAIN_SUM, ServerSum
from mtcd.models.splitnet.parties import (
    FusionPlan,
    SplitClient,
    SplitServer,
    SplitToken,
    lone_progress,
)
from mtcd.protocol.ledger.costs import Costs, Sizes
from mtcd.protocol.model import SplitStage, State, Tensor
from mtcd.protocol.party import MONITOR, Message, Parties, Summed
from mtcd.protocol.state import Snapshot

PLACES = ("t", "hop", "previous", "heading")  # of a token


@dataclass(frozen=True)
class SplitParties:
    """All parties. The position of the training is in the server or, without one, in the lone
    token."""

    clients: Sequence[SplitClient]
    server: SplitServer | None
    token: SplitToken | None
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
        theta_0 = {f"theta_0.{i}": value for i, value in enumerate(self.token.theta_0)}
        places = {name: getattr(self.token, name) for name in (*PLACES, "start_loss")}
        return places, {"H": self.token.aggregate, **theta_0}

    def resume(self, snapshot: Snapshot) -> Sequence[Message]:
        """Restore all parties; returns the messages that continue the training."""
        facts, tensors = snapshot.facts, _with_prefix("parties/", snapshot.tensors)
        try:
            self.stage.fusion.restore(_with_prefix("fusion/", snapshot.tensors))
            for k, network in enumerate(self.stage.clients):
                network.restore(_with_prefix(f"client/{k}/", snapshot.tensors))
        except (RuntimeError, KeyError) as error:
            raise MtcdError(
                f"The checkpoint is of other networks than those given: {error}"
            ) from None
        for client in self.clients:
            client.t = facts["t"]
        if self.server is not None:
            self.server.t, self.server.aggregate = facts["t"], tensors["H"]
            self.server.start_loss, self.server.losses = (
                facts.get("start_loss"),
                facts.get("losses", 0.0),
            )
            self.server.uploads = {int(k): h for k, h in _with_prefix("upload.", tensors).items()}
            return self.server.start_iteration()
        assert self.token is not None
        token = self.token
        for name in PLACES:
            setattr(token, name, facts[name])
        token.start_loss = facts.get("start_loss", 0.0)
        token.aggregate = tensors["H"]
        token.theta_0 = [tensors[f"theta_0.{i}"] for i in range(len(token.theta_0))]
        return _arriving(token, self.stage)

    def adopt(self, messages: Iterable[Message]) -> None:
        """Take over the lone token, if it is under way in another process, in one of these
        messages."""
        for message in messages:
            if self.token is not None and isinstance(message.payload, SplitToken):
                for name in (*PLACES, "start_loss", "aggregate", "theta_0"):
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

        length = self.clients[0].plan.batches.length  # no mutants: all have the same plan
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
            fusion = {
                **fusion,
                **{f"parameter.{i}": value for i, value in enumerate(self.token.theta_0)},
            }
        return [*(network.weights() for network in self.stage.clients), fusion]


def _prefixed(prefix: str, tensors: State) -> dict[str, Tensor]:
    return {prefix + name: value for name, value in tensors.items()}


def _with_prefix(prefix: str, tensors: State) -> dict[str, Tensor]:
    """The tensors whose names have this prefix, without it."""
    return {
        name.removeprefix(prefix): value
        for name, value in tensors.items()
        if name.startswith(prefix)
    }


def _arriving(token: SplitToken, stage: SplitStage) -> list[Message]:
    """The messages with which the token arrives at a client, free of charge; no progress during the
    first pass."""
    at = token.heading
    progress = [Message(at, MONITOR, lone_progress(token, stage))] if token.hop >= 0 else []
    return [*progress, Message(at, at, token)]


def split_parties(
    stage: SplitStage, plan: Plan, fusion: FusionPlan, aggregation: ServerSum = PLAIN_SUM
) -> SplitParties:
    """The parties of a split network, with a server unless the token roams for ever."""
    if aggregation.hides_parts and not stage.sums:
        raise ConfigError(
            "privacy.aggregation: masked gives the server the sum of the representations: set "
            "model.aggregation to "
            "sum or mean. In a concatenation it would see each by itself."
        )
    plan = replace(plan, linear=False)
    clients = [
        SplitClient(k, network, plan, stage, k in fusion.at)
        for k, network in enumerate(stage.clients)
    ]
    if plan.hops is not None:
        return SplitParties(
            clients, SplitServer(len(clients), plan, stage, fusion), None, stage, aggregation
        )
    way = plan.first_pass or (plan.roaming.lone_start,)
    token = SplitToken(0, 0, 1 - len(way), stage.empty(), 0.0, extra=stage.fusion.size)
    token.theta_0, token.heading = stage.fusion.values(), way[0]
    return SplitParties(clients, None, token, stage)


def split_sizes(plan: Plan, widths: Sequence[int], theta_0: int) -> Sizes:
    """Numbers in messages of a split network: clients upload ``widths`` a sample; tokens carry
    theta_0."""
    token = plan.aggregate_floats + theta_0
    return Sizes(token if plan.tokens_return else _representation(plan, widths), token, token)


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
