"""Fixed point: numbers as multiples of a step, added modulo a power of 2, so that a uniform mask
hides them perfectly.

The integers are kept with a sign, as two's complement: their sums wrap around, which is addition
modulo 2^64 or 2^32.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtcd.core.arrays import Array
from mtcd.core.errors import DataError

Words = NDArray[Any]
"""Integers modulo 2^64 (int64) or 2^32 (int32)."""


@dataclass(frozen=True)
class FixedPoint:
    """Multiples of ``1 / steps_per_unit``, kept as integers of ``dtype``.

    Parameters
    ----------
    dtype
        Signed integers, whose sums wrap around.
    steps_per_unit
        A power of two, so that encoding a small integer is exact.
    largest
        The limit of the absolute value of a sum.

    Examples
    --------
    >>> words = [WIDE.encode(np.array([x]), summands=2) for x in (0.5, -2.25)]
    >>> WIDE.decode(words[0] + words[1]).tolist()
    [-1.75]
    """

    dtype: np.dtype[Any]
    steps_per_unit: float
    largest: float

    def fits(self, values: NDArray[Any], summands: int) -> bool:
        """Whether the values are finite, and small enough that so many summands can be added
        without overflow."""
        if not values.size:
            return True

        # NaN is neither above nor below: both comparisons must hold, not fail.
        limit = self.largest / summands
        return -limit < float(values.min()) and float(values.max()) < limit

    def encode(self, values: NDArray[Any], summands: int) -> Words:
        """The nearest multiples of the step; refuses values whose sum could overflow."""
        # Checked before, as a sum that has overflowed modulo 2^64 looks like any other.
        if not self.fits(values, summands):
            largest = float(np.abs(values).max())
            raise DataError(
                f"A number to be summed is {largest:.3g}, but sums of {summands} numbers in fixed "
                f"point hold less than {self.largest / summands:.3g} each."
            )

        # Nearest, not down: rounding down would shift a sum of many by half a step each.
        return np.rint(values * self.steps_per_unit).astype(self.dtype)

    def decode(self, words: Words) -> Array:
        """The numbers that were encoded, to the precision of a step."""
        return np.asarray(words / self.steps_per_unit)


# Little-endian, whatever the machine: the words travel as they lie in memory.
WIDE = FixedPoint(np.dtype("<i8"), 2.0**32, 2.0**30)
"""For float64: steps of 2^-32 modulo 2^64, sums below 2^30."""
NARROW = FixedPoint(np.dtype("<i4"), 2.0**18, 2.0**12)
"""For float32, in as many bytes: steps of 2^-18 modulo 2^32, sums below 2^12."""
