"""The loss of an aggregate for given labels, which all parties with labels can evaluate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mtcd.core.arrays import Array
from mtcd.models.losses import Loss


@dataclass(frozen=True, eq=False)
class LabelFit:
    """The loss as a function of the aggregate alone."""

    loss: Loss
    labels: Array

    @property
    def curvature(self) -> float:
        """The largest second derivative of the loss of one sample."""
        return self.loss.curvature

    def scaled(self, A: Array) -> Array:
        """A with its rows scaled by the weights of samples: see :meth:`Loss.scaled`."""
        return np.asarray(self.loss.scaled(A))

    def objective(self, aggregate: Array, penalty: float) -> float:
        """f, from a token: the loss at its aggregate plus the penalty that it carries."""
        return self.loss.value(aggregate, self.labels) + penalty

    def gradient(self, aggregate: Array) -> Array:
        """The derivative of the loss in the aggregate."""
        return self.loss.gradient(aggregate, self.labels)

    def hessian_product(self, aggregate: Array, v: Array) -> Array:
        """The second derivative of the loss in the aggregate, times v."""
        return self.loss.hessian_product(aggregate, self.labels, v)
