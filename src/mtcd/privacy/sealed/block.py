"""The block of a client in sealed tours: its rounded columns, and its parameters.

Each update adds its own change of the scores to the token, rounded to integers: up or down at
random, right on average, as otherwise parameters would move on by steps that round to nothing. So
the scores at the key holder are not quite those of the parameters, and the mix, which looks for the
lowest f, makes use of the difference: over hundreds of tours f would seem to fall below its
minimum, and rise in truth. Every client therefore keeps account of its rounding errors, with the
weights of all mixes, and takes them off in every tour that ``corrects``. Such a tour is neither
mixed nor kept for later mixes: weights above 2 would enlarge the correction as they enlarge a
change.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy  # its parts are loaded when they are used

from mtcd.core.arrays import Array, dense
from mtcd.data.vertical import Block
from mtcd.models.glm.penalty import Penalty
from mtcd.privacy.sealed.bfv.cipher import Integers
from mtcd.privacy.sealed.scales import Scales
from mtcd.protocol.state import Stateful

LEAST = 1e-10
"""The least curvature, as a share of the largest, of a direction in which a block is moved."""


CORRECTS_EVERY = 20


def corrects(tour: int) -> bool:
    """Whether the clients take off their rounding errors in this tour."""
    return tour % CORRECTS_EVERY == 0


class SealedBlock(Stateful):
    """theta_k at the start of a tour, its change in this tour, and its moves from tour to tour.

    ``errors`` are those of the client's share of the scores at the start of the tour, in the
    change, and in the moves.
    """

    state_fields: ClassVar[tuple[str, ...]] = ("tour", "theta", "change", "moves", "errors")

    def __init__(self, X: Block, penalty: Penalty, depth: int) -> None:
        # a product under encryption takes all samples: there are no zeros to skip
        self.X = np.asarray(dense(X), float)
        self.penalty, self.depth = penalty, depth
        self.tour = 0
        self.theta = np.zeros(self.X.shape[1])
        self.change = np.zeros(self.X.shape[1])
        self.moves: list[Array] = []
        self.errors = [np.zeros(len(self.X)), np.zeros(len(self.X))]

    def use(self, scales: Scales) -> Integers:
        """Round the columns; returns their integers, to be encoded."""
        # New scales with new keys: what was computed for the old ones must go.
        self.scales = scales
        integers, self.column_scales = scales.integers(self.X)
        self.rounded = integers[: scales.samples] / self.column_scales
        self.__dict__.pop("_solve", None)
        return integers

    def parameters(self) -> Array:
        """theta_k, with the change of this tour."""
        return self.theta + self.change

    def preview(self, tour: int, weights: Array) -> Array:
        """theta_k at the start of this tour, the one under way or the next."""
        if tour == self.tour or not weights.any():
            # All 0: no mix, so that the change of the last tour is dropped.
            return self.theta
        return self.theta + _mix(weights, [self.change, *self.moves])

    def start_tour(self, tour: int, weights: Array, stretch: float) -> None:
        """Move to the mix of the last tours with these weights: of the change, and of the latest
        moves.

        The move is kept times ``stretch``, so that its inner products are large against their
        rounding.
        """
        at_start, *errors = self.errors
        # all 0: the mix would not lower f, and the change of the last tour is dropped
        if weights.any():
            move, error = _mix(weights, [self.change, *self.moves]), _mix(weights, errors)
            self.theta, at_start = self.theta + move, at_start + error
            # A tour of corrections is no direction: its errors would be enlarged by every mix.
            if not corrects(self.tour):
                self.moves = [stretch * move, *self.moves][: self.depth]
                errors[1:] = [stretch * error, *errors[1:]][: self.depth]
        self.tour, self.change = tour, np.zeros_like(self.theta)
        self.errors = [at_start, np.zeros_like(at_start), *errors[1:]]

    def update(self, products: Array, token: float, draws: Array) -> Integers:
        """Minimise the bound of f over the block, given the integers of X_k^T g; returns what is
        added to the token.

        ``token``: the scale of the token; ``draws``: uniform in [0, 1), one for each sample, for
        the rounding.
        """
        scales = self.scales
        # The answer is of integers: both scales are taken off.
        gradient = products / (self.column_scales * token)
        self.penalty.add_gradient(self.parameters(), gradient)
        step = -self._solve(gradient)

        # the token has the derivative: c times the change of the scores, in integers
        unit, change = scales.curvature * token, self.rounded @ step
        correction: Any = 0.0
        if corrects(self.tour):
            most = scales.most_correction  # more could wrap around the modulus
            correction = np.clip(self.errors[0] * unit, -most, most)

        # up or down at random: steps that round to nothing would not be in the scores for ever
        added = np.floor(change * unit - correction + draws)
        self.change, self.errors[1] = self.change + step, added / unit - change
        return np.concatenate([added, np.rint(self._sums() * scales.sums)]).astype(np.int64)

    def _sums(self) -> Array:
        """The penalty's inner products that the mix needs: of theta, of the latest move and of the
        change with all."""
        product = self.penalty.product
        pairs = [(self.theta, self.theta), *((self.theta, move) for move in self.moves)]
        pairs += [(self.moves[0], move) for move in self.moves]
        pairs += [(self.change, other) for other in (self.theta, self.change, *self.moves)]
        # Padded, as all tokens of a run have as many numbers.
        return np.array(
            [product(a, b) for a, b in pairs] + [0.0] * (self.scales.extras - len(pairs))
        )

    @cached_property
    def _solve(self) -> Any:
        """v -> (c X_k^T X_k + r'')^-1 v; directions of no curvature are left alone."""
        hessian = self.scales.curvature * (self.rounded.T @ self.rounded)
        ridge = np.full(len(hessian), self.penalty.l2)
        ridge[len(ridge) - self.penalty.free :] = 0.0
        hessian[np.diag_indices_from(hessian)] += ridge

        # columns may be of any size: scaled to 1, the least curvature is a share of the largest
        size = np.sqrt(np.diag(hessian))
        size += size == 0.0  # so that nothing is divided by 0
        values, axes = scipy.linalg.eigh(hessian / np.outer(size, size))
        # A direction without curvature would be moved by any length, for nothing.
        inverse = np.divide(
            1.0, values, out=np.zeros_like(values), where=values > LEAST * values.max()
        )
        return lambda v: axes @ (inverse * (axes.T @ (v / size))) / size


def _mix(weights: Array, vectors: list[Array]) -> Array:
    return np.asarray(sum(w * v for w, v in zip(weights, vectors, strict=True)))
