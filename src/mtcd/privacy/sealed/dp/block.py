"""The block of a client in private tours: clipped rows, and parameters that follow from noisy
gradients alone.

Nothing else of the data may enter the parameters, not even the curvature of the own block: a row
would change them by more than the noise hides. The result is the mean of the parameters after the
later half of the tours.

Rows are clipped in gradients only. Scores have whole rows, as predictions have: however long a row,
the derivative of the loss at its score lies between -1 and 1, which is all that the accounting
takes.
"""

from __future__ import annotations

import math

import numpy as np

from mtcd.core.arrays import Array
from mtcd.data.vertical import Block
from mtcd.models.glm.penalty import Penalty
from mtcd.privacy.sealed.bfv.cipher import Integers
from mtcd.privacy.sealed.block import SealedBlock
from mtcd.privacy.sealed.dp.scales import PrivateScales
from mtcd.privacy.sealed.scales import Scales
from mtcd.privacy.settings import DP


class PrivateBlock(SealedBlock):
    """theta_k at the start of a tour, its change in this tour, and the sum of those that count for
    the mean."""

    state_fields = ("tour", "theta", "change", "total")

    def __init__(self, X: Block, penalty: Penalty, dp: DP) -> None:
        super().__init__(X, penalty, 0)
        self.dp = dp
        self.total = np.zeros_like(self.theta)
        self.length = clipping_length(self.X.shape[1], penalty.free, dp.clip)
        self.clipped = clip_rows(self.X, penalty.free, dp.clip)

    def use(self, scales: Scales) -> Integers:
        assert isinstance(scales, PrivateScales)
        # Clipped rows as integers; scores use whole rows, in the clear.
        self.scales: PrivateScales = scales
        return scales.rows(self.clipped, self.length)

    def start_tour(self, tour: int, weights: Array, stretch: float) -> None:
        """Keep the change of the last tour; one of the same number, which is undone, is dropped."""
        # The next tour has begun, so this one counts. After a restart it may begin anew.
        if tour == self.tour + 1:
            self.theta, self.total = self._moved()
        self.tour, self.change = tour, np.zeros_like(self.theta)

    def _moved(self) -> tuple[Array, Array]:
        """theta and the sum after this tour."""
        theta = self.theta + self.change
        if self.tour <= self._first_half:
            return theta, self.total
        return theta, self.total + theta

    @property
    def _first_half(self) -> int:
        return self.dp.tours // 2

    def preview(self, tour: int, weights: Array) -> Array:
        theta, total = self.theta, self.total
        if tour != self.tour:
            theta, total = self._moved()

        # before the later half there is no mean yet
        counted = tour - 1 - self._first_half
        if counted <= 0:
            return theta
        return total / counted

    def parameters(self) -> Array:
        weights = np.zeros(0)  # without a mix, nothing uses them
        return self.preview(self.tour + bool(self.change.any()), weights)

    def update(self, products: Array, token: float, draws: Array) -> Integers:
        """A step against the gradient with its noise; returns the change of the scores, beside
        g."""
        # nothing of the data but the products, which have noise, may decide about the step
        scales = self.scales
        gradient = products * (self.length / (scales.radius * token))
        self.penalty.add_gradient(self.theta, gradient)
        # A fixed step, from public numbers alone.
        self.change = gradient * (-self.dp.stepsize / (scales.samples + self.penalty.l2))
        return scales.shifts(self.X @ self.change, draws)


def clipping_length(columns: int, free: int, clip: float) -> float:
    """The most that a row of a block may have; a column of ones, for the intercept, is not
    clipped."""
    return math.sqrt(clip**2 * (columns - free) + free)


def clip_rows(X: Array, free: int, clip: float) -> Array:
    """The rows, shortened to the clipping length; each by itself."""
    columns = X.shape[1] - free
    # Each row by itself: what is done to one must not depend on others.
    lengths = np.sqrt((X[:, :columns] ** 2).sum(axis=1))
    allowed = clip * math.sqrt(columns)
    factors = np.minimum(1.0, allowed / np.maximum(lengths, 1e-300))
    return np.hstack([X[:, :columns] * factors[:, None], X[:, columns:]])
