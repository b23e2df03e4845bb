"""The parties of MTCD with optimal sync: the server chooses the weights, and the clients receive
them later.

A client receives the weights of a sync with the next token that visits it, and holds its copies
until then. Tokens carry the weights of every sync after which some client has not been visited.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mtcd.core.arrays import Array
from mtcd.methods.mtcd.client import Plan
from mtcd.methods.mtcd.server import TokenClient, TokenServer, WithPenalty
from mtcd.methods.optimal_sync.tally import TALLY, SyncTally, tally_of
from mtcd.methods.optimal_weights import Along, optimal_weights
from mtcd.methods.past_weights import PAST
from mtcd.protocol.model import Problem, Theta
from mtcd.protocol.party import Message
from mtcd.protocol.token import Token

# a token that ends with an objective above this multiple of the start has diverged, by its step
# size
FAR_OFF = 1e3


class OptimalClient(TokenClient):
    """A client that combines its copies at the next visit, with the weights that the token
    carries."""

    def receive(self, message: Message) -> Sequence[Message]:
        token = message.payload
        assert isinstance(token, Token)
        self.adopt(token.t, token.slots.get(PAST.name, {}))
        self.visit(token)
        return self.pass_on(token)

    def adopt(self, t: int, past: Mapping[int, Array]) -> None:
        """Combine the copies, when a message of a newer iteration arrives."""
        # Within an iteration the weights are not known yet: copies wait for the next visit.
        if t != self.t:
            self.theta = self._with_penalty(self.after_sync(past))
            self.copies, self.t = {}, t

    def stop_at_sync(self, t: int, slots: Mapping[str, Any]) -> None:
        self.adopt(t, slots.get(PAST.name, {}))

    def after_sync(self, past: Mapping[int, Array]) -> Theta:
        """theta_k after the sync that followed its last visits; theta_k before them if ``past``
        lacks that sync."""
        theta = self.theta[0]
        # No token has carried this sync's weights here, so no visit of it counts.
        if self.t not in past:
            return theta
        # Weights of all tokens, of which these are the client's visitors.
        weights = past[self.t]
        # the others may be infinite
        counted = [i for i in sorted(self.copies) if weights[i] != 0.0]
        changes = [weights[i] * (self.copies[i][0] - theta) for i in counted]
        if not changes:
            return theta
        return theta + sum(changes)

    def report_sync_change(self, token: Token, old: WithPenalty, new: WithPenalty) -> None:
        """Add the visit's inner products to the token, from which the server computes r at any
        weights."""
        model, theta, tally = self.model, self.theta[0], tally_of(token)
        change = new[0] - old[0]
        # |new - theta|^2 - |old - theta|^2 = (new - old).(new + old - 2 theta): exact where the
        # step is small, as a difference of squares is not.
        for index, (copy, _) in self.copies.items():
            other = new[0] + old[0] - 2.0 * theta if index == token.index else copy - theta
            tally.products[index] += model.penalty_product(change, other)
        # Of l1 only a bound along the change is known: that of its end.
        tally.slope += (
            model.penalty_product(theta, change)
            + model.nonsmooth_penalty(new[0])
            - model.nonsmooth_penalty(old[0])
        )
        tally.visited.add(self.number)

    def parameters(self) -> Theta:
        """theta_k at the start of the iteration of its last visit; later syncs need the server's
        weights."""
        return self.theta[0]

    def copy_for(self, token: Token) -> Theta:
        """theta_k(gamma), the copy for the token, now or after its visit."""
        if token.t == self.t:
            return super().copy_for(token)
        return self.after_sync(token.slots.get(PAST.name, {}))


class OptimalServer(TokenServer):
    """A server that combines the tokens with the weights that minimise f."""

    state_fields = (*TokenServer.state_fields, "last", "past")

    def __init__(self, clients: int, plan: Plan, problem: Problem) -> None:
        super().__init__(clients, plan, problem)
        self.knows_objective = not problem.nonsmooth
        self.last: dict[int, int] = {}
        """The iteration in which each client was last visited."""
        self.past: dict[int, Array] = {}
        """The weights of those iterations' syncs."""

    def token(self, index: int) -> Token:
        token = super().token(index)
        token.put(TALLY.name, SyncTally(np.zeros(self.plan.tokens)))
        if self.past:
            token.put(PAST.name, self.past)
        return token

    def at_end(self) -> Mapping[str, Any]:
        if not self.past:
            return {}
        return {PAST.name: self.past}

    def combine(self, tokens: Sequence[Token]) -> None:
        """Z^{t+1} = Z^t + sum_gamma w_gamma (Z(gamma) - Z^t), with the optimal w."""
        met = Counter(k for token in tokens for k in tally_of(token).visited)
        w = np.zeros(len(tokens))
        sound = [i for i, token in enumerate(tokens) if self._is_sound(token)]
        if sound:
            along = self._along([tokens[i] for i in sound])
            most = max(met.values(), default=1)
            # With l1 the bound holds for weights that add up to at most 1 at every client.
            largest = 1.0 / most if self.problem.nonsmooth else None
            w[sound] = optimal_weights(along, largest)
            self.aggregate = along.aggregate(w[sound])
            self.penalty += along.penalty(w[sound])
        else:  # the step size is far too large: report divergence
            self.aggregate = np.full_like(self.aggregate, np.nan)
        self.last |= dict.fromkeys(met, self.t)
        # Only the weights that some client may still need: a token carries them all.
        known = self.past | {self.t: w}
        self.past = {t: known[t] for t in sorted(set(self.last.values()))}

    def _is_sound(self, token: Token) -> bool:
        """Whether the token has not diverged: numbers that large would lose all precision."""
        fit = self.problem.fit
        start = fit.objective(self.aggregate, self.penalty)
        largest = FAR_OFF * max(start, np.finfo(float).tiny)
        return fit.objective(token.aggregate, token.penalty) <= largest

    def _along(self, tokens: Sequence[Token]) -> Along:
        """f along the changes of these tokens."""
        others = [other.index for other in tokens]
        bend = np.stack([tally_of(token).products[others] for token in tokens])
        # each token has the contributions of its own visits
        bend = bend + bend.T - np.diag(np.diag(bend))
        slope = np.array([tally_of(token).slope for token in tokens])
        return Along.of(
            self.problem.fit, self.aggregate, [token.aggregate for token in tokens], slope, bend
        )
