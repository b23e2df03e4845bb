"""The squared hinge: a smooth support vector machine."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mtcd.core.arrays import Array
from mtcd.models.losses.loss import LOSSES
from mtcd.models.losses.two_classes import TwoClasses


@LOSSES.register("squared-hinge")
@dataclass(frozen=True)
class SquaredHinge(TwoClasses):
    """l = max(0, 1 - y*z)^2, y in {-1, 1}."""

    curvature = 2.0

    def _coded(self, positive: Array) -> Array:
        return 2.0 * positive - 1.0

    def value(self, z: Array, y: Array) -> float:
        slack = np.maximum(0.0, 1.0 - y * z)
        return float(slack @ slack)

    def values(self, z: Array, y: Array) -> Array:
        return np.square(np.maximum(0.0, 1.0 - y * z))

    def gradient(self, z: Array, y: Array) -> Array:
        return np.asarray(-2.0 * y * np.maximum(0.0, 1.0 - y * z))

    def hessian_product(self, z: Array, y: Array, v: Array) -> Array:
        return np.where(y * z < 1.0, 2.0 * v, 0.0)

    def dual_prox(self, v: Array, y: Array, c: Array | float) -> Array:
        return np.asarray(y * np.minimum(2.0 * (y * v - c) / (2.0 + c), 0.0))
