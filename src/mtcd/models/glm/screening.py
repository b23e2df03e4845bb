"""Local updates with an l1 penalty, restricted to the columns that can change.

A column at 0 stays there while its gradient is at most l1. From one step to another the gradient of
column j changes by at most |x_j| * |change of l'(z)|, so a column that was far enough below l1 need
not be looked at again before l'(z) has moved that far. The result is that of plain steps, to
rounding.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mtcd.core.arrays import Array, is_sparse
from mtcd.data.vertical import Block
from mtcd.models.glm.penalty import Penalty
from mtcd.models.losses import Loss

# include somewhat more columns than necessary: a second pass over all of them costs more
SPARE_SHARE, SPARE_COLUMNS = 1.15, 4


class ScreenedSteps:
    """Q proximal gradient steps of size eta on one block, for losses with one number per sample."""

    def __init__(
        self, X: Block, y: Array, loss: Loss, penalty: Penalty, Q: int, eta: float
    ) -> None:
        self.X, self.y, self.loss, self.penalty, self.Q, self.eta = X, y, loss, penalty, Q, eta
        # The norms do not change, and one pass over X is all that they cost.
        squares = X.multiply(X) if is_sparse(X) else np.square(X)
        self.norms = np.sqrt(np.asarray(squares.sum(axis=0), dtype=float))

    def __call__(self, theta: Array, z: Array) -> Array:
        """The new theta; z is updated in place."""
        theta, done = theta.copy(), 0
        while done < self.Q:
            slope = self.loss.gradient(z, self.y)
            columns, reach = self._screen(theta, self.X.T.dot(slope))
            done += self._steps(theta, z, columns, slope, reach, self.Q - done)
        return theta

    def _screen(self, theta: Array, gradient: Array) -> tuple[NDArray[np.intp], float]:
        """The columns to include, and how far l'(z) may change before others have to be."""
        # The gradient of column j may change by |x_j| |change of l'(z)| (Cauchy and Schwarz).
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = (self.penalty.l1 - np.abs(gradient)) / self.norms
        # an empty column never moves: it can be reached from infinity only
        reach[theta != 0] = -1.0
        if self.penalty.free:
            reach[-self.penalty.free :] = -1.0
        wanted = int((reach <= 0).sum() * SPARE_SHARE) + SPARE_COLUMNS
        if wanted >= len(reach):
            return np.arange(len(reach)), np.inf
        # The column just beyond the chosen ones is the first that could move.
        limit = float(np.partition(reach, wanted)[wanted])
        return np.flatnonzero(reach < limit), limit

    def _steps(
        self,
        theta: Array,
        z: Array,
        columns: NDArray[np.intp],
        start: Array,
        reach: float,
        most: int,
    ) -> int:
        """Steps on these columns while the others cannot change; returns their number."""
        part = self.X if len(columns) == len(theta) else self.X[:, columns]
        # A few columns of a sparse block are used many times: dense they are faster.
        X = part.toarray(order="F") if is_sparse(part) else part
        own, slope, penalty, taken = theta[columns], start, self.penalty, 0
        while True:
            gradient = X.T.dot(slope)
            penalty.add_gradient(own, gradient)
            new = own - self.eta * gradient
            penalty.prox(new, self.eta)
            step = new - own
            if not step.any():
                return most  # a fixed point: the remaining steps would not move either
            z += X.dot(step)
            own = new
            theta[columns] = own
            taken += 1
            if taken == most:
                return taken
            slope = self.loss.gradient(z, self.y)
            # If all columns are in, nothing can be missed, and the norm is not needed.
            moved = np.linalg.norm(slope - start) if reach < np.inf else 0.0
            if moved >= reach:
                return taken
