"""The Huber loss: least squares that is robust to outliers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mtcd.core.arrays import Array
from mtcd.core.checks import check_number
from mtcd.models.losses.loss import LOSSES, Loss


@LOSSES.register("huber")
@dataclass(frozen=True)
class Huber(Loss):
    """l = r^2/2 where |r| <= delta, else delta*(|r| - delta/2); r = z - y."""

    delta: float = 1.0
    curvature = 1.0
    uses_delta = True

    def __post_init__(self) -> None:
        check_number("model.delta", self.delta, above=0)

    def value(self, z: Array, y: Array) -> float:
        return float(self.values(z, y).sum())

    def values(self, z: Array, y: Array) -> Array:
        size = np.abs(z - y)
        inner = np.minimum(size, self.delta)
        return np.asarray(inner * (size - 0.5 * inner))

    def gradient(self, z: Array, y: Array) -> Array:
        # Clipping the residual is the derivative: linear beyond delta.
        return np.clip(z - y, -self.delta, self.delta)

    def hessian_product(self, z: Array, y: Array, v: Array) -> Array:
        return np.where(np.abs(z - y) <= self.delta, v, 0.0)

    def curvatures(self, z: Array, y: Array) -> Array:
        return np.ones_like(z)  # a bound: the second derivative of an outlier is 0

    def dual_prox(self, v: Array, y: Array, c: Array | float) -> Array:
        return np.clip((v - c * y) / (1.0 + c), -self.delta, self.delta)
