"""Losses: the sum over samples of l(z_n, y_n), where z is the aggregate of all representations.

Each loss knows its value, its gradient in z, the product of its second derivative with a vector,
and ``curvature``, the largest second derivative of one sample: that is all a solver may ask of it.
Labels are encoded once, before training, by ``encode``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import scipy  # its parts are loaded when they are used
from numpy.typing import NDArray

from mtcd.checks import check_number
from mtcd.errors import ConfigError, DataError, listing

Array = NDArray[np.float64]
Labels = NDArray[np.generic]


class Loss(ABC):
    """One loss. ``curvature`` bounds the second derivative of a single sample's loss in z."""

    curvature: float

    @abstractmethod
    def value(self, z: Array, y: Array) -> float:
        """The loss summed over samples."""

    @abstractmethod
    def gradient(self, z: Array, y: Array) -> Array:
        """d value / d z, of the shape of z."""

    @abstractmethod
    def hessian_product(self, z: Array, y: Array, v: Array) -> Array:
        """The second derivative in z times v, both of the shape of z."""

    def dual_prox(self, v: Array, y: Array, c: float) -> Array:
        """The prox of c times the conjugate of the loss at v: l'(t) where l'(t) + c*t = v, sample by sample."""
        raise ConfigError("This method needs a loss with one number per sample: multinomial has several. Use mtcd.")

    def encode(self, labels: Labels) -> tuple[Array, tuple[str | float, ...]]:
        """The labels as the loss wants them, and the classes they stand for (none in regression)."""
        return _numeric(labels), ()

    def outputs(self, classes: tuple[str | float, ...]) -> int:
        """Numbers per sample in a representation."""
        return 1

    def predict(self, z: Array) -> Array:
        """What to show for an aggregate z: the value in regression, the class index otherwise."""
        return z


@dataclass(frozen=True)
class Squared(Loss):
    """l = (z - y)^2 / 2."""

    curvature = 1.0

    def value(self, z: Array, y: Array) -> float:
        residual = z - y
        return 0.5 * float(residual @ residual)

    def gradient(self, z: Array, y: Array) -> Array:
        return z - y

    def hessian_product(self, z: Array, y: Array, v: Array) -> Array:
        return v

    def dual_prox(self, v: Array, y: Array, c: float) -> Array:
        return (v - c * y) / (1.0 + c)


@dataclass(frozen=True)
class Huber(Loss):
    """l = r^2/2 where |r| <= delta, else delta*(|r| - delta/2); r = z - y."""

    delta: float = 1.0
    curvature = 1.0

    def __post_init__(self) -> None:
        check_number("model.delta", self.delta, above=0)

    def value(self, z: Array, y: Array) -> float:
        size = np.abs(z - y)
        inner = np.minimum(size, self.delta)
        return float((inner * (size - 0.5 * inner)).sum())

    def gradient(self, z: Array, y: Array) -> Array:
        return np.clip(z - y, -self.delta, self.delta)

    def hessian_product(self, z: Array, y: Array, v: Array) -> Array:
        return np.where(np.abs(z - y) <= self.delta, v, 0.0)

    def dual_prox(self, v: Array, y: Array, c: float) -> Array:
        return np.clip((v - c * y) / (1.0 + c), -self.delta, self.delta)


class _TwoClasses(Loss):
    """Losses of two classes: labels 0/1 or -1/1."""

    def encode(self, labels: Labels) -> tuple[Array, tuple[str | float, ...]]:
        wanted = "this model wants labels 0/1 or -1/1"
        if labels.dtype.kind not in "biuf":
            raise DataError(f"The labels are not numbers; {wanted} (use multinomial for other class labels).")
        found = np.unique(labels)
        if found.astype(float).tolist() not in ([0.0, 1.0], [-1.0, 1.0]):
            raise DataError(
                f"The labels hold {len(found)} different values ({listing(found.tolist(), 5)}); {wanted}. "
                "Recode the label column, or use the multinomial model."
            )
        return self._coded((labels == found[1]).astype(float)), tuple(found.tolist())

    def _coded(self, positive: Array) -> Array:
        return positive

    def predict(self, z: Array) -> Array:
        return (z > 0).astype(float)


@dataclass(frozen=True)
class Logistic(_TwoClasses):
    """l = log(1 + exp(z)) - y*z, y in {0, 1}."""

    curvature = 0.25

    def value(self, z: Array, y: Array) -> float:
        return float(np.logaddexp(0.0, z).sum() - y @ z)

    def gradient(self, z: Array, y: Array) -> Array:
        p = _sigmoid(z)
        p -= y
        return p

    def hessian_product(self, z: Array, y: Array, v: Array) -> Array:
        p = _sigmoid(z)
        return np.asarray(p * (1.0 - p) * v)

    def dual_prox(self, v: Array, y: Array, c: float) -> Array:
        return _sigmoid_at_root(v + y, c) - y


@dataclass(frozen=True)
class SquaredHinge(_TwoClasses):
    """l = max(0, 1 - y*z)^2, y in {-1, 1}."""

    curvature = 2.0

    def _coded(self, positive: Array) -> Array:
        return 2.0 * positive - 1.0

    def value(self, z: Array, y: Array) -> float:
        slack = np.maximum(0.0, 1.0 - y * z)
        return float(slack @ slack)

    def gradient(self, z: Array, y: Array) -> Array:
        return np.asarray(-2.0 * y * np.maximum(0.0, 1.0 - y * z))

    def hessian_product(self, z: Array, y: Array, v: Array) -> Array:
        return np.where(y * z < 1.0, 2.0 * v, 0.0)

    def dual_prox(self, v: Array, y: Array, c: float) -> Array:
        return np.asarray(y * np.minimum(2.0 * (y * v - c) / (2.0 + c), 0.0))


@dataclass(frozen=True)
class Multinomial(Loss):
    """l = log sum_c exp(z_c) - z_y: one number per class and sample, any class labels.

    Labels are encoded one-hot. The Hessian diag(p) - p p^T is at most 1/2.
    """

    curvature = 0.5

    def encode(self, labels: Labels) -> tuple[Array, tuple[str | float, ...]]:
        classes, codes = np.unique(labels, return_inverse=True)
        return np.eye(len(classes))[codes], tuple(classes.tolist())

    def outputs(self, classes: tuple[str | float, ...]) -> int:
        return len(classes)

    def value(self, z: Array, y: Array) -> float:
        return float(scipy.special.logsumexp(z, axis=1).sum() - np.vdot(y, z))

    def gradient(self, z: Array, y: Array) -> Array:
        return np.asarray(scipy.special.softmax(z, axis=1) - y)

    def hessian_product(self, z: Array, y: Array, v: Array) -> Array:
        p = scipy.special.softmax(z, axis=1)
        return np.asarray(p * (v - (p * v).sum(axis=1, keepdims=True)))

    def predict(self, z: Array) -> Array:
        return np.asarray(z.argmax(axis=1), dtype=float)


def _sigmoid(z: Array) -> Array:
    """1 / (1 + exp(-z)), by tanh: never overflows, and twice as fast as the textbook form."""
    p = np.tanh(0.5 * z)
    p += 1.0
    p *= 0.5
    return p


def _sigmoid_at_root(u: Array, c: float) -> Array:
    """sigmoid(t) for the t with sigmoid(t) + c*t = u, by Newton's method.

    Mirrored so that t <= 0, where the left side is convex: from any t <= 0 the second step on comes down from
    above, so that cutting steps off at 0 is all the safeguard that is needed.
    """
    mirrored = u > 0.5
    u = np.where(mirrored, 1.0 - u, u)
    # a good start: for small c the root is near log(c) or above, where c*t is known; far below, c*t alone counts
    known = u - c * min(math.log(c), 0.0)
    p = np.clip(known, min(c, 0.5), 0.5)
    t = np.minimum(np.log(p / (1.0 - p)) + np.minimum(known / c - 1.0, 0.0), 0.0)
    for _ in range(100):
        e = np.exp(t)
        p = e / (1.0 + e)
        step = (p + c * t - u) / (p * (1.0 - p) + c)
        t = np.minimum(t - step, 0.0)
        if (np.abs(step) <= 1e-12 * (1.0 + np.abs(t))).all():
            break
    return np.where(mirrored, 1.0 - p, p)


def _numeric(labels: Labels) -> Array:
    if labels.dtype.kind not in "biuf":
        raise DataError("The labels are not numbers, and this model predicts a number: choose another model or label.")
    return labels.astype(float)
