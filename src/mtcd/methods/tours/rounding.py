"""How far tokens may be from the models, because numbers are rounded.

A token is rounded at every visit, and again by some transports on its way. The weights of a mix
enlarge what is there: the next start is sum_i c_i z_i + b d, and so is its error. Without a limit a
tour would come when a mix follows the errors and not the models: f falls at the token, and rises at
the models.

The home client knows all weights, so it knows how errors add up. It keeps the covariance of those
of its starts, and every mix minimises f plus what the errors of the combination are worth.
"""

from __future__ import annotations

import numpy as np

from mtcd.core.arrays import Array
from mtcd.methods.optimal_weights import without_negative
from mtcd.protocol.state import Stateful

UNIT = float(np.finfo(np.float64).eps) / 2
HOPS = 100
"""The roundings of a tour, about."""


class Rounding(Stateful):
    """The covariance of the errors of s_i - s, s the last start: of sums over all numbers of a
    token. (What all starts have in common, no mix enlarges.)

    ``start``: the last start. ``unit``: of a transport that rounds changes, the share of a change
    by which it is wrong. ``starts``: how many there are.
    """

    state_fields = ("covariance", "moved")

    def __init__(self, start: Array, unit: float = 0.0, starts: int = 1) -> None:
        self.unit = unit
        self.covariance = np.zeros((starts, starts))
        self.moved = _square(start)
        """|change|^2 of a token on its way, since it came there last."""

    def fresh(self, start: Array, end: Array) -> float:
        """The error that one tour adds."""
        sizes = UNIT**2 * _square(end) + self.unit**2 * (self.moved + _square(end - start))
        return HOPS * sizes / 3.0

    def of_changes(self, fresh: float) -> Array:
        """The covariance of s_i - s, s the last start, and of the change d of the tour."""
        grown = self.covariance.copy()  # whose last row is that of s - s, 0
        grown[-1, -1] = fresh
        return without_negative(grown)

    def add(self, w: Array, fresh: float, moved: float, keep: int) -> None:
        """A new start, by these weights of s_i - s and d; ``moved`` is |new - s|^2. The last
        ``keep`` starts are kept."""
        c = w.copy()
        c[-1] = 0.0  # of s - s
        with_new = self.covariance @ c
        itself = float(c @ with_new) + float(w[-1]) ** 2 * fresh
        from_new = self.covariance - with_new - with_new[:, None] + itself
        self.covariance, self.moved = np.pad(from_new, (0, 1))[-keep:, -keep:], moved


def _square(array: Array) -> float:
    flat = array.ravel()
    return float(flat @ flat)
