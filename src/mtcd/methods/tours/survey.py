"""The step size of accelerated tours, from the first tour and statistics of the clients' columns.

An update of client k is ceil(t L_k) gradient steps that add up to t, near (H_k + I/t)^-1 times its
gradient: for small t the gradient itself, for large t the minimum over its block. The first tour
takes a very small t. It moves along the gradient, and so gives the curvature along it, L. Then

- blocks that are solved (t = 1e12/L) where the scales of columns differ much, as in raw units, and
  there are no more columns than samples: L is that of the largest columns alone, and says nothing
  of the others;
- t = 30/L where columns are more alike within a client than across clients: solving the blocks well
  then removes most of what makes the problem hard;
- t = 3/L where columns are nearly independent, t = 1/L otherwise, as long as there are no more
  columns than samples; between the two, t = 10/L, where columns are alike within a client and
  among a few, as neighbours in a table are;
- t = 0.1/L, or 0.01/L for nearly independent columns, where there are more: the tours then are
  conjugate gradients, and theta stays in the row space of X. Larger steps leave it, and what is
  outside is corrected at the rate of l2 only. Yet smaller ones would be enlarged so much by the mix
  that rounding drives token and models apart.

The numbers are from experiments over networks, correlations and penalties; see docs/beyond.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mtcd.methods.optimal_weights import Along
from mtcd.theory.stepsize import Smoothness

ALIKE_WITHIN, INDEPENDENT, RELATED, WIDE, WIDE_RELATED = 30.0, 3.0, 1.0, 0.01, 0.1
AMONG_A_FEW = 10.0
SOLVED = 1e12
# scales differ much if the arithmetic mean of the squared norms of columns is so many times their
# geometric mean; of columns of one scale it is hardly more than 1
UNEVEN = 3.0
# columns whose largest singular value is at most this times that of independent ones count as
# independent
NEARLY = 2.0
# so much more do columns resemble each other within clients than across, if blocks decide ...
DECIDES = 1.5
# ... unless what they have in common is common to this share of all clients
COMMON = 0.25
# the squared largest singular value of a block, by that of orthogonal columns, from which its
# columns count as alike
ALIKE = 1.3
# starts to remember: where columns are nearly independent, more do not help
FEW, MANY = 10, 20
ALL_BUT_SOLVED = 1e6
"""More steps than these leave nothing of a block to be solved."""
FIRST = 1e-2
"""The step of the first tour, as a part of 1/sum_k L_k."""


def steps_in_words(reach: float, smoothness: Smoothness) -> str:
    """How many local steps of 1/L_k add up to ``reach``, for a note.

    Parameters
    ----------
    reach
        The sum of the steps of an update.
    smoothness
        L_k of the problem.
    """
    steps = np.ceil(np.maximum(reach * smoothness.blocks, 1.0))
    if steps.min() > ALL_BUT_SOLVED:
        return "blocks are solved"
    if steps.max() == 1.0:
        return "one local step"
    return f"{steps.min():.4g} to {steps.max():.4g} local steps"


@dataclass(frozen=True)
class Survey:
    """Sums over clients: 1, d_k, |X_k|_F^2, |X_k|^2, d_k |X_k|^2 / |X_k|_F^2, which is 1 for
    orthogonal columns, and the logarithms of the squared norms of columns."""

    clients: float
    columns: float
    squares: float
    norms: float
    spread: float
    logs: float = math.inf

    @property
    def uneven(self) -> bool:
        """Whether the scales of columns differ much."""
        mean = math.log(self.squares / self.columns)
        return mean - self.logs / self.columns > math.log(UNEVEN)

    def related(self, norm: float, samples: int) -> bool:
        """Whether columns resemble each other, by |X g|^2 / |g|^2 along the gradient g."""
        independent = self.squares / self.columns * (1.0 + np.sqrt(self.columns / samples)) ** 2
        return bool(norm > NEARLY * independent)

    def choose(
        self, along: Along, first: float, curvature: float
    ) -> tuple[float, float, int] | None:
        """The step, 1/L, and the number of starts to store; None if the first tour did not move."""
        slope = -float(along.gradient(np.zeros(along.changes.shape[1]))[-1])
        moved = 2.0 * first * slope  # |d|^2: two updates of d_k = -first * gradient
        if not (np.isfinite(moved) and moved > 0 and self.squares > 0):
            return None
        change = along.fit.scaled(along.changes[:, -1])
        norm = float(change @ change) / moved  # |X g|^2 / |g|^2
        L = curvature * norm + float(along.bend[-1, -1]) / moved
        samples = len(along.start)
        related = self.related(norm, samples)
        across = norm / (self.norms / self.clients)
        depth = MANY if related else FEW
        if self.uneven and self.columns <= samples:
            return SOLVED / L, 1.0 / L, MANY

        if self.spread / self.clients > DECIDES * across and across < max(
            DECIDES, COMMON * self.clients
        ):
            factor = ALIKE_WITHIN
        elif self.columns > samples:
            factor = WIDE_RELATED if related else WIDE
        elif not related:
            factor = INDEPENDENT
        elif across < COMMON * self.clients and self.spread / self.clients > ALIKE:
            factor = AMONG_A_FEW
        else:
            factor = RELATED
        return factor / L, 1.0 / L, depth
