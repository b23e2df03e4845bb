"""The quantile (pinball) loss: it predicts a quantile of the label. For trees."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mtcd.core.arrays import Array
from mtcd.core.checks import check_number
from mtcd.core.errors import ConfigError
from mtcd.models.losses.loss import LOSSES, Loss


@LOSSES.register("quantile")
@dataclass(frozen=True)
class Quantile(Loss):
    """l = q*(y - z) where y > z, else (1 - q)*(z - y); q is the ``quantile``, 0.5 for the
    median."""

    quantile: float = 0.5
    curvature = 1.0  # no bound: the loss has kinks. Only the scale of the steps of an optimal sync
    uses_quantile = True
    renews_leaves = True
    not_linear = "it has kinks, where gradient steps of a fixed size do not settle"

    def __post_init__(self) -> None:
        check_number("model.quantile", self.quantile, above=0)
        if self.quantile >= 1:
            raise ConfigError(
                f"model.quantile must be below 1, but is {self.quantile}: 0.9 for the 90th "
                f"percentile."
            )

    def value(self, z: Array, y: Array) -> float:
        return float(self.values(z, y).sum())

    def values(self, z: Array, y: Array) -> Array:
        residual = y - z
        return np.maximum(self.quantile * residual, (self.quantile - 1.0) * residual)

    def gradient(self, z: Array, y: Array) -> Array:
        """A subgradient: at y = z it is that of z above y."""
        return np.where(y > z, -self.quantile, 1.0 - self.quantile)

    def hessian_product(self, z: Array, y: Array, v: Array) -> Array:
        return np.zeros_like(v)

    def curvatures(self, z: Array, y: Array) -> Array:
        return np.ones_like(z)  # so that splits are those of least squares on the gradients

    def best_shift(self, z: Array, y: Array, weights: Array | None = None) -> Array:
        """The quantile of the residuals."""
        return np.asarray(np.quantile(y - z, self.quantile, weights=weights, method="inverted_cdf"))
