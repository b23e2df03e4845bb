"""Losses of randomised labels: in expectation over the draws, those of the true labels.

A label that is a class is a row of indicators y, one for each class (for two classes, one number).
Randomised response turns it into y~, with E y~ = q + (p - q) y. So (y~ - q) / (p - q) has the
expectation y, and a loss that is linear in y, up to what does not depend on z, keeps its value and
its gradient in expectation. Only the encoding of labels differs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mtcd.core.arrays import Array
from mtcd.core.errors import DataError
from mtcd.models.losses import Labels, Loss
from mtcd.models.losses.logistic import Logistic
from mtcd.models.losses.multinomial import Multinomial
from mtcd.privacy.labels.mechanisms import probabilities

FLOOR = 4.0
"""What is added to the loss of a sample, in squares of the largest derivative. Half of it is
|l'|^2 / 2c, by which sealed tours bound derivatives; the other half is room for losses below 0,
which take scores of 8 and more (at epsilon 1; far more at larger ones) on average over all
samples."""


@dataclass(frozen=True)
class Corrected(Loss):
    """The encoding of randomised labels.

    Parameters
    ----------
    epsilon : float
        That of the randomised response.
    needs_shares : bool
        Whether every class must be left a share of the samples: an intercept without a penalty
        would have no optimum.
    has_floor : bool
        Whether a constant is added for every label, so that the loss stays above 0 by as much as
        ``FLOOR`` says: sealed tours derive the room for their integers from it.
    """

    epsilon: float = 1.0
    needs_shares: bool = False
    has_floor: bool = False

    def encode(self, labels: Labels) -> tuple[Array, tuple[str | float, ...]]:
        codes, classes = super().encode(labels)
        p, q = probabilities(self.epsilon, len(classes))
        encoded = (codes - q) / (p - q)
        shares = encoded.mean(axis=0)
        if self.needs_shares and not ((shares > 0) & (shares < 1)).all():
            raise DataError(
                f"Of some class the randomised labels of {len(labels)} samples leave no share: "
                "train without an intercept, with more samples, or with a larger "
                "privacy.labels.epsilon."
            )
        return encoded, classes

    def best_shift(self, z: Array, y: Array, weights: Array | None = None) -> Array:
        """The constant for the shares of classes that the labels leave, each of them at least that
        of half a sample."""
        shares = np.average(y, axis=0, weights=weights)
        least = 0.5 / len(y)
        kept = np.clip(shares, least, 1.0 - least)
        return super().best_shift(z, np.broadcast_to(kept, y.shape), weights)


@dataclass(frozen=True)
class CorrectedLogistic(Corrected, Logistic):
    """Logistic regression on randomised labels of two classes."""

    def value(self, z: Array, y: Array) -> float:
        return super().value(z, y) + self._floor * float(np.count_nonzero(y))

    def values(self, z: Array, y: Array) -> Array:
        return np.asarray(super().values(z, y) + self._floor * (y != 0))

    def least(self, samples: int) -> float:
        return 0.5 * self._floor * samples if self.has_floor else super().least(samples)

    @property
    def _floor(self) -> float:
        """What is added for a label. Those that are corrected are never 0; a party without labels
        computes with zeros, which have none."""
        if not self.has_floor:
            return 0.0

        p, q = probabilities(self.epsilon, 2)
        largest = p / (p - q)
        return FLOOR * largest**2


@dataclass(frozen=True)
class CorrectedMultinomial(Corrected, Multinomial):
    """Multinomial logistic regression on randomised labels."""
