"""The parties of MTCD: the paper's Algorithm 2, with Algorithm 1 (TokenRoaming) inside.

Read :class:`TokenClient` for what happens when a token arrives (the roaming), and
:class:`TokenServer` for the sync. STCD is the same client with one token, endless roaming and no server.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from mtcd.arrays import Array
from mtcd.methods.hosting import Done, Plan, Share, TokenHost
from mtcd.network.walks import NOWHERE
from mtcd.protocol.gathering import Fresh, Gathering
from mtcd.protocol.model import ClientModel, Problem
from mtcd.protocol.party import MONITOR, SERVER, Message, Party, Progress, Recovery, send
from mtcd.protocol.token import NOTHING, Instruction, Tally, Token

Weighed = tuple[Array, float]  # parameters and their penalty
Visits = tuple[dict[int, Weighed], Weighed]  # copies, and what the coming sync will make of them


class TokenClient(TokenHost):
    """Client k: keeps theta_k, and one copy of it for each token that visits between two syncs.

    Parameters are kept together with their penalty r(theta_k), so that it is computed once.
    """

    state_fields: ClassVar[tuple[str, ...]] = ("t", "theta", "copies", "combined")
    recovery = Recovery.RESTART

    def __init__(self, number: int, model: ClientModel, plan: Plan) -> None:
        self.number, self.model, self.plan = number, model, plan
        self.t = 0
        self.theta: Weighed = self._weighed(model.initial())
        self.copies: dict[int, Weighed] = {}
        self.combined = self.theta
        """What the coming sync will make of the copies; theta_k itself where no token has come by."""

    def visit(self, token: Token) -> None:
        """Q local updates of the copy theta_k(gamma), the token kept true (Algorithm 1, lines 7-9)."""
        if token.t != self.t:
            self.apply_sync(token.t)
        self.local_update(token, self.plan.local_updates, self.plan.stepsize_at(token.t))

    def local_update(self, token: Token, Q: int, eta: float) -> None:
        """Q steps of size eta, and what the token must know of them."""
        old = self.copies.get(token.index, self.theta)
        rows = self.plan.batches.rows(token.t)
        theta = self.model.local_update(old[0], token.aggregate, rows, Q, eta)
        new = self.copies[token.index] = self._weighed(theta)
        token.penalty += new[1] - old[1]
        self.report_sync_change(token, old, new)

    def report_sync_change(self, token: Token, old: Weighed, new: Weighed) -> None:
        """Tell the server, by the token, what the visit changes in the model that the coming sync will make."""
        before, self.combined = self.combined, new if self.plan.combine.one_visitor else self._combine()
        token.sync_penalty += self.combined[1] - before[1]
        if self.plan.carries_change:
            change = self.model.represent(self.combined[0]) - self.model.represent(before[0])
            token.sync_change = change if token.sync_change is None else token.sync_change + change

    def _combine(self) -> Weighed:
        """The combination of all copies, in the order of their tokens, so that it does not matter who came first."""
        copies = [self.copies[index][0] for index in sorted(self.copies)]
        return self._weighed(self.plan.combine.copies(self.theta[0], copies, self.plan.tokens))

    def _weighed(self, theta: Array) -> Weighed:
        return theta, self.model.penalty(theta)

    def apply_sync(self, t: int) -> None:
        """The sync: theta_k = sum_gamma w_k,gamma theta_k(gamma) (Algorithm 2, line 11).

        A client learns of a sync from the next thing that it hears, so idle clients cost nothing.
        """
        self.theta, self.copies, self.t = self.combined, {}, t

    def visits(self) -> Visits:
        """What tokens have brought about here since the sync."""
        return self.copies.copy(), self.combined

    def undo_visits(self, since: Visits | None = None) -> None:
        """Be again as at the start of the iteration, or as at a moment after it."""
        self.copies, self.combined = since or ({}, self.theta)

    def parameters(self) -> Array:
        """theta_k, copies combined."""
        return self.combined[0]

    def copy_for(self, token: Token) -> Array:
        """theta_k(gamma): what this client holds for the token."""
        if token.t != self.t:
            return self.combined[0]
        return self.copies.get(token.index, self.theta)[0]

    def share(self, t: int) -> Message:
        """Send h_k on the next mini-batch to the server (Algorithm 2, line 5).

        Asked late, when a token of this iteration has been here already, it tells of theta_k from before.
        """
        if t > self.t:
            self.apply_sync(t)
        theta, penalty = self.theta
        fresh = self.model.represent(theta, self.plan.batches.rows(t))
        return send(self.number, SERVER, Fresh(fresh, penalty))


class TokenServer(Party):
    """The server: sends out Gamma equal tokens, and syncs when all are back (Algorithm 2)."""

    state_fields: ClassVar[tuple[str, ...]] = ("t", "aggregate", "penalty", "back", "gathering")
    recovery = Recovery.RESTART

    def __init__(self, clients: int, plan: Plan, problem: Problem | None) -> None:
        self.clients, self.plan, self._problem = clients, plan, problem
        self.knows_objective = plan.batches.size is None
        self.t = 0
        self.aggregate, self.penalty = plan.batches.zeros(plan.outputs), 0.0
        self.instruction = Instruction(0)
        self.products = NOTHING
        self.back: dict[int, Token | Done] = {}
        self.gathering = Gathering(clients)

    @property
    def problem(self) -> Problem:
        """What is trained; only acceleration and optimal sync, which need f, ask."""
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
        return self.t, self.t * (self.plan.hops or 1)

    def start_iteration(self) -> Sequence[Message]:
        """Send Z^t to Gamma start clients k ~ P_gamma (line 8)."""
        t, plan = self.t, self.plan
        known = self.aggregate if self.knows_objective else None
        progress = Message(SERVER, MONITOR, Progress(t * (plan.hops or 1), t, known, self.penalty))
        messages = [] if self.instruction.trial else [progress]
        self.accelerate()
        for index in range(plan.tokens):
            token, first = self.token(index), plan.roaming.first(index, t)
            if first == NOWHERE:  # all clients of its cluster have left
                self.back[index] = token
            else:
                messages.append(send(SERVER, first, token))
        return messages

    def token(self, index: int) -> Token:
        """A token as it sets out."""
        told = self.instruction
        token = Token(index, self.t, 0, self.aggregate.copy(), self.penalty, instruction=told, extra=told.floats)
        if told.products:
            token.tally = Tally(np.zeros(told.products))
        return token

    def accelerate(self) -> None:
        """With acceleration: what the clients shall make of the last syncs."""

    def sync(self) -> Sequence[Message]:
        """Full batch: the new token follows from the tokens. Mini-batch: ask all for h_k on the next one."""
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
        """Z^t = sum_k h_k on the mini-batch (line 6), when all are there."""
        sums = self.gathering.add(client, fresh)
        if sums is None:
            return []
        self.aggregate, self.penalty = sums
        return self.start_iteration()
