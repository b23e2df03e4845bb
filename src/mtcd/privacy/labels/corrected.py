"""Losses of randomised labels: in expectation over the draws, those of the true labels.

A label that is a class is a row of indicators y, one for each class (for two classes, one number).
Randomised response turns it into y~, with E y~ = q + (p - q) y. So (y~ - q) / (p - q) has the
expectation y, and a loss that is linear in y, up to what does not depend on z, keeps its value and
its gradient in expectation. Only the encoding of labels differs. Soft labels are such numbers
themselves.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from mtcd.core.arrays import Array
from mtcd.core.errors import DataError
from mtcd.models.losses import Labels, Loss
from mtcd.models.losses.logistic import Logistic
from mtcd.models.losses.multinomial import Multinomial
from mtcd.privacy.labels.mechanisms import SOFT_TAIL, probabilities

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
    """

    epsilon: float = 1.0
    needs_shares: bool = False

    def encode(self, labels: Labels) -> tuple[Array, tuple[str | float, ...]]:
        codes, classes = super().encode(labels)
        p, q = probabilities(self.epsilon, len(classes))
        encoded = (codes - q) / (p - q)
        if self.needs_shares:
            check_shares(encoded, "a larger privacy.labels.epsilon")
        return encoded, classes

    def best_shift(self, z: Array, y: Array, weights: Array | None = None) -> Array:
        """The constant for the shares of classes that the labels leave, each of them at least that
        of half a sample."""
        shares = np.average(y, axis=0, weights=weights)
        least = 0.5 / len(y)
        kept = np.clip(shares, least, 1.0 - least)
        return super().best_shift(z, np.broadcast_to(kept, y.shape), weights)


@dataclass(frozen=True)
class RaisedLogistic(Logistic):
    """Logistic regression on labels beyond 0 and 1, whose loss may fall below 0.

    Parameters
    ----------
    has_floor : bool
        Whether a constant is added for every label, so that the loss stays above 0 by as much as
        ``FLOOR`` says: sealed tours derive the room for their integers from it.
    """

    has_floor: bool = False

    @property
    @abstractmethod
    def largest(self) -> float:
        """The largest derivative of the loss of one sample; the floor is a multiple of its
        square."""

    def value(self, z: Array, y: Array) -> float:
        return super().value(z, y) + self._floor * float(np.count_nonzero(y))

    def values(self, z: Array, y: Array) -> Array:
        return np.asarray(super().values(z, y) + self._floor * (y != 0))

    def least(self, samples: int) -> float:
        return 0.5 * self._floor * samples if self.has_floor else super().least(samples)

    @property
    def _floor(self) -> float:
        """What is added for a label. Those that are changed are never 0; a party without labels
        computes with zeros, which have none."""
        return FLOOR * self.largest**2 if self.has_floor else 0.0


@dataclass(frozen=True)
class CorrectedLogistic(Corrected, RaisedLogistic):
    """Logistic regression on randomised labels of two classes."""

    @property
    def largest(self) -> float:
        p, q = probabilities(self.epsilon, 2)
        return p / (p - q)


@dataclass(frozen=True)
class SoftLogistic(RaisedLogistic):
    """Logistic regression on soft labels: the label that the loss takes is the number itself.

    Parameters
    ----------
    soft : float
        The standard deviation of the noise on 0 and 1.
    names : pair of str or float
        The classes that count as 0 and 1.
    needs_shares : bool
        See :class:`Corrected`.
    """

    soft: float = 0.125
    names: tuple[str | float, ...] = (0.0, 1.0)
    needs_shares: bool = False

    def encode(self, labels: Labels) -> tuple[Array, tuple[str | float, ...]]:
        # noise is never 0: these are the stand-ins of a party without labels
        if np.isin(labels, self.names).all():
            return (labels == self.names[1]).astype(float), self.names

        encoded = labels.astype(float)
        if self.needs_shares:
            check_shares(encoded, "a smaller privacy.labels.soft")
        return encoded, self.names

    @property
    def largest(self) -> float:
        return 1.0 + SOFT_TAIL * self.soft


@dataclass(frozen=True)
class CorrectedMultinomial(Corrected, Multinomial):
    """Multinomial logistic regression on randomised labels."""


def check_shares(encoded: Array, otherwise: str) -> None:
    """Refuse labels that leave a class no share of the samples."""
    shares = encoded.mean(axis=0)
    if not ((shares > 0) & (shares < 1)).all():
        raise DataError(
            f"Of some class the randomised labels of {len(encoded)} samples leave no share: "
            f"train without an intercept, with more samples, or with {otherwise}."
        )
