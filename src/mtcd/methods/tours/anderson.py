"""Anderson's acceleration of tours: from M + 1 tours in a row,

    c = argmin over sum(c) = 1 of |sum_i c_i (z_{i+1} - z_i)|,      theta_k <- sum_i c_i
    theta_k^(i+1)

(reduced rank extrapolation, a relative of Anderson's), where z_i is the token at the start of tour
i and z_{i+1} at its end. If the tour after an extrapolation does not end with a lower objective
than the tour before it, it is undone, and the next one waits longer.
"""

from __future__ import annotations

import numpy as np

from mtcd.core.arrays import Array
from mtcd.methods.tours.acceleration import ACCELERATIONS, Acceleration
from mtcd.methods.tours.instruction import Instruction
from mtcd.protocol.model import Fit

# after an extrapolation that failed, the next one waits this many times longer, up to MOST_PATIENCE
# tours
SLOWER = 2
MOST_PATIENCE = 64
# keeps weights below 1/(2*DAMPING): they enlarge rounding, by which token and models would drift
# apart
DAMPING = 1e-6


@ACCELERATIONS.register("anderson")
class Anderson(Acceleration):
    """Extrapolates over the last ``depth`` + 1 tours, now and then."""

    sums_suffice = True
    # on smooth objectives conjugate tours were better in all experiments
    planned = frozenset({"nonsmooth"})

    state_fields = ("tour", "patience", "_start", "_ends", "_anchor")

    def __init__(
        self, depth: int, z: Array, penalty: float, fit: Fit, tour: int, stepsize: float
    ) -> None:
        super().__init__(depth, z, penalty, fit, tour)
        self.depth = self.patience = depth
        self._start = z.copy()
        self._ends: list[Array] = []
        # token and objective before an extrapolation on trial
        self._anchor: tuple[Array, float] | None = None

    def end_tour(self, z: Array, objective: float, penalty: float, products: Array) -> Instruction:
        self.tour += 1
        if self._anchor is not None:
            return self._accept_or_undo(z, objective)
        self._ends.append(z.copy())
        if len(self._ends) <= self.patience:
            return Instruction(self.tour, keep=min(len(self._ends), self.depth + 1))
        return self._extrapolate(z, objective)

    def _accept_or_undo(self, z: Array, objective: float) -> Instruction:
        """Accept the last extrapolation if it lowered the objective, undo it otherwise."""
        assert self._anchor is not None
        (before, value), self._anchor = self._anchor, None
        if objective < value:
            self.patience = self.depth
            self._ends = [z.copy()]
            return Instruction(self.tour, keep=1)
        self.patience = min(SLOWER * self.patience, MOST_PATIENCE)
        z[...] = before
        self._start, self._ends = before, []
        return Instruction(self.tour, (1.0, 0.0), keep=0)

    def _extrapolate(self, z: Array, objective: float) -> Instruction:
        ends = self._ends[-self.depth - 1 :]
        starts = [self._start, *self._ends][-len(ends) - 1 : -1]
        c = best_weights([end - start for end, start in zip(ends, starts, strict=True)])
        self._anchor = z.copy(), objective
        z[...] = sum(weight * end for weight, end in zip(c, ends, strict=True))
        self._start, self._ends = z.copy(), []
        return Instruction(self.tour, c, keep=1, trial=True)


def best_weights(residuals: list[Array]) -> tuple[float, ...]:
    """c = argmin over sum(c) = 1 of |sum_i c_i r_i|, by least squares in the differences to the
    last.

    >>> [round(c, 6) for c in best_weights([np.array([1.0, 0.0]), np.array([0.5, 0.0])])]
    [-1.0, 2.0]
    """
    *others, last = (r.ravel() for r in residuals)
    if not others:
        return (1.0,)
    differences = np.stack([r - last for r in others], axis=1)
    damping = DAMPING * float(np.linalg.norm(last)) * np.eye(len(others))
    target = np.concatenate([-last, np.zeros(len(others))])
    a = np.linalg.lstsq(np.vstack([differences, damping]), target)[0]
    return (*map(float, a), 1.0 - float(a.sum()))
