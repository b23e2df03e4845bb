"""Least squares."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mtcd.core.arrays import Array
from mtcd.models.losses.loss import LOSSES, Loss


@LOSSES.register("ridge")
@LOSSES.register("linear")
@dataclass(frozen=True)
class Squared(Loss):
    """l = (z - y)^2 / 2."""

    curvature = 1.0
    separable = True
    quadratic = True

    def value(self, z: Array, y: Array) -> float:
        residual = z - y
        return 0.5 * float(residual @ residual)

    def values(self, z: Array, y: Array) -> Array:
        return np.asarray(0.5 * np.square(z - y))

    def gradient(self, z: Array, y: Array) -> Array:
        return z - y

    def hessian_product(self, z: Array, y: Array, v: Array) -> Array:
        return v

    def best_shift(self, z: Array, y: Array, weights: Array | None = None) -> Array:
        return np.asarray(np.average(y - z, weights=weights))

    def dual_prox(self, v: Array, y: Array, c: Array | float) -> Array:
        return (v - c * y) / (1.0 + c)
