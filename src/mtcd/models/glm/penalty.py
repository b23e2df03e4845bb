"""The regulariser r of one client: l1*|theta|_1 + l2/2*|theta|^2, not on unpenalised columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mtcd.core.arrays import Array
from mtcd.core.checks import check_number


@dataclass(frozen=True)
class Penalty:
    """r(theta) = l1 * sum|theta_j| + l2/2 * sum theta_j^2 over the penalised columns j.

    ``free`` counts unpenalised columns at the end of the block (the intercept is one).

    >>> float(Penalty(l1=1.0, l2=2.0).value(np.array([3.0, -1.0])))
    14.0
    """

    l1: float = 0.0
    l2: float = 0.0
    free: int = 0

    def __post_init__(self) -> None:
        for name, value in (("l1", self.l1), ("l2", self.l2)):
            check_number(f"model.{name}", value)

    def value(self, theta: Array) -> float:
        """r(theta), without the columns that are free."""
        part = theta
        if self.free:
            part = theta[: len(theta) - self.free]
        if part.ndim > 1:
            part = part.ravel()

        # called at every visit: what is 0 is not computed
        value = 0.0
        if self.l2:
            value = 0.5 * self.l2 * float(part.dot(part))
        if self.l1:
            value += self.kink(theta)
        return value

    def kink(self, theta: Array) -> float:
        """The part of r that is not smooth, l1 * sum|theta_j|."""
        if not self.l1:
            return 0.0
        return self.l1 * float(np.abs(self._penalised(theta)).sum())

    def product(self, a: Array, b: Array) -> float:
        """l2 * sum a_j b_j: the smooth part of r is half of theta's product with itself."""
        if not self.l2:
            return 0.0
        if self.free:
            a, b = self._penalised(a), self._penalised(b)
        return self.l2 * float(np.vdot(a, b))

    def add_gradient(self, theta: Array, gradient: Array) -> None:
        """Add the gradient of the smooth part, l2 * theta, to ``gradient`` in place."""
        if not self.l2:
            return
        if self.free:
            theta, gradient = self._penalised(theta), self._penalised(gradient)
        gradient += self.l2 * theta

    def prox(self, theta: Array, stepsize: float) -> None:
        """Soft-threshold in place: theta <- sign(theta) * max(|theta| - stepsize*l1, 0)."""
        if self.l1:
            part, width = self._penalised(theta), stepsize * self.l1
            # Clipping to [-width, width] and subtracting is the soft threshold, without signs.
            part -= np.minimum(np.maximum(part, -width), width)

    def _penalised(self, theta: Array) -> Array:
        return theta[: len(theta) - self.free] if self.free else theta
