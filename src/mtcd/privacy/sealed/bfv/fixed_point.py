"""Real numbers as integers modulo t: with a stated error, and with proof that no sum exceeds t/2.

A product is the sum over samples of x_i g_i, where |g_i| <= B, the token's bound. Each column has a
scale of its own, the largest for which sum_i |x_i| B <= (t - 1) / 2 holds with the rounded x_i: the
product of any token within its bound is then exact modulo t. The token's scale is common to all
parties.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mtcd.core.errors import ConfigError, DataError
from mtcd.privacy.sealed.bfv.parameters import Parameters

Reals = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
LEAST_LEVELS = 8
"""A column whose root mean square is fewer integers than this would be too coarse to train on."""
MOST = 2.0**52
"""Integers up to here are exact in float64."""


@dataclass(frozen=True)
class TokenScale:
    """The token's entries, reals of absolute value at most ``limit``, as integers of at most
    ``token_bound``."""

    parameters: Parameters
    limit: float

    def __post_init__(self) -> None:
        if not (np.isfinite(self.limit) and self.limit > 0):
            raise ConfigError(
                f"The limit of the token's entries must be a positive number, but is {self.limit}."
            )

    @property
    def scale(self) -> float:
        return self.parameters.token_bound / self.limit

    @property
    def error(self) -> float:
        """The largest error of an entry: half an integer."""
        return 0.5 / self.scale

    def integers(self, values: npt.ArrayLike, limit: float | None = None) -> Integers:
        """Round to integers. Rejects entries above ``limit``, by default that of the token."""
        reals = np.asarray(values, float)
        limit = self.limit if limit is None else limit
        if not np.all(np.isfinite(reals)):
            raise DataError("A vector to be sealed contains values that are not finite.")
        largest = float(np.max(np.abs(reals), initial=0.0))
        if largest > limit:
            raise DataError(
                f"A vector to be sealed has an entry of absolute value {largest:.3g}, but at most "
                f"{limit:.3g} was agreed: sums could wrap around the modulus."
            )
        # Rounded to the nearest: an error of half an integer at most (`error`).
        return np.rint(reals * self.scale).astype(np.int64)

    def reals(self, integers: npt.ArrayLike) -> Reals:
        return np.asarray(integers, float) / self.scale


@dataclass(frozen=True)
class FixedPointMatrix:
    """The columns of one client as integers, each with a scale of its own."""

    integers: Integers
    scales: Reals

    @property
    def errors(self) -> Reals:
        """The largest error of an entry of each column."""
        return 0.5 / self.scales

    def rounded(self) -> Reals:
        """The matrix that the integers stand for: train on it, and products are exact for it."""
        return self.integers / self.scales

    def products(self, integers: npt.ArrayLike, token: TokenScale) -> Reals:
        """X^T g, from the integers of a product."""
        return np.asarray(integers, float) / (self.scales * token.scale)


def fix_matrix(matrix: npt.ArrayLike, parameters: Parameters) -> FixedPointMatrix:
    """Round every column as finely as the plaintext modulus allows; a column of zeros stays one."""
    reals = np.asarray(matrix, float)
    if reals.ndim != 2 or reals.shape[0] != parameters.samples:
        raise DataError(
            f"The matrix has shape {reals.shape}, but {parameters.samples} samples were agreed."
        )
    if not np.all(np.isfinite(reals)):
        raise DataError("A matrix to be sealed contains values that are not finite.")
    filled = np.count_nonzero(reals, axis=0)
    # half an integer per entry is lost to rounding
    room = parameters.half // parameters.token_bound - 0.5 * filled
    size = np.abs(reals).sum(axis=0)
    # The whole room for this column: its largest possible product just stays below t/2.
    scales = np.where(size > 0, np.maximum(room, 0) / np.where(size > 0, size, 1), 1.0)
    # a column of few tiny values could have a scale at which integers are not exact any more
    scales = np.minimum(scales, MOST / np.maximum(np.abs(reals).max(axis=0, initial=0), 1e-280))
    # Relative to the root mean square of what is not zero: columns of few values count by these.
    levels = scales * np.sqrt((reals**2).sum(axis=0) / np.maximum(filled, 1))
    coarse = np.flatnonzero((size > 0) & (levels < LEAST_LEVELS))
    if coarse.size:
        raise DataError(
            f"Column {coarse[0]} would be rounded to {levels[coarse[0]]:.1f} integers per standard "
            f"deviation, fewer than {LEAST_LEVELS}: train on fewer samples, or cap extreme values "
            "of this column."
        )
    return FixedPointMatrix(np.rint(reals * scales).astype(np.int64), scales)


def check_matrix(integers: npt.ArrayLike, parameters: Parameters, checks: int = 0) -> Integers:
    """An integer matrix whose products with any token within its bound stay below t/2; rejects any
    other. The last ``checks`` columns may have any integers modulo t."""
    matrix = np.asarray(integers)
    if matrix.dtype.kind not in "iu" or matrix.ndim != 2 or matrix.shape[0] != parameters.samples:
        raise DataError(
            f"Expected an integer matrix with {parameters.samples} rows, one per sample."
        )
    matrix = matrix.astype(np.int64)
    # The check column has any integers modulo t: only its combination with others is used.
    bounded = matrix[:, : matrix.shape[1] - checks]
    # float64 rounds sums of integers: by less than the factor allows
    sums = np.abs(bounded.astype(float)).sum(axis=0) * (1 + 1e-12)
    if np.any(sums * parameters.token_bound > parameters.half):
        raise DataError(
            f"Column {int(np.argmax(sums))} is too large: its product with a token could exceed "
            "half of the plaintext modulus and wrap around. Use fix_matrix, which chooses its "
            "scale."
        )
    return matrix


def check_vector(
    integers: npt.ArrayLike, parameters: Parameters, size: int | None = None
) -> Integers:
    """Integers from -t/2 to t/2, by default one per sample; rejects any others."""
    vector = np.asarray(integers)
    size = parameters.samples if size is None else size
    if vector.dtype.kind not in "iu" or vector.shape != (size,):
        raise DataError(
            f"Expected {size} integers, but got an array of shape {vector.shape}, {vector.dtype}."
        )
    if vector.size and (
        int(vector.max()) > parameters.half or int(vector.min()) < -parameters.half
    ):
        raise DataError("An integer to be sealed exceeds half of the plaintext modulus.")
    return vector.astype(np.int64)
