"""The Poisson loss, for counts: the model predicts the logarithm of the mean. For trees."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mtcd.core.arrays import Array
from mtcd.core.errors import DataError
from mtcd.models.losses.loss import LOSSES, Labels, Loss

LARGEST = 500.0  # exp of more, times the number of samples, could overflow


@LOSSES.register("poisson")
@dataclass(frozen=True)
class Poisson(Loss):
    """l = exp(z) - y*z, y >= 0: the negative log-likelihood but for log(y!), which no model
    changes."""

    # no bound: the second derivative is exp(z). Only the scale of the steps of an optimal sync
    curvature = 1.0
    example = "logistic"
    not_linear = "its second derivative has no bound, so that no step size is safe"

    def encode(self, labels: Labels) -> tuple[Array, tuple[str | float, ...]]:
        encoded, classes = super().encode(labels)
        if (encoded < 0).any():
            row = int(np.flatnonzero(encoded < 0)[0])
            raise DataError(
                f"The label of row {row + 1} is {encoded[row]:g}: the poisson loss is for counts, "
                f"0 or more."
            )
        return encoded, classes

    def value(self, z: Array, y: Array) -> float:
        return float(self.values(z, y).sum())

    def values(self, z: Array, y: Array) -> Array:
        return _exp(z) - y * z

    def gradient(self, z: Array, y: Array) -> Array:
        return _exp(z) - y

    def hessian_product(self, z: Array, y: Array, v: Array) -> Array:
        return _exp(z) * v

    def best_shift(self, z: Array, y: Array, weights: Array | None = None) -> Array:
        w = np.ones(len(z)) if weights is None else weights
        return np.asarray(np.log(max(float(w @ y), 1e-12) / float(w @ _exp(z))))

    def predict(self, z: Array) -> Array:
        """The mean, exp(z), as z predicts its logarithm."""
        return _exp(z)


def _exp(z: Array) -> Array:
    return np.asarray(np.exp(np.minimum(z, LARGEST)))
