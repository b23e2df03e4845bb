"""Momentum over tours: each starts further along the change of the last one,

    theta_k <- theta_k + b (theta_k - theta_k of the tour before),      b = (a_{n-1} - 1)/a_n,

with Nesterov's a_n = (1 + sqrt(1 + 4 a_{n-1}^2))/2. One number travels. If a tour ends with a
larger f than the one before, it is undone and the momentum restarts from 0. f need not be smooth:
with l1, where the home client cannot compute f between tours, this is the fastest acceleration.
"""

from __future__ import annotations

import math

from mtcd.core.arrays import Array
from mtcd.methods.tours.acceleration import ACCELERATIONS, Acceleration
from mtcd.methods.tours.instruction import Instruction
from mtcd.protocol.model import Fit


@ACCELERATIONS.register("momentum")
class Momentum(Acceleration):
    """Stores one tour; ``depth`` has no effect."""

    uses_depth = False
    sums_suffice = True
    planned = frozenset({"smooth", "nonsmooth"})

    state_fields = ("tour", "a", "_last", "_value")

    def __init__(
        self, depth: int, z: Array, penalty: float, fit: Fit, tour: int, stepsize: float
    ) -> None:
        super().__init__(depth, z, penalty, fit, tour)
        self.a = 1.0
        self._last, self._value = z.copy(), math.inf

    def end_tour(self, z: Array, objective: float, penalty: float, products: Array) -> Instruction:
        self.tour += 1
        if objective > self._value and self.a > 1.0:
            self.a = 1.0
            z[...] = self._last
            return Instruction(self.tour, (1.0, 0.0), keep=0)
        b, self.a = next_momentum(self.a)
        before, self._last, self._value = self._last, z.copy(), objective
        if b == 0.0:
            return Instruction(self.tour, keep=1)
        z += b * (z - before)
        return Instruction(self.tour, (-b, 1.0 + b), keep=1)


def next_momentum(a: float) -> tuple[float, float]:
    """b, and the next a.

    >>> next_momentum(1.0)
    (0.0, 1.618033988749895)
    """
    after = (1.0 + math.sqrt(1.0 + 4.0 * a * a)) / 2.0
    return (a - 1.0) / after, after
