"""The fixed point of private tours. It depends on sizes and budgets alone, never on the data.

Every party scales its rows such that the clipping length is ``radius`` integers, and g lies between
-``unit`` and ``unit``. One row of integers then has a product with g of at most ``radius`` *
``unit``: this is the sensitivity to which the key holder adds noise, and it need not know how many
columns a party has.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from mtcd.core.arrays import Array
from mtcd.core.errors import ConfigError
from mtcd.privacy.sealed.bfv.cipher import Integers
from mtcd.privacy.sealed.scales import Scales

FEWEST_BITS = 14
"""Of ``radius`` and ``unit`` together."""
TAIL = 9.0
"""Standard deviations that no noise exceeds: ``mtcd.privacy.sealed.dp.noise`` draws none beyond
8.3."""
LARGEST_CHANGE = 2.0**14
"""Of a score in one tour: a party whose change exceeds its share of it clips it, which does not
harm the privacy."""


@dataclass(frozen=True)
class PrivateScales(Scales):
    """``noisiest``: the largest noise multiplier."""

    noisiest: float = field(kw_only=True)

    @property
    def _bits(self) -> int:
        """Of ``radius`` and ``unit`` together, such that no gradient with its noise wraps
        around."""
        # The largest gradient is N products; noise beyond TAIL deviations is never drawn.
        bits = math.floor(math.log2(self.parameters.half / (self.samples + TAIL * self.noisiest)))
        if bits < FEWEST_BITS:
            raise ConfigError(
                f"privacy.dp: noise of {self.noisiest:.3g} clipping lengths on the gradients of "
                f"{self.samples} samples leaves no room for the gradients in the encrypted "
                "integers: use a larger epsilon, or fewer tours."
            )
        return bits

    @property
    def unit(self) -> float:
        """Integers per unit of g."""
        return 2.0 ** (self._bits // 2)

    @property
    def radius(self) -> float:
        """Integers per clipping length."""
        return 2.0 ** (self._bits - self._bits // 2)

    @property
    def sensitivity(self) -> float:
        """The most by which a row of another party moves a gradient: one clipping length, in
        integers."""
        return self.radius * self.unit

    def token(self, objective: float) -> float:
        return self.unit

    @property
    def sums(self) -> float:
        """Integers per unit of the scores."""
        return 2.0 ** math.floor(math.log2(self.parameters.half / LARGEST_CHANGE))

    def rows(self, X: Array, length: float) -> Integers:
        """Rows of at most this length as integers. They are rounded towards zero, so that none gets
        longer."""
        # Towards zero: rounding to the nearest could make a row longer than it may be.
        integers = np.trunc(X * (self.radius / length)).astype(np.int64)
        return np.vstack([integers, np.zeros((self.extras, X.shape[1]), np.int64)])

    def shifts(self, change: Array, draws: Array) -> Integers:
        """What is added to the token for this change of the scores; ``draws`` are for the
        rounding."""
        # A party whose change is clipped harms its own model, and nobody's privacy.
        most = LARGEST_CHANGE / self.visits - 1 / self.sums  # with the rounding
        added = np.floor(np.clip(change, -most, most) * self.sums + draws)
        return np.concatenate([np.zeros(self.samples), added]).astype(np.int64)

    def changes(self, opened: Integers, start: Integers, token: float) -> tuple[Array, Array]:
        """The change of the scores, which lies beside g; no sums."""
        return (opened - start)[self.samples :].astype(float) / self.sums, np.zeros(0)
