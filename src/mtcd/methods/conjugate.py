"""Conjugate tours: each starts where f is least among all mixes of where the last one ended and where the last
M tours started,

    theta <- argmin of f(y + sum_i w_i (s_i - y)),      y the end of this tour, s_i the starts of the last M.

For squared loss and a tour there and back this is the method of conjugate gradients, with the tour for a
preconditioner; two starts would then be enough. The mix never raises f, and with steps up to 1/max L_k no tour
does, so nothing has to be tried out or undone. f along
the way is known as it is for optimal sync (``optimal.py``): the loss from the tokens; r, which must be smooth,
from inner products of the models, to which each client adds its part. (They could be computed at home from those
of earlier tours, but for the rounding, which grows with every mix.)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mtcd.methods.acceleration import Acceleration
from mtcd.methods.optimal import Along, optimal_weights
from mtcd.protocol.model import Fit
from mtcd.protocol.token import Instruction

Array = NDArray[np.float64]
# where f would fall by less than this share, rounding decides on the weights, and they would enlarge it: no mix then
NOISE = 1e-10


class Conjugate(Acceleration):
    """Remembers where the last ``depth`` tours started: the tokens, and the inner products of the models."""

    kept = ("tour", "_starts", "_products")
    smooth_only = True

    def __init__(self, depth: int, z: Array, penalty: float, fit: Fit, tour: int = 0) -> None:
        super().__init__(tour)
        self.depth, self.fit = depth, fit
        self._starts = [z.copy()]
        self._products = np.zeros((1, 1))  # of the starts; those of the last are known when its tour ends

    def opening(self) -> Instruction:
        return Instruction(self.tour, keep=1, starts=True)

    def end_tour(self, z: Array, objective: float, penalty: float, products: Array) -> Instruction:
        self.tour += 1
        start, end = np.split(products[:-1], 2)  # with the starts
        self._products[-1, :] = self._products[:, -1] = start
        itself = products[-1]
        bend = self._products - end[:, None] - end[None, :] + itself
        along = Along.of(self.fit, z, self._starts, end - itself, bend)
        w = optimal_weights(along, None)
        if objective - along.value(w) - penalty <= NOISE * abs(objective):
            w[:] = 0.0
        z[...] = along.aggregate(w)
        self._remember(z)
        return Instruction(self.tour, (*w.tolist(), 1.0 - float(w.sum())), keep=len(self._starts), starts=True)

    def _remember(self, start: Array) -> None:
        self._starts = [*self._starts, start.copy()][-self.depth :]
        kept = len(self._starts)
        self._products = np.pad(self._products, (0, 1))[-kept:, -kept:]
