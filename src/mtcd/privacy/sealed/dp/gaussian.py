"""The exact accounting of a Gaussian mechanism (Balle and Wang 2018, theorem 8).

A Gaussian mechanism adds noise of deviation 1 to a query that one row moves by mu at most. It is
(epsilon, delta)- differentially private if and only if delta is at least

    Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu).

Mechanisms compose, also adaptively, as one whose mu^2 is the sum of theirs: nothing is lost,
whatever delta is.
"""

from __future__ import annotations

import math
from functools import lru_cache

import scipy  # its parts are loaded when they are used

TINY = 1e-5
"""Below this mu, the difference of two values of erfcx is taken from its derivative, which loses no
digits."""
PRECISION = 1e-13


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
    while log_delta(epsilon, highest) <= wanted:
        highest *= 2
    excess = lambda mu: log_delta(epsilon, mu) - wanted  # noqa: E731
    return float(scipy.optimize.brentq(excess, lowest, highest, xtol=PRECISION * lowest))
