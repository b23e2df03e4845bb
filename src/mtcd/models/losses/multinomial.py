"""Multinomial logistic regression."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy  # its parts are loaded when they are used

from mtcd.core.arrays import Array
from mtcd.core.errors import ConfigError, DataError, listing
from mtcd.models.losses.loss import LOSSES, Labels, Loss

SOME, MANY = 9, 20  # classes: beyond these, labels are looked at more closely
ENOUGH = 20  # samples of a class, on average


@LOSSES.register("multinomial")
@dataclass(frozen=True)
class Multinomial(Loss):
    """l = log sum_c exp(z_c) - z_y: one number per class and sample, any class labels.

    Labels are encoded one-hot. The Hessian diag(p) - p p^T is at most 1/2.
    """

    curvature = 0.5
    example = "multinomial"

    def encode(self, labels: Labels) -> tuple[Array, tuple[str | float, ...]]:
        classes, codes = np.unique(labels, return_inverse=True)
        return np.eye(len(classes))[codes], tuple(classes.tolist())

    def check_classes(self, classes: tuple[str | float, ...], samples: int) -> None:
        """Refuse a measured number, and labels of which most occur once: no class could be learned
        from them."""
        count = len(classes)
        # Whole numbers are often classes, such as postal codes, however many there are; fractions
        # hardly ever.
        measured = _fractions(classes)
        mostly_once = 2 * count > samples
        if measured and (count > MANY or (mostly_once and count > SOME)):
            found = f"numbers with fractions, {count} different ones in {samples} samples"
        elif mostly_once and count > MANY:
            found = f"{count} different values in {samples} samples"
        else:
            return
        shown = listing(classes, 3)
        raise DataError(
            f"The labels are {found} ({shown}): these are no classes. For a number that is "
            "measured or counted use a model of regression, such as ridge. If they are classes, "
            "join the rare ones, and give them names."
        )

    def class_notes(self, classes: tuple[str | float, ...], samples: int) -> tuple[str, ...]:
        """That there are few samples for so many classes."""
        count = len(classes)
        if count <= MANY or samples >= ENOUGH * count:
            return ()
        return (
            f"The labels have {count} classes in {samples} samples, {samples / count:.2g} of each "
            f"on average: if the "
            "label is a number to predict, use a model of regression, such as ridge.",
        )

    def outputs(self, classes: tuple[str | float, ...]) -> int:
        return len(classes)

    def value(self, z: Array, y: Array) -> float:
        # logsumexp subtracts the maximum first: exp of a large aggregate overflows.
        return float(scipy.special.logsumexp(z, axis=1).sum() - np.vdot(y, z))

    def values(self, z: Array, y: Array) -> Array:
        return np.asarray(scipy.special.logsumexp(z, axis=1) - (y * z).sum(axis=1))

    def gradient(self, z: Array, y: Array) -> Array:
        return np.asarray(scipy.special.softmax(z, axis=1) - y)

    def hessian_product(self, z: Array, y: Array, v: Array) -> Array:
        p = scipy.special.softmax(z, axis=1)
        return np.asarray(p * (v - (p * v).sum(axis=1, keepdims=True)))

    def curvatures(self, z: Array, y: Array) -> Array:
        """The diagonal, times C/(C - 1): for two classes, the second derivative along their
        difference."""
        p = scipy.special.softmax(z, axis=1)
        return np.asarray(y.shape[1] / max(y.shape[1] - 1, 1) * p * (1.0 - p))

    def best_shift(self, z: Array, y: Array, weights: Array | None = None) -> Array:
        """The logarithms of the shares of the classes, which minimise the loss for z = 0."""
        shares = np.average(y, axis=0, weights=weights)
        # A class that no sample of this part has would start at minus infinity.
        return np.asarray(np.log(np.maximum(shares, 1e-12)))

    def dual_prox(self, v: Array, y: Array, c: Array | float) -> Array:
        raise ConfigError(
            "This method needs a loss with one number per sample: multinomial has several. Use "
            "mtcd."
        )

    def predict(self, z: Array) -> Array:
        return np.asarray(z.argmax(axis=1), dtype=float)

    def probabilities(self, z: Array) -> Array:
        return np.asarray(scipy.special.softmax(z, axis=1))


def _fractions(classes: tuple[str | float, ...]) -> bool:
    """Whether the classes are numbers, and not all whole ones."""
    return any(isinstance(one, float) and not one.is_integer() for one in classes)
