"""A loss with a weight for every sample: the sum of w_n l(z_n, y_n)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy  # its parts are loaded when they are used

from mtcd.core.arrays import Array, Rows, is_sparse
from mtcd.core.checks import check_number
from mtcd.core.errors import ConfigError, listing
from mtcd.data.vertical import Block
from mtcd.models.losses import Labels, Loss
from mtcd.models.weights import ClassWeight


@dataclass(frozen=True, eq=False)
class Weighted(Loss):
    """w_n l(z_n, y_n), where l is the ``base`` and w_n >= 0; a sample of weight 2 counts as two
    equal samples."""

    base: Loss
    weights: Array

    @cached_property
    def curvature(self) -> float:  # type: ignore[override]
        """The largest second derivative of one sample."""
        return self.base.curvature * float(self.weights.max())

    @property
    def quadratic(self) -> bool:  # type: ignore[override]
        return self.base.quadratic

    @cached_property
    def _roots(self) -> Array:
        """sqrt(w_n / max w)."""
        # Relative to the largest weight, as `curvature` has that one in it already.
        roots: Array = np.sqrt(self.weights / self.weights.max())
        return roots

    @property
    def unweighted(self) -> Loss:
        return self.base

    @property
    def sample_weights(self) -> Array | None:
        return self.weights

    @property
    def renews_leaves(self) -> bool:  # type: ignore[override]
        return self.base.renews_leaves

    def curvatures(self, z: Array, y: Array) -> Array:
        return self._times(self.base.curvatures(z, y))

    def best_shift(self, z: Array, y: Array, weights: Array | None = None) -> Array:
        if weights is not None:
            return self.base.best_shift(z, y, weights * self.weights)
        return self.base.best_shift(z, y, self.weights)

    def at(self, rows: Rows) -> Loss:
        return Weighted(self.base, self.weights[rows])

    def values(self, z: Array, y: Array) -> Array:
        return self.weights * self.base.values(z, y)

    def value(self, z: Array, y: Array) -> float:
        return float(self.weights @ self.base.values(z, y))

    def gradient(self, z: Array, y: Array) -> Array:
        return self._times(self.base.gradient(z, y))

    def hessian_product(self, z: Array, y: Array, v: Array) -> Array:
        return self._times(self.base.hessian_product(z, y, v))

    def hessian_bound(self, v: Array) -> Array:
        return self._times(self.base.hessian_bound(v))

    def scaled(self, A: Block) -> Block:
        # A may have a row for every sample and output: each output takes the weight of its sample.
        roots = np.repeat(self._roots, A.shape[0] // len(self._roots))
        if is_sparse(A):
            return scipy.sparse.csr_array(scipy.sparse.diags_array(roots) @ A)
        return A * roots.reshape(-1, *(1,) * (A.ndim - 1))

    def dual_prox(self, v: Array, y: Array, c: Array | float) -> Array:
        """w l'(t) + c t = v means l'(t) + (c/w) t = v/w; 0 where w is 0."""
        found, some = np.zeros_like(v), self.weights > 0
        # A sample of weight 0 has no part in the dual, and w = 0 would divide by it.
        w = self.weights[some]
        found[some] = w * self.base.dual_prox(v[some] / w, y[some], c / w)
        return found

    def encode(self, labels: Labels) -> tuple[Array, tuple[str | float, ...]]:
        return self.base.encode(labels)

    def outputs(self, classes: tuple[str | float, ...]) -> int:
        return self.base.outputs(classes)

    def predict(self, z: Array) -> Array:
        return self.base.predict(z)

    def probabilities(self, z: Array) -> Array:
        return self.base.probabilities(z)

    @property
    def gives_probabilities(self) -> bool:
        return self.base.gives_probabilities

    def _times(self, v: Array) -> Array:
        return np.asarray(self.weights.reshape(-1, *(1,) * (v.ndim - 1)) * v)


def check_class_weight(given: ClassWeight) -> None:
    """Reject anything but 'balanced' and a mapping from classes to numbers of 0 or more."""
    if isinstance(given, Mapping) and given:
        for one, weight in given.items():
            check_number(f"model.class_weight of {one!r}", weight)
    elif given != "balanced":
        raise ConfigError(
            f"model.class_weight must be 'balanced' or a weight for each class, but is {given!r}."
        )


def with_class_weights(
    given: ClassWeight,
    classes: tuple[str | float, ...],
    numbers: Rows,
    weights: Array | None = None,
) -> Array:
    """The weight of each sample (1 unless given) times that of its class; ``numbers`` are those of
    the classes.

    'balanced' gives every class the same total: with W the sum of all weights, W / (classes * sum
    of the class).

    >>> with_class_weights("balanced", ("no", "yes"), np.array([0, 0, 0, 1])).round(3).tolist()
    [0.667, 0.667, 0.667, 2.0]
    """
    if weights is None:
        weights = np.ones(len(numbers))
    by_class = np.ones(len(classes))
    if isinstance(given, str):
        totals = np.bincount(numbers, weights, len(classes))
        # A class without samples (of a fold, say) has no total to divide by, and keeps 1.
        np.divide(weights.sum() / len(classes), totals, out=by_class, where=totals > 0)
        return by_class[numbers] * weights
    known = {_plain_class(one): number for number, one in enumerate(classes)}
    for one, weight in given.items():
        if _plain_class(one) not in known:
            raise ConfigError(
                f"model.class_weight: {one!r} is no class: the labels have "
                f"{listing([repr(c) for c in classes])}."
            )
        by_class[known[_plain_class(one)]] = weight
    found = by_class[numbers] * weights
    if not found.any():
        raise ConfigError("model.class_weight: all samples have weight 0: give some class more.")
    return found


def _plain_class(one: Any) -> str | float:
    """A class in a form that is equal whether it is written 1, 1.0, '1' or true."""
    try:
        return float(one)
    except (TypeError, ValueError):
        return str(one)
