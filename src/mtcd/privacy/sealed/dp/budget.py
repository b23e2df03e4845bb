"""The accounting of differential privacy: which noise a budget needs, and what a training has spent
of it.

In a tour every party k receives its gradient with Gaussian noise of m_k times its clipping length:
m_k is its noise multiplier, u_k = 1 / m_k^2 its precision. One changed row of party j moves the
gradient of another party by at most
|a - b| clipping lengths and its own by a + b, where a and b, the derivatives of the loss before and after but for their
sign, which the label gives, lie between 0 and 1 (docs/differential-privacy.md). All gradients of a
tour are then one Gaussian mechanism of deviation 1 and of squared sensitivity (a - b)^2 (sum_k u_k
- u_j) + (a + b)^2 u_j: convex in (a, b), so at most the larger of its values at (1, 0) and (1, 1),
sum_k u_k and 4 u_j. T tours have T times as much.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mtcd.core.arrays import Array
from mtcd.privacy.sealed.dp.gaussian import epsilon_of, mu_of
from mtcd.privacy.settings import DP

OWN = 4.0
"""The squared sensitivity of a party's own gradient, in clipping lengths, where those of the others
do not change."""
MARGIN = 1e-7
"""By which the noise is larger than computed, so that no budget is exceeded by the tolerance of a
solver."""


@dataclass(frozen=True)
class Budget:
    """The budgets of all parties, and the noise that keeps them."""

    parties: tuple[str, ...]
    epsilons: tuple[float, ...]
    delta: float
    tours: int
    multipliers: tuple[float, ...]

    def sensitivities(self) -> Array:
        """The squared sensitivity of a tour to a row of each party, in units of the noise."""
        u = np.array(self.multipliers) ** -2.0
        return np.asarray(np.maximum(u.sum(), OWN * u))

    def spent(self, tours: int) -> tuple[float, ...]:
        """The epsilon of each party after so many tours."""
        return tuple(
            epsilon_of(float(tours * one) ** 0.5, self.delta) for one in self.sensitivities()
        )


def plan_budget(dp: DP, parties: Sequence[str]) -> Budget:
    """The noise with which ``dp.tours`` tours keep every party's budget."""
    names = tuple(parties)
    dp.check_parties(names)
    epsilons = tuple(dp.of(name) for name in names)
    allowed = {epsilon: mu_of(epsilon, dp.delta) ** 2 / dp.tours for epsilon in set(epsilons)}
    precisions = shared_precisions(np.array([allowed[epsilon] for epsilon in epsilons]))
    multipliers = tuple(((1 + MARGIN) * precisions**-0.5).tolist())
    return Budget(names, epsilons, dp.delta, dp.tours, multipliers)


def shared_precisions(allowed: Array) -> Array:
    """The u_k of largest product with sum_k u_k <= allowed_j and 4 u_j <= allowed_j for all j.

    They are equal, except for those whose own bound is smaller than the level v of the others: the
    sum is the smallest of all allowed, or less where all have their bounds.
    """
    bounds, total = allowed / OWN, float(allowed.min())
    ordered = np.sort(bounds)
    below = np.cumsum(ordered) - ordered
    # if all smaller ones have their bounds
    levels = (total - below) / np.arange(len(ordered), 0, -1)
    fitting = np.flatnonzero(levels <= ordered)
    return np.minimum(bounds, levels[fitting[0]] if len(fitting) else np.inf)
