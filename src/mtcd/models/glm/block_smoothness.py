"""The smoothness of a linear model, from the blocks of all clients."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from mtcd.core.arrays import Array
from mtcd.models.glm.model import LinearProblem
from mtcd.models.glm.smoothness import block_smoothness, overall_smoothness, sample_norm
from mtcd.models.losses.squared import Squared
from mtcd.theory.stepsize import Smoothness, positive


@dataclass(frozen=True, eq=False)
class BlockSmoothness(Smoothness):
    """The Lipschitz constants of the gradient of f: L overall, L_k block by block. Computed on
    first use."""

    problem: LinearProblem

    @cached_property
    def overall(self) -> float:
        """L, of the gradient of f in all parameters."""
        # `positive` refuses infinity and NaN: a step size of 1/L from them would be 0 or nothing.
        return positive(overall_smoothness(self.problem.blocks, self.problem.loss, self.l2))

    @cached_property
    def blocks(self) -> Array:
        """L_k, one per client."""
        L = block_smoothness(self.problem.blocks, self.problem.loss, self.l2)
        positive(float(L.max()))
        return L

    @cached_property
    def longest(self) -> float:
        """max_n |x_n|^2, rows scaled by the weights of samples."""
        return sample_norm([self.problem.loss.scaled(X) for X in self.problem.blocks])

    @property
    def norm(self) -> float:
        """max_k |X_k|^2, whatever the weights of samples."""
        loss = self.problem.loss
        if loss.sample_weights is not None:
            return float(block_smoothness(self.problem.blocks, Squared()).max())
        # L_k = curvature * |X_k|^2 + l2 for every block, so |X_k|^2 follows without passing over
        # the data again. With weights it does not: they are inside of L_k.
        return (float(self.blocks.max()) - self.l2) / loss.curvature

    def batch(self, size: int | None) -> float:
        """An upper bound of L for the objective of a mini-batch of this size.

        A batch of B samples, weighted N/B, is at most N/B times as curved as all samples, and at
        most as curved as N copies of the longest sample.
        """
        if size is None:
            return self.overall
        N, loss = self.problem.samples, self.problem.loss
        # Both bounds hold, so the smaller one does. The penalty is not scaled by a batch, hence l2
        # apart.
        return min(N / size * (self.overall - self.l2), N * loss.curvature * self.longest) + self.l2

    @property
    def l2(self) -> float:
        """The weight of the l2 penalty."""
        return self.problem.penalties[0].l2
