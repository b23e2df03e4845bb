"""The cast of a split network: set up, or put back to where an earlier training was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from mtcd.ledger.costs import Costs, Sizes
from mtcd.methods.hosting import Plan
from mtcd.methods.split_parties import FusionPlan, SplitClient, SplitServer, SplitToken, lone_progress
from mtcd.protocol.model import SplitStage, Tensor
from mtcd.protocol.party import MONITOR, Cast, Message

PLACES = ("t", "hop", "previous", "heading")  # of a token


@dataclass(frozen=True)
class SplitParties:
    """All parties, and where the training is: in the server, or in the one token that roams without it."""

    clients: Sequence[SplitClient]
    server: SplitServer | None
    token: SplitToken | None
    stage: SplitStage

    def cast(self) -> Cast:
        """From the start: the server asks everybody, or the token sets out, on its first pass if it makes one."""
        if self.server is not None:
            return self._cast(self.server.ask(range(len(self.clients))))
        assert self.token is not None
        return self._cast(_arriving(self.token))

    def position(self) -> tuple[dict[str, int], dict[str, Tensor]]:
        """Where the training is, at a moment when the parties hold one model: facts and tensors."""
        if self.server is not None:
            uploads = {f"upload.{k}": h for k, h in self.server.uploads.items()} if self.server.keeps_uploads else {}
            return {"t": self.server.t}, {"H": self.server.aggregate, **uploads}
        assert self.token is not None
        theta_0 = {f"theta_0.{i}": value for i, value in enumerate(self.token.theta_0)}
        return {name: getattr(self.token, name) for name in PLACES}, {"H": self.token.aggregate, **theta_0}

    def cast_from(self, facts: Mapping[str, int], tensors: Mapping[str, Tensor]) -> Cast:
        """From such a position. The networks of all parties have been put back already."""
        for client in self.clients:
            client.t = facts["t"]
        if self.server is not None:
            self.server.t, self.server.aggregate = facts["t"], tensors["H"]
            uploads = {name: h for name, h in tensors.items() if name.startswith("upload.")}
            self.server.uploads = {int(name.removeprefix("upload.")): h for name, h in uploads.items()}
            return self._cast(self.server.start_iteration())
        assert self.token is not None
        token = self.token
        for name in PLACES:
            setattr(token, name, facts[name])
        token.aggregate = tensors["H"]
        token.theta_0 = [tensors[f"theta_0.{i}"] for i in range(len(token.theta_0))]
        return self._cast(_arriving(token))

    def _cast(self, opening: Sequence[Message]) -> Cast:
        return Cast(self.clients, self.server, opening, gather=self._gather)

    def _gather(self) -> list[Tensor]:
        """The parameters stay in the networks; there, copies are combined. Of a token that is alone, theta_0."""
        self.stage.join()
        for client in self.clients:
            client.settle(client.t)
        return [] if self.token is None else list(self.token.theta_0)


def _arriving(token: SplitToken) -> list[Message]:
    """The token comes to a client; nobody is charged for it. There is no progress before the first pass is over."""
    at = token.heading
    progress = [Message(at, MONITOR, lone_progress(token))] if token.hop >= 0 else []
    return [*progress, Message(at, at, token)]


def split_parties(stage: SplitStage, plan: Plan, fusion: FusionPlan) -> SplitParties:
    """The parties of a split network, with a server unless the token roams for ever."""
    plan = replace(plan, linear=False)
    clients = [SplitClient(k, network, plan, stage, k in fusion.at) for k, network in enumerate(stage.clients)]
    if plan.hops is not None:
        return SplitParties(clients, SplitServer(len(clients), plan, stage, fusion), None, stage)
    way = plan.first_pass or (plan.roaming.first(0, 0),)
    token = SplitToken(0, 0, 1 - len(way), stage.nothing(), 0.0, extra=stage.fusion.size)
    token.theta_0, token.heading = stage.fusion.values(), way[0]
    return SplitParties(clients, None, token, stage)


def split_sizes(plan: Plan, widths: Sequence[int], theta_0: int) -> Sizes:
    """Numbers in messages of a split network: clients tell theirs, ``widths`` a sample; theta_0 goes with tokens."""
    token = plan.aggregate_floats + theta_0
    return Sizes(token if plan.tokens_return else _representation(plan, widths), token, token)


def opening_cost(plan: Plan, widths: Sequence[int], theta_0: int, costs: Costs) -> float:
    """What is charged before the first iteration: the representations of all, uploaded or collected on a first pass."""
    if plan.hops is None:
        hop = split_sizes(plan, widths, theta_0).hop
        return max(0, len(plan.first_pass) - 1) * costs.between_clients(hop)
    return len(widths) * costs.with_server(_representation(plan, widths))


def _representation(plan: Plan, widths: Sequence[int]) -> float:
    """Numbers in the upload of one client, on average."""
    return plan.batches.length * sum(widths) / len(widths)
