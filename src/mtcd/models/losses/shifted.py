"""A loss at z + c: the aggregate of a model that starts from the constant c."""

from __future__ import annotations

from dataclasses import dataclass

from mtcd.core.arrays import Array, Rows
from mtcd.models.losses import Labels, Loss


@dataclass(frozen=True, eq=False)
class Shifted(Loss):
    """l(z + c, y), where l is the ``base`` and c the ``shift``: a number, or one for every
    class."""

    base: Loss
    shift: Array

    @property
    def curvature(self) -> float:  # type: ignore[override]
        """The largest second derivative of one sample."""
        return self.base.curvature

    @property
    def quadratic(self) -> bool:  # type: ignore[override]
        return self.base.quadratic

    @property
    def renews_leaves(self) -> bool:  # type: ignore[override]
        return self.base.renews_leaves

    @property
    def sample_weights(self) -> Array | None:
        return self.base.sample_weights

    def at(self, rows: Rows) -> Loss:
        return Shifted(self.base.at(rows), self.shift)

    def value(self, z: Array, y: Array) -> float:
        return self.base.value(z + self.shift, y)

    def values(self, z: Array, y: Array) -> Array:
        return self.base.values(z + self.shift, y)

    def gradient(self, z: Array, y: Array) -> Array:
        return self.base.gradient(z + self.shift, y)

    def hessian_product(self, z: Array, y: Array, v: Array) -> Array:
        return self.base.hessian_product(z + self.shift, y, v)

    def hessian_bound(self, v: Array) -> Array:
        return self.base.hessian_bound(v)

    def curvatures(self, z: Array, y: Array) -> Array:
        return self.base.curvatures(z + self.shift, y)

    def best_shift(self, z: Array, y: Array, weights: Array | None = None) -> Array:
        return self.base.best_shift(z + self.shift, y, weights)

    def scaled(self, A: Array) -> Array:
        scaled: Array = self.base.scaled(A)
        return scaled

    def encode(self, labels: Labels) -> tuple[Array, tuple[str | float, ...]]:
        return self.base.encode(labels)

    def outputs(self, classes: tuple[str | float, ...]) -> int:
        return self.base.outputs(classes)

    def predict(self, z: Array) -> Array:
        return self.base.predict(z + self.shift)

    def probabilities(self, z: Array) -> Array:
        return self.base.probabilities(z + self.shift)

    @property
    def gives_probabilities(self) -> bool:
        return self.base.gives_probabilities
