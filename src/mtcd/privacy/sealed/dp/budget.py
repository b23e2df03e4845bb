"""The accounting of differential privacy: which noise a budget needs, and what a training has spent
of it.

In a tour every party k receives its gradient with Gaussian noise of m_k times its clipping length:
m_k is its noise multiplier, u_k = 1 / m_k^2 its precision. One changed row of party j moves the
gradient of another party by at most |a - b| clipping lengths, and its own by a + b. Here a and b
are the derivatives of the loss before and after but for their sign, which the label gives: both lie
between 0 and 1 (docs/differential-privacy.md).

All gradients of a tour are then one Gaussian mechanism of deviation 1 and of squared sensitivity
(a - b)^2 (sum_k u_k - u_j) + (a + b)^2 u_j. It is convex in (a, b), so at most the larger of its
values at (1, 0) and (1, 1): sum_k u_k and 4 u_j. T tours have T times as much.

The accounting of a Gaussian mechanism is exact (Balle and Wang 2018, theorem 8). A mechanism that
adds noise of deviation 1 to a query that one row moves by mu at most is (epsilon,
delta)-differentially private if and only if delta is at least

    Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu).

Mechanisms compose, also adaptively, as one whose mu^2 is the sum of theirs: nothing is lost,
whatever delta is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy  # its parts are loaded when they are used

from mtcd.core.arrays import Array
from mtcd.privacy.settings import DP

OWN = 4.0
"""The squared sensitivity of a party's own gradient, in clipping lengths, where those of the others
do not change."""
MARGIN = 1e-7
"""By which the noise is larger than computed, so that no budget is exceeded by the tolerance of a
solver."""
TINY = 1e-5
"""Below this mu, the difference of two values of erfcx is taken from its derivative, which loses no
digits."""
PRECISION = 1e-13


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
    # Level by level from the smallest bound: the first level that the next bound allows is the one
    # of all others.
    levels = (total - below) / np.arange(len(ordered), 0, -1)
    fitting = np.flatnonzero(levels <= ordered)
    return np.minimum(bounds, levels[fitting[0]] if len(fitting) else np.inf)


def log_delta(epsilon: float, mu: float) -> float:
    """The logarithm of the least delta.

    With u = epsilon/mu - mu/2 and v = epsilon/mu + mu/2, v^2 - u^2 is 2 epsilon. So both terms have
    the factor e^(-u^2/2), and what remains is a difference of two values of erfcx(x) = e^(x^2)
    erfc(x): no term overflows, and delta may be far smaller than the smallest number.
    """
    u = epsilon / mu - mu / 2
    v = epsilon / mu + mu / 2
    erfcx, ndtr, root = scipy.special.erfcx, scipy.special.ndtr, math.sqrt(2)
    # Phi(-u) - Phi(-v) is a sum of positive numbers here, and epsilon is below 1/2
    if u < 0 and mu < 1:
        return math.log(
            (math.erf(v / root) + math.erf(-u / root)) / 2 - math.expm1(epsilon) * float(ndtr(-v))
        )

    if u < 0:
        return math.log(float(ndtr(-u)) - math.exp(-(u**2) / 2) * float(erfcx(v / root)) / 2)

    if mu < TINY:
        middle = epsilon / mu / root
        difference = mu / root * (2 / math.sqrt(math.pi) - 2 * middle * float(erfcx(middle)))
    else:
        difference = float(erfcx(u / root) - erfcx(v / root))
    return -(u**2) / 2 + math.log(difference / 2)


@lru_cache(maxsize=1024)
def epsilon_of(mu: float, delta: float) -> float:
    """The least epsilon with this delta."""
    wanted = math.log(delta)
    if mu == 0 or log_delta(0.0, mu) <= wanted:
        return 0.0

    # delta is at most Phi(-u), and so at most e^(-u^2/2)
    # From the bound on delta: brentq needs an interval that holds the root.
    highest = mu**2 / 2 + mu * math.sqrt(-2 * wanted)
    excess = lambda epsilon: log_delta(epsilon, mu) - wanted  # noqa: E731
    return float(scipy.optimize.brentq(excess, 0.0, highest, xtol=PRECISION * highest))


@lru_cache(maxsize=256)
def mu_of(epsilon: float, delta: float) -> float:
    """The largest mu that is (epsilon, delta)-differentially private; ``epsilon`` above 0."""
    wanted = math.log(delta)
    tail = math.sqrt(-2 * wanted)
    # the inverse of the bound in ``epsilon_of``
    lowest = 2 * epsilon / (math.sqrt(tail**2 + 2 * epsilon) + tail)
    highest = 2 * lowest
    # The lower bound is close; few doublings reach a mu that exceeds delta.
    while log_delta(epsilon, highest) <= wanted:
        highest *= 2
    excess = lambda mu: log_delta(epsilon, mu) - wanted  # noqa: E731
    return float(scipy.optimize.brentq(excess, lowest, highest, xtol=PRECISION * lowest))
