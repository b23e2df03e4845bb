"""The parties of MTCD: the paper's Algorithm 2, with Algorithm 1 (TokenRoaming) inside.

:class:`TokenClient` implements a visit (the roaming), :class:`TokenServer` the sync. STCD is the same client with one
token, endless roaming and no server.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from mtcd.methods.hosting import Done, Plan, Share, TokenHost
from mtcd.model.updates import LocalUpdates
from mtcd.network.walks import NOWHERE
from mtcd.protocol.gathering import Fresh, Gathering
from mtcd.protocol.model import ClientModel, Problem, Theta
from mtcd.protocol.party import MONITOR, SERVER, Message, Party, Progress, Recovery, send
from mtcd.protocol.token import NO_INSTRUCTION, NOTHING, Tally, Token

WithPenalty = tuple[Theta, float]  # parameters and their penalty
Visits = tuple[dict[int, WithPenalty], WithPenalty]  # copies, and their combination


class TokenClient(TokenHost):
    """Client k: keeps theta_k, and one copy of it for each token that visits between two syncs.

    Parameters are kept together with their penalty r(theta_k), so that it is computed once.
    """

    state_fields: ClassVar[tuple[str, ...]] = ("t", "theta", "copies", "combined")
    recovery = Recovery.RESTART

    def __init__(self, number: int, model: ClientModel, plan: Plan) -> None:
        self.number, self.model, self.plan = number, model, plan
        self.t = 0
        self.theta: WithPenalty = self._with_penalty(model.initial())
        self.copies: dict[int, WithPenalty] = {}
        self.combined = self.theta
        """The combination of the copies, theta_k after the next sync; theta_k itself before the first visit."""

    def visit(self, token: Token) -> None:
        """Q local updates of the copy theta_k(gamma) and of the token's aggregate (Algorithm 1, lines 7-9)."""
        if token.t != self.t:
            self.apply_sync(token.t)
        self.local_update(token, self.plan.local_updates, self.plan.stepsize_at(token.t))

    def local_update(self, token: Token, Q: int, eta: float) -> None:
        """Q steps of size eta on the copy for this token, and the same change of the token."""
        old = self.copies.get(token.index, self.theta)
        rows, visit = self.plan.batches.rows(token.t), (token.index, token.t, token.hop)
        gains = token.known_gains(self.number)
        updates = LocalUpdates(Q, eta, rows, self.plan.majorises, visit, gains)
        theta = self.model.local_update(old[0], token.aggregate, updates)
        if gains is not None:
            token.record(self.number, gains)
        self.unchanged = theta is old[0]
        new = self.copies[token.index] = self._with_penalty(theta)
        token.penalty += new[1] - old[1]
        self.report_sync_change(token, old, new)

    def report_sync_change(self, token: Token, old: WithPenalty, new: WithPenalty) -> None:
        """Add the visit's change of the combined model to the token, for the server."""
        before, self.combined = self.combined, new if self.plan.combine.one_visitor else self._combine()
        token.sync_penalty += self.combined[1] - before[1]
        if self.plan.carries_change:
            change = self.model.represent(self.combined[0]) - self.model.represent(before[0])
            token.sync_change = change if token.sync_change is None else token.sync_change + change

    def _combine(self) -> WithPenalty:
        """The combination of all copies, in the order of their tokens, whatever the order of visits."""
        copies = [self.copies[index][0] for index in sorted(self.copies)]
        return self._with_penalty(self.plan.combine.copies(self.theta[0], copies, self.plan.tokens))

    def _with_penalty(self, theta: Theta) -> WithPenalty:
        return theta, self.model.penalty(theta)

    def apply_sync(self, t: int) -> None:
        """The sync: theta_k = sum_gamma w_k,gamma theta_k(gamma) (Algorithm 2, line 11).

        A client applies a sync when its next message arrives, so idle clients cost nothing.
        """
        self.theta, self.copies, self.t = self.combined, {}, t

    def visits(self) -> Visits:
        """The changes by visits since the last sync."""
        return self.copies.copy(), self.combined

    def undo_visits(self, since: Visits | None = None) -> None:
        """Roll back to the start of the iteration, or to an earlier result of ``visits``."""
        self.copies, self.combined = since or ({}, self.theta)

    def parameters(self) -> Theta:
        """theta_k, copies combined."""
        return self.combined[0]

    def copy_for(self, token: Token) -> Theta:
        """theta_k(gamma), the copy for this token."""
        if token.t != self.t:
            return self.combined[0]
        return self.copies.get(token.index, self.theta)[0]

    def share(self, t: int) -> Message:
        """Send h_k on the next mini-batch to the server (Algorithm 2, line 5).

        If a token of this iteration has visited before the request arrives, h_k is that of theta_k before the visit.
        """
        if t > self.t:
            self.apply_sync(t)
        theta, penalty = self.theta
        fresh = self.model.represent(theta, self.plan.batches.rows(t))
        return send(self.number, SERVER, Fresh(fresh, penalty))


def opening(server: TokenServer, clients: Sequence[TokenClient], problem: Problem) -> Sequence[Message]:
    """The first messages: Gamma tokens, or, where theta does not start at 0, K uploads that the first token sums."""
    return [client.share(0) for client in clients] if problem.warm else server.start_iteration()


class TokenServer(Party):
    """The server: sends Gamma equal tokens, and syncs when all are back (Algorithm 2)."""

    state_fields: ClassVar[tuple[str, ...]] = ("t", "aggregate", "penalty", "back", "gathering")
    recovery = Recovery.RESTART

    def __init__(self, clients: int, plan: Plan, problem: Problem | None) -> None:
        assert plan.hops is not None
        self.clients, self.plan, self._problem, self.hops = clients, plan, problem, plan.hops
        self.knows_objective = plan.batches.size is None
        self.t = 0
        self.aggregate, self.penalty = plan.batches.zeros(plan.outputs), 0.0
        self.instruction = NO_INSTRUCTION
        self.products = NOTHING
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
        return self.sync() if len(self.back) == self.plan.tokens else []

    def last_sync(self) -> tuple[int, int]:
        return self.t, self.t * self.hops

    def start_iteration(self) -> Sequence[Message]:
        """Send Z^t to Gamma start clients k ~ P_gamma (line 8)."""
        t, plan = self.t, self.plan
        known = self.aggregate if self.knows_objective else None
        progress = Message(SERVER, MONITOR, Progress(t * self.hops, t, known, self.penalty))
        messages = [] if self.instruction.trial else [progress]
        self.accelerate()
        for index in range(plan.tokens):
            token, first = self.token(index), plan.roaming.first(index, t)
            if first == NOWHERE:  # all clients of its cluster are absent
                self.back[index] = token
            else:
                messages.append(send(SERVER, first, token))
        return messages

    def token(self, index: int) -> Token:
        """The token gamma = ``index`` at the start of the iteration."""
        order = self.instruction
        token = self.plan.new_token(index, self.t, self.aggregate.copy(), self.penalty, order)
        token.tally = Tally(np.zeros(order.products))
        return token

    def accelerate(self) -> None:
        """With acceleration: compute the instruction for the clients from the last syncs."""

    def sync(self) -> Sequence[Message]:
        """Full batch: combine the tokens. Mini-batch: request h_k on the next batch from all clients."""
        tokens = [back for _, back in sorted(self.back.items()) if isinstance(back, Token)]
        self.back = {}
        if tokens:
            self.combine(tokens)
            self.t += 1
            return self.start_iteration()
        self.t += 1
        return [Message(SERVER, k, Share(self.t)) for k in range(self.clients)]

    def combine(self, tokens: Sequence[Token]) -> None:
        """The new aggregate and penalty, from the tokens."""
        self.aggregate = self.plan.combine.aggregate(self.aggregate, tokens)
        self.penalty += sum(token.sync_penalty for token in tokens)
        self.products = np.asarray(sum(token.tally.products for token in tokens))

    def gather(self, client: int, fresh: Fresh) -> Sequence[Message]:
        """Z^t = sum_k h_k on the mini-batch (line 6), once all uploads have arrived."""
        sums = self.gathering.add(client, fresh)
        if sums is None:
            return []
        self.aggregate, self.penalty = sums
        return self.start_iteration()
