"""The parties of MTCD with a weight for each cluster and sync: what they remember, and who applies
what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mtcd.core.arrays import Array
from mtcd.core.errors import ConfigError, WireError
from mtcd.methods.cluster_memory.slots import SUMS, WEIGHTS, sums_of, weights_of
from mtcd.methods.mtcd.plan import Plan
from mtcd.methods.mtcd.server import TokenClient, TokenServer, WithPenalty
from mtcd.methods.optimal_weights import LARGEST, Along, optimal_weights
from mtcd.network.walks import NOWHERE
from mtcd.protocol.model import ClientModel, Problem
from mtcd.protocol.party import Message
from mtcd.protocol.token import Token

SYNCS = 20
"""The most syncs whose changes are kept."""
CHANGES = 1000
"""The most changes that are kept of all clusters together: the server weighs them all."""
NOISE = 1e-11
"""Where f would fall by less than this share, rounding decides on the weights: they are all 0."""
FURTHEST = 1e4
"""The largest weight of a latest change, which may be as small as the step size; earlier ones have
``LARGEST``. Weights enlarge the rounding of changes, and that stays in the aggregate."""
DRIFT, ROUNDING = 1e-7, 1e-12
"""Earlier and new changes below this share of the aggregate may be rounding, which weights would
enlarge: they are left out."""


def syncs_kept(tokens: int) -> int:
    """The syncs whose changes are kept, with so many clusters.

    >>> syncs_kept(4), syncs_kept(100)
    (20, 10)
    """
    return max(1, min(SYNCS, CHANGES // tokens))


class MemoryClient(TokenClient):
    """A client that keeps what it has changed in the last syncs, and is told the weights by the
    next token."""

    state_fields = (*TokenClient.state_fields, "cluster", "changes")

    def __init__(self, number: int, model: ClientModel, plan: Plan) -> None:
        super().__init__(number, model, plan)
        if not isinstance(self.theta[0], np.ndarray):
            raise ConfigError(
                "method.combine: memory combines changes of linear models: use combine: optimal "
                "for others."
            )
        self.cluster = NOWHERE
        """Whose token visits this client; not known before the first visit."""
        self.changes: list[Array] = []
        """Those of the last syncs but the latest, which is that of theta since the start."""

    def receive(self, message: Message) -> Sequence[Message]:
        token = message.payload
        assert isinstance(token, Token)
        self.cluster = token.index
        if token.t != self.t:
            self.adopt(token.t, weights_of(token))
            self.add_start(token)
        self.visit(token)
        return self.pass_on(token)

    def adopt(self, t: int, weights: Array) -> None:
        """Begin iteration t from the combination of the changes."""
        theta = self.combined_by(weights)
        known = self._known()
        self.changes = known[max(0, len(known) - syncs_kept(self.plan.tokens)) :]
        self.theta = self.combined = self._with_penalty(theta)
        self.copies, self.t = {}, t

    def combined_by(self, weights: Array) -> Array:
        """theta_k at the sync with these weights of its cluster."""
        known = self._known()
        if len(weights) != len(known):
            raise WireError(WEIGHTS.name, "are not one for each change that is kept")
        moved = sum(w * change for w, change in zip(weights, known, strict=True))
        return np.asarray(self.theta[0] + moved)

    def _known(self) -> list[Array]:
        """The changes that are kept, and the latest."""
        return [*self.changes, self.combined[0] - self.theta[0]]

    def at_sync(self, t: int, weights: Array) -> Array:
        """theta_k at sync t, of which these are the weights of all clusters; later if this client
        has gone further."""
        if t <= self.t:
            return np.asarray(self.combined[0])
        return self.combined_by(weights[self.cluster])

    def stop_at_sync(self, t: int, slots: Mapping[str, Any]) -> None:
        if t != self.t:
            weights = slots[WEIGHTS.name].reshape(self.plan.tokens, -1)
            self.adopt(t, weights[self.cluster])

    def add_start(self, token: Token) -> None:
        """Add the inner products of the start of this iteration with the changes that are kept."""
        kept, sums = len(self.changes), sums_of(token).copy()
        for place, change in enumerate(self.changes):
            sums[kept + place] += self.model.penalty_product(self.theta[0], change)
        token.put(SUMS.name, sums)

    def report_sync_change(self, token: Token, old: WithPenalty, new: WithPenalty) -> None:
        super().report_sync_change(token, old, new)
        product, start = self.model.penalty_product, self.theta[0]
        kept, sums = len(self.changes), sums_of(token).copy()
        step = new[0] - old[0]
        for place, change in enumerate(self.changes):
            sums[place] += product(step, change)
        sums[2 * kept] += product(step, start)
        # |new - start|^2 - |old - start|^2, exact where the step is small
        sums[2 * kept + 1] += product(step, (new[0] - start) + (old[0] - start))
        token.put(SUMS.name, sums)

    def copy_for(self, token: Token) -> Array:
        """theta_k(gamma), the copy for the token, now or after its visit."""
        if token.t == self.t:
            return np.asarray(super().copy_for(token))
        return self.combined_by(weights_of(token))


class MemoryServer(TokenServer):
    """A server that minimises f over the changes of all clusters in the last syncs."""

    state_fields = (*TokenServer.state_fields, "moves", "products", "weights")

    def __init__(self, clients: int, plan: Plan, problem: Problem) -> None:
        super().__init__(clients, plan, problem)
        self.moves: list[Array] = []
        """The change of the aggregate by each token, one array for each sync that is kept."""
        self.products: Array = np.zeros((plan.tokens, 0, 0))
        """The penalty's inner products of the changes of each cluster."""
        self.weights: Array = np.zeros((plan.tokens, 0))
        """Those of the last sync, by cluster."""

    def token(self, index: int) -> Token:
        token = super().token(index)
        token.put(SUMS.name, np.zeros(2 * len(self.moves) + 2))
        if self.weights.size:
            token.put(WEIGHTS.name, self.weights[index].copy())
        return token

    def at_end(self) -> Mapping[str, Any]:
        if not self.weights.size:
            return {}
        return {WEIGHTS.name: self.weights.ravel()}

    def combine(self, tokens: Sequence[Token]) -> None:
        """The weights with which f is least, and the aggregate and the penalty with them."""
        new = np.stack([token.aggregate - self.aggregate for token in tokens])
        moves = [*self.moves, new]
        slopes, products = self._products(tokens)

        columns = [move[cluster] for cluster in range(len(tokens)) for move in moves]
        w = self._weigh(columns, slopes.ravel(), _joined(products))
        self.weights = w.reshape(slopes.shape)

        moved = sum(weight * column for weight, column in zip(w, columns, strict=True))
        self.aggregate = np.asarray(self.aggregate + moved)
        self.penalty += float(slopes.ravel() @ w + w @ _joined(products) @ w / 2)
        kept = syncs_kept(self.plan.tokens)
        self.moves, self.products = moves[-kept:], products[:, -kept:, -kept:]

    def _products(self, tokens: Sequence[Token]) -> tuple[Array, Array]:
        """By cluster, the inner products of the start with all changes, and of these among
        themselves; the latest change comes last."""
        kept = len(self.moves)
        sums = np.stack([sums_of(token) for token in tokens])
        if sums.shape[1] != 2 * kept + 2:
            raise WireError(SUMS.name, "are not two for each change that is kept, and two more")

        slopes = np.concatenate([sums[:, kept : 2 * kept], sums[:, 2 * kept, None]], axis=1)
        products = np.zeros((len(tokens), kept + 1, kept + 1))
        products[:, :kept, :kept] = self.products
        products[:, kept, :kept] = products[:, :kept, kept] = sums[:, :kept]
        products[:, kept, kept] = sums[:, 2 * kept + 1]
        return slopes, products

    def _weigh(self, columns: Sequence[Array], slopes: Array, products: Array) -> Array:
        """The weights at which f is least; those of changes that may be rounding are 0."""
        moves = np.stack([column.ravel() for column in columns], axis=1)
        along = Along(self.problem.fit, self.aggregate, moves, slopes, products)
        latest = np.arange(len(columns)) % (len(self.moves) + 1) == len(self.moves)

        sizes = np.abs(moves).max(axis=0)
        if not np.isfinite(sizes).all():
            return np.full(len(columns), np.nan)  # the training has diverged

        least = np.where(latest, ROUNDING, DRIFT) * max(np.abs(self.aggregate).max(), sizes.max())
        used = sizes > least
        w = np.zeros(len(columns))
        if used.any():
            largest = np.where(latest, FURTHEST, LARGEST)
            w[used] = optimal_weights(along.among(used), largest[used])

        start = along.value(np.zeros(len(columns)))
        return w if start - along.value(w) > NOISE * abs(start) else np.zeros(len(columns))


def _joined(products: Array) -> Array:
    """One matrix for all clusters: changes of two clusters have no client in common."""
    clusters, size, _ = products.shape
    whole = np.zeros((clusters * size, clusters * size))
    for cluster in range(clusters):
        here = slice(cluster * size, (cluster + 1) * size)
        whole[here, here] = products[cluster]
    return whole
