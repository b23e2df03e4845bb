"""Losses: the sum over samples of l(z_n, y_n), where z is the aggregate of all representations.

Each loss has a value, a gradient in z, the product of its second derivative with a vector, and
``curvature``, the largest second derivative of one sample: solvers use nothing else. Weights of
samples need ``values`` too. Labels are encoded once, before training, by ``encode``. Each has a
file here, or in a plugin.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
import scipy  # its parts are loaded when they are used
from numpy.typing import NDArray

from mtcd.core.arrays import Array, Rows
from mtcd.core.errors import ConfigError, DataError
from mtcd.core.registry import Registry
from mtcd.data.vertical import Block

Labels = NDArray[np.generic]


class Loss(ABC):
    """One loss. ``curvature`` bounds the second derivative of a single sample's loss in z."""

    curvature: float
    example = "ridge"
    """The kind of ``mtcd.synthetic`` data with such labels."""
    uses_delta = False
    """Whether it has a parameter ``delta``: model.delta in a config."""
    uses_positive = False
    """Whether it has a parameter ``positive``, the positive one of two classes: data.positive in a
    config."""

    uses_quantile = False
    """Whether it has a parameter ``quantile``: model.quantile in a config."""
    not_linear = ""
    """Why linear models cannot have it, for the error; empty if they can."""
    renews_leaves = False
    """Whether trees take the values of their leaves from ``best_shift``, as second derivatives tell
    nothing."""

    quadratic = False
    """Whether the second derivative is the same at every z, and ``curvature`` for every sample (or
    its weight)."""

    separable = False
    """Whether the gradient is gradient(z, 0) - y, as sealed tours need: the label holder subtracts
    y by itself."""

    @abstractmethod
    def value(self, z: Array, y: Array) -> float:
        """The loss summed over samples."""

    def values(self, z: Array, y: Array) -> Array:
        """The loss of every sample."""
        raise ConfigError(
            "Weights of samples or classes need a loss that defines values(z, y), the loss of "
            f"every sample, which {type(self).__name__} does not. Leave the weights out, or add it."
        )

    @abstractmethod
    def gradient(self, z: Array, y: Array) -> Array:
        """d value / d z, of the shape of z."""

    @abstractmethod
    def hessian_product(self, z: Array, y: Array, v: Array) -> Array:
        """The second derivative in z times v, both of the shape of z."""

    def curvatures(self, z: Array, y: Array) -> Array:
        """Second derivatives by sample and output, for the Newton steps of trees: the diagonal, or
        a bound of it."""
        return self.hessian_product(z, y, np.ones_like(z))

    def best_shift(self, z: Array, y: Array, weights: Array | None = None) -> Array:
        """The constant c that minimises the loss at z + c: where the derivative in c changes its
        sign."""
        w = weights
        if w is None:
            w = np.ones(len(z))
        return np.asarray(_root(lambda c: float(w @ self.gradient(z + c, y))))

    @property
    def sample_weights(self) -> Array | None:
        """The weight of every sample; None if all are 1."""
        return None

    @property
    def unweighted(self) -> Loss:
        """The loss without weights of samples."""
        return self

    def at(self, rows: Rows) -> Loss:
        """The loss of these samples alone."""
        return self

    def hessian_bound(self, v: Array) -> Array:
        """An upper bound of the second derivative, the same at every z, times v."""
        return self.curvature * v

    def scaled(self, A: Block) -> Block:
        """A with its rows scaled such that ``curvature`` * |scaled(A) v|^2 bounds the second
        derivative along A v.

        A has a row for every sample, or for every sample and output.
        """
        return A

    def least(self, samples: int) -> float:
        """What the loss of so many samples must not fall below in a sealed training, which has no
        room for it then; no bound for losses that never do."""
        return -math.inf

    def dual_prox(self, v: Array, y: Array, c: Array | float) -> Array:
        """The prox of c times the conjugate of the loss at v: l'(t) where l'(t) + c*t = v, sample
        by sample."""
        raise ConfigError(
            f"dcpa needs a loss that defines dual_prox, which {type(self).__name__} does not. Use "
            f"mtcd."
        )

    def encode(self, labels: Labels) -> tuple[Array, tuple[str | float, ...]]:
        """The encoded labels, and the classes they stand for (none in regression)."""
        return _numeric(labels), ()

    def check_classes(self, classes: tuple[str | float, ...], samples: int) -> None:  # noqa: B027
        """Refuse labels that stand for no classes: before training, on the classes of
        ``encode``."""

    def class_notes(self, classes: tuple[str | float, ...], samples: int) -> tuple[str, ...]:
        """What the user should know about the classes of a training."""
        return ()

    def outputs(self, classes: tuple[str | float, ...]) -> int:
        """Numbers per sample in a representation."""
        return 1

    def predict(self, z: Array) -> Array:
        """The prediction of an aggregate z: the value in regression, the class index otherwise."""
        return z

    def probabilities(self, z: Array) -> Array:
        """A column for every class, for an aggregate z; an error where the model has no
        probabilities."""
        raise ConfigError(
            "This model gives no probabilities: use logistic or multinomial for them, or "
            "decision_function for scores."
        )

    @property
    def gives_probabilities(self) -> bool:
        """Whether it defines ``probabilities``."""
        return type(self).probabilities is not Loss.probabilities


LOSSES: Registry[type[Loss]] = Registry(
    Loss, "mtcd.losses", "mtcd.models.losses", "model.kind: no model is called '{}';"
)


def _root(f: Callable[[float], float]) -> float:
    """Where an increasing function changes its sign, at most 2^60 from 0."""
    at_zero = f(0.0)
    if at_zero == 0.0:
        return 0.0
    # The interval is doubled towards the side on which the root lies.
    low, high = (-1.0, 0.0) if at_zero > 0 else (0.0, 1.0)
    for _ in range(60):
        if f(low) <= 0.0 <= f(high):
            break
        low = 2 * low
        high = 2 * high
    else:
        # No root: the loss falls for ever in this direction, as with one class only. A finite end
        # keeps the leaves of trees finite.
        return low if at_zero > 0 else high
    return float(scipy.optimize.brentq(f, low, high, xtol=1e-13, rtol=1e-14))


def _numeric(labels: Labels) -> Array:
    if labels.dtype.kind not in "biuf":
        raise DataError(
            "The labels are not numbers, and this model predicts a number: choose another model or "
            "label."
        )
    return labels.astype(float)
