"""The accounting of differential privacy: which noise a budget needs, and what a training has spent of it.

In a tour every party k receives its gradient with Gaussian noise of m_k times its clipping length: m_k is its noise
multiplier, u_k = 1 / m_k^2 its precision. One changed row of party j moves the gradient of another party by at most one
clipping length, and its own by two (docs/differential-privacy.md). All gradients of a tour are then one Gaussian
mechanism of squared sensitivity sum_k u_k + 3 u_j and deviation 1, and those of T tours one of T times as much.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from types import ModuleType

import numpy as np
import scipy  # its parts are loaded when they are used

from mtcd.arrays import Array
from mtcd.errors import ConfigError
from mtcd.extras import find
from mtcd.privacy.settings import DP

OWN = 4.0
"""The squared sensitivity of a party's own gradient, in clipping lengths; that of another party's is 1."""
BISECTIONS = 60
MARGIN = 1e-7
"""By which the noise is larger than computed, so that no budget is exceeded by the tolerance of a solver."""


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
        return np.asarray(u.sum() + (OWN - 1) * u)

    def spent(self, tours: int) -> tuple[float, ...]:
        """The epsilon of each party after so many tours."""
        return tuple(_epsilon(float(tours * one), self.delta) for one in self.sensitivities())


def plan_budget(dp: DP, parties: Sequence[str]) -> Budget:
    """The noise with which ``dp.tours`` tours keep every party's budget."""
    names = tuple(parties)
    dp.check_parties(names)
    epsilons = tuple(dp.of(name) for name in names)
    allowed = {epsilon: _allowed(epsilon, dp.delta, dp.tours) for epsilon in set(epsilons)}
    precisions = shared_precisions(np.array([allowed[epsilon] for epsilon in epsilons]))
    multipliers = tuple(((1 + MARGIN) * precisions**-0.5).tolist())
    return Budget(names, epsilons, dp.delta, dp.tours, multipliers)


def shared_precisions(allowed: Array) -> Array:
    """The u_k of largest product with sum_k u_k + 3 u_j <= allowed_j for all j.

    At the optimum u_j is the smaller of a common level v and of what party j's budget leaves, (allowed_j - s) / 3,
    where s is the sum of all; the Lagrange multipliers of the tight budgets, (1 / u_j - 1 / v) / 3, add up to 1 / v.
    The larger s, the larger that sum: s is found by bisection.
    """
    extra, unit = OWN - 1, float(allowed.min())
    scaled = allowed / unit
    low, high = 0.0, min(1.0, float(scaled.sum()) / (len(scaled) + extra))  # beyond, budgets leave less than s
    for _ in range(BISECTIONS):
        total = (low + high) / 2
        left = (scaled - total) / extra
        level = _level(left, total)
        tight = 1 / np.minimum(level, left) - 1 / level
        low, high = (low, total) if tight.sum() / extra > 1 / level else (total, high)
    left = (scaled - low) / extra
    return np.asarray(unit * np.minimum(_level(left, low), left))


def _level(left: Array, total: float) -> float:
    """The v with sum_j min(v, left_j) = total; at most the largest of them."""
    ordered = np.sort(left)
    below = np.concatenate([[0.0], np.cumsum(ordered)[:-1]])  # of those that are smaller
    levels = (total - below) / np.arange(len(ordered), 0, -1)
    fitting = np.flatnonzero(levels <= ordered)
    return float(levels[fitting[0]] if len(fitting) else ordered[-1])


@lru_cache(maxsize=256)
def _allowed(epsilon: float, delta: float, tours: int) -> float:
    """The squared sensitivity of a tour, in units of the noise, that a budget allows."""
    settings = _module("common").DifferentialPrivacyParameters(epsilon, delta)
    deviation = _module("accountant").get_smallest_gaussian_noise(settings, tours)
    if not 0 < deviation < np.inf:
        raise ConfigError(f"privacy.dp: no noise was found for epsilon {epsilon:g} and delta {delta:g}.")
    return 1.0 / float(deviation) ** 2


@lru_cache(maxsize=1024)
def _epsilon(sensitivity: float, delta: float) -> float:
    """The epsilon of a Gaussian mechanism of this squared sensitivity and deviation 1."""
    if sensitivity == 0:
        return 0.0
    loss = _module("privacy_loss_mechanism").GaussianPrivacyLoss(sensitivity**-0.5)

    def excess(epsilon: float) -> float:
        return float(loss.get_delta_for_epsilon(epsilon)) - delta

    if excess(0.0) <= 0:
        return 0.0
    highest = 1.0
    while excess(highest) > 0:
        highest *= 2
    return float(scipy.optimize.brentq(excess, 0.0, highest, xtol=1e-9))


def _module(name: str) -> ModuleType:
    """A part of dp-accounting, which has moved into a package of its own in later versions."""
    find("dp_accounting")
    place = "dp_accounting.pld" if find_spec("dp_accounting.pld") is not None else "dp_accounting"
    return find(f"{place}.{name}")
