"""The server of MTCD: the sync of the paper's Algorithm 2. A visit is in ``client.py``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from mtcd.methods.mtcd.client import Done, Plan, Share, TokenClient, Visits, WithPenalty
from mtcd.network.walks import NOWHERE
from mtcd.protocol.gathering import Fresh, Gathering
from mtcd.protocol.model import Problem
from mtcd.protocol.party import MONITOR, SERVER, Message, Party, Progress, Recovery, send
from mtcd.protocol.token import Token

__all__ = ["TokenClient", "TokenServer", "Visits", "WithPenalty", "opening"]


def opening(
    server: TokenServer, clients: Sequence[TokenClient], problem: Problem
) -> Sequence[Message]:
    """The first messages: Gamma tokens, or, where theta does not start at 0, K uploads that the
    first token sums."""
    if problem.warm:
        return [client.share(0) for client in clients]
    return server.start_iteration()


class TokenServer(Party):
    """The server: sends Gamma equal tokens, and syncs when all are back (Algorithm 2)."""

    state_fields: ClassVar[tuple[str, ...]] = ("t", "aggregate", "penalty", "back", "gathering")
    recovery = Recovery.RESTART

    def __init__(self, clients: int, plan: Plan, problem: Problem | None) -> None:
        assert plan.hops is not None
        self.clients, self.plan, self._problem, self.hops = clients, plan, problem, plan.hops
        # f follows from an aggregate of all samples only.
        self.knows_objective = plan.batches.size is None
        self.t = 0
        self.aggregate, self.penalty = plan.batches.zeros(plan.outputs), 0.0
        self.back: dict[int, Token | Done] = {}
        self.gathering = Gathering(clients)

    @property
    def problem(self) -> Problem:
        """The problem, which only acceleration and optimal sync use: they evaluate f."""
        assert self._problem is not None
        return self._problem

    def receive(self, message: Message) -> Sequence[Message]:
        arrived = message.payload
        if isinstance(arrived, Fresh):
            return self.gather(message.sender, arrived)
        assert isinstance(arrived, Token | Done)
        self.back[arrived.index] = arrived
        if len(self.back) < self.plan.tokens:
            return []
        return self.sync()

    def last_sync(self) -> tuple[int, int]:
        return self.t, self.t * self.hops

    def start_iteration(self) -> Sequence[Message]:
        """Send Z^t to Gamma start clients k ~ P_gamma (line 8)."""
        t, plan = self.t, self.plan
        # The report comes first: it is of Z^t, before `prepare` may replace it.
        messages = self.reports()
        self.prepare()
        for index in range(plan.tokens):
            token, first = self.token(index), plan.roaming.first(index, t)
            if first == NOWHERE:  # all clients of its cluster are absent
                self.back[index] = token
            else:
                messages.append(send(SERVER, first, token))
        return messages

    def token(self, index: int) -> Token:
        """The token gamma = ``index`` at the start of the iteration."""
        # A copy for each token, which clients change in place.
        return self.plan.new_token(index, self.t, self.aggregate.copy(), self.penalty)

    def reports(self) -> list[Message]:
        """The report to the monitor that this iteration begins."""
        t = self.t
        known = self.aggregate if self.knows_objective else None
        return [Message(SERVER, MONITOR, Progress(t * self.hops, t, known, self.penalty))]

    def prepare(self) -> None:
        """Called after the report of an iteration, and before its tokens are made. Most servers
        have nothing to do."""

    def sync(self) -> Sequence[Message]:
        """Full batch: combine the tokens. Mini-batch: request h_k on the next batch from all
        clients."""
        # By index, not by arrival: sums of floats depend on their order, and engines differ in it.
        tokens = [back for _, back in sorted(self.back.items()) if isinstance(back, Token)]
        self.back = {}
        if tokens:
            self.combine(tokens)
            self.t += 1
            return self.start_iteration()
        self.t += 1
        # Nothing came back but signals: Z^{t+1} is of another batch, so all clients represent it
        # anew.
        return [Message(SERVER, k, Share(self.t)) for k in range(self.clients)]

    def combine(self, tokens: Sequence[Token]) -> None:
        """The new aggregate and penalty, from the tokens."""
        self.aggregate = self.plan.combine.aggregate(self.aggregate, tokens)
        # Each visit has added what it changed of the combined penalty, so the sums give it exactly.
        self.penalty += sum(token.sync_penalty for token in tokens)

    def gather(self, client: int, fresh: Fresh) -> Sequence[Message]:
        """Z^t = sum_k h_k on the mini-batch (line 6), once all uploads have arrived."""
        sums = self.gathering.add(client, fresh)
        if sums is None:
            return []
        self.aggregate, self.penalty = sums
        return self.start_iteration()
