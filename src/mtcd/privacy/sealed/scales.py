"""The fixed point of sealed tours: real numbers as integers modulo t, such that no sum wraps
around.

f never rises, a loss of curvature c that is 0 or more has |l'|^2 <= 2c l, and within a tour |g|^2 +
2c r does not rise either. So |g| <= sqrt(2c f(0)) at all times, and a column x with |x| |g| < t/2
has an exact product with every token. The penalty's inner products are at most 8 f(0), since r <=
f(0) at both ends of a tour.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mtcd.core.arrays import Array
from mtcd.core.errors import DataError
from mtcd.privacy.sealed.bfv.cipher import Integers
from mtcd.privacy.sealed.bfv.fixed_point import fix_matrix
from mtcd.privacy.sealed.bfv.parameters import Parameters

ROUNDINGS = 8.0
"""Standard deviations of the sum of all rounding errors of a token, for which there is room."""


CORRECTION = 2.0**-4
"""The most that all corrections of rounding errors together have, as a share of the largest g."""
FEWEST_LEVELS = 16
"""The fewest integers between the median of a column and its values: coarser columns move f by 1e-3
and more."""
SPREAD = 0.9
"""The quantile that counts as the distance of values from the median: few values lie further
apart."""
SMALLEST = 2.0**-40
"""The least share of f(0) that the scale of a token is chosen for."""


def power_below(x: float) -> float:
    """The largest power of two that is no larger: multiples of it are rounded without error."""
    return 2.0 ** math.floor(math.log2(x))


@dataclass(frozen=True)
class Scales:
    """The scales of a run. ``start`` is f(0), or more; ``visits`` the updates in a tour; ``extras``
    the sums beside g.

    ``parameters`` are for ``samples`` = N + ``extras`` numbers. The scale of the token is chosen
    for each tour, since
    |g| falls with f.
    """

    parameters: Parameters
    samples: int
    curvature: float
    start: float
    visits: int
    finer: float = 1.0
    """So many times finer than ``token_bound`` is the token rounded, and the columns so many times
    coarser."""

    @property
    def extras(self) -> int:
        """Numbers in a token beside g."""
        return self.parameters.samples - self.samples

    def token(self, objective: float) -> float:
        """Integers per unit of g in a tour that starts with this f: a power of two."""
        # The root mean square of |g| <= sqrt(2 c f), with a floor where f is nearly 0.
        typical = math.sqrt(
            2 * self.curvature * max(objective, SMALLEST * self.start, 1e-280) / self.samples
        )
        # Half of the bound is kept for growth within the tour.
        return power_below(self.finer * self.parameters.token_bound / (2.0 * typical))

    @property
    def sums(self) -> float:
        """Integers per unit of the penalty's inner products."""
        return power_below(self.parameters.half / (9.0 * max(self.start, 1e-280)))

    @property
    def longest(self) -> float:
        """The largest Euclidean norm of the integers of a token."""
        return math.sqrt(self.samples) * (self._largest + ROUNDINGS * math.sqrt(self.visits + 2))

    @property
    def _largest(self) -> float:
        """The root mean square of the integers of a token, at most, without rounding errors."""
        return self.finer * self.parameters.token_bound / 2

    @property
    def most_correction(self) -> float:
        """The most integers by which a client corrects a score: ``token_to_correct`` leaves room
        for them."""
        # A share of the room for each client of a tour: together they cannot wrap around.
        return CORRECTION / (1 + CORRECTION) * self._largest / self.visits

    def token_to_correct(self, objective: float) -> float:
        """The same as ``token`` for a tour in which rounding errors are corrected."""
        return self.token((1 + CORRECTION) ** 2 * objective)

    def rounding(self, token: float) -> float:
        """The variance of the rounding errors in a change of the scores: one of each client."""
        # Rounding at random to one of two neighbours has variance 1/6 on average, in units of the
        # token.
        return self.visits / 6.0 / (self.curvature * token) ** 2

    def integers(self, X: Array, tokens: int = 1) -> tuple[Integers, Array]:
        """Columns as integers, with rows of 0 for the sums beside g, and their scales: powers of
        two.

        ``tokens``: of how many tokens the vector is the sum that they are multiplied with.
        """
        # Zeros: the sums beside g must not enter a product.
        padded = np.vstack([X, np.zeros((self.extras, X.shape[1]))])
        scales = fix_matrix(padded, self.parameters).scales
        norms = np.sqrt((X**2).sum(axis=0))
        room = self.parameters.half / (1.001 * tokens * self.longest) - 0.5 * math.sqrt(
            self.samples
        )
        scales = np.minimum(
            scales, np.divide(room, norms, out=np.ones_like(norms), where=norms > 0)
        )
        # Powers of two, so that dividing by them later rounds nothing.
        scales = 2.0 ** np.floor(np.log2(scales))
        return np.rint(padded * scales).astype(np.int64), scales

    def check_resolution(self, X: Array, party: str) -> None:
        """Refuse a column whose scale a few extreme values decide, so that its other values are
        rounded away.

        The room for integers is that of the column's length, of which one value may be nearly all.
        What counts is how far its values lie apart otherwise: the 90th percentile of their
        distances from the median, without those that are at the median.

        Parameters
        ----------
        X : array
            The columns of a party.
        party : str
            Its name, for the error.

        Raises
        ------
        DataError
            With the column, and what to do.
        """
        _, scales = self.integers(X)
        for j, scale in enumerate(scales):
            # The median, as one extreme value moves a mean.
            distances = np.abs(X[:, j] - np.median(X[:, j]))
            # Columns of few values, such as flags, are mostly at their median.
            distances = distances[distances > 0]
            if not distances.size:
                continue

            spread = float(np.quantile(distances, SPREAD))
            longest = math.sqrt(float(np.mean(X[:, j] ** 2)))
            levels = spread * float(scale)
            if levels < FEWEST_LEVELS and spread < longest:
                raise DataError(
                    f"Column {j + 1} of {party} would be rounded too coarsely by a sealed "
                    f"training: most of its values differ by {levels:.1f} integers or less, fewer "
                    f"than {FEWEST_LEVELS}, since the largest ({np.abs(X[:, j]).max():.3g}) takes "
                    "the room. Cap its extreme values, or take logarithms; if all of its values "
                    "are large, subtract their mean (standardise: true)."
                )

    def vector(self, values: Array, token: float) -> Integers:
        """Real numbers of the scale of g, with zeros for the sums beside it."""
        return np.concatenate([np.rint(values * token), np.zeros(self.extras)]).astype(np.int64)

    def changes(self, opened: Integers, start: Integers, token: float) -> tuple[Array, Array]:
        """The change of the scores in a tour and the penalty's sums, from the token at its end and
        at its start."""
        # The integers of both are exact, so their difference is.
        moved = (opened - start).astype(float)
        return moved[: self.samples] / (self.curvature * token), moved[self.samples :] / self.sums
