"""Smoothness constants from reports on blocks, where no process has all of them.

Constants of all blocks together are bounded by sums: with X = [X_1 ... X_K], |X|^2 is at most the
sum of |X_k|^2, and the squared norm of the longest sample is at most the sum of those of the
longest rows of all blocks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from mtcd.core.arrays import Array
from mtcd.data.vertical import Block
from mtcd.models.glm.block_smoothness import BlockSmoothness
from mtcd.models.glm.smoothness import block_smoothness, sample_norm
from mtcd.models.losses import Loss
from mtcd.models.losses.squared import Squared
from mtcd.theory.stepsize import positive


@dataclass(frozen=True)
class Curvature:
    """The report on a block: L_k, and the squared norm of its longest row; rows count by their
    weights."""

    block: float
    longest: float
    norm: float | None = None
    """With weights, |X_k|^2 without them: it does not follow from L_k."""


def curvature_of(block: Block, loss: Loss, l2: float) -> Curvature:
    """The curvature of a block."""
    norm = None
    if loss.sample_weights is not None:
        norm = float(block_smoothness([block], Squared())[0])

    return Curvature(
        float(block_smoothness([block], loss, l2)[0]), sample_norm([loss.scaled(block)]), norm
    )


@dataclass(frozen=True, eq=False)
class ReportedSmoothness(BlockSmoothness):
    """Smoothness constants from the reports on all blocks. The problem need not have any of
    them."""

    reports: tuple[Curvature, ...]
    named: ClassVar[str] = "L (a bound: l2 + sum_k (L_k - l2))"

    @cached_property
    def overall(self) -> float:
        # `fsum` rounds once: a plain sum over many clients could end below the bound.
        return positive(self.l2 + math.fsum(one.block - self.l2 for one in self.reports))

    @cached_property
    def blocks(self) -> Array:
        L = np.array([one.block for one in self.reports])
        positive(float(L.max()))
        return L

    @property
    def norm(self) -> float:
        if self.problem.loss.sample_weights is None:
            return super().norm
        return max(one.norm for one in self.reports if one.norm is not None)

    @cached_property
    def longest(self) -> float:
        return math.fsum(one.longest for one in self.reports)
