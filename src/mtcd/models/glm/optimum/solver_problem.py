"""The objective in the form of the optimum's solver: columns of unit length, blocks never
stacked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mtcd.core.arrays import Array
from mtcd.core.errors import ConfigError
from mtcd.data.vertical import Block
from mtcd.models.glm.penalty import Penalty
from mtcd.models.glm.smoothness import overall_smoothness
from mtcd.models.losses import Loss

TOLERANCE = 1e-12  # on (f - f*) / |f|
NEGLIGIBLE = 1e-9  # |f*| below this part of f(0) counts as zero: relative gaps drown in rounding
REMEDY = "Add an l2 or l1 penalty, or stop after a number of iterations instead of at a gap."


@dataclass(frozen=True, eq=False)
class ScaledProblem:
    """The objective in w = theta / scale, which gives every column of X unit length.

    l1, l2 and scale hold one number per row of w, shaped to broadcast against it.
    """

    blocks: Sequence[Block]
    y: Array
    loss: Loss
    l1: Array
    l2: Array
    scale: Array

    @classmethod
    def of(
        cls, blocks: Sequence[Block], y: Array, loss: Loss, penalties: Sequence[Penalty]
    ) -> ScaledProblem:
        shape = (-1,) + (1,) * (y.ndim - 1)
        norms = np.concatenate([_column_norms(block) for block in blocks])
        # An empty column keeps its scale: its entry stays at 0, whatever its unit.
        scale = 1.0 / np.where(norms > 0, norms, 1.0)
        l1_parts, l2_parts = [], []
        for block, penalty in zip(blocks, penalties, strict=True):
            columns = block.shape[1]
            penalised = np.arange(columns) < columns - penalty.free  # not the intercept
            l1_parts.append(penalty.l1 * penalised)
            l2_parts.append(penalty.l2 * penalised)

        # in the unknowns w = theta / scale
        l1 = scale * np.concatenate(l1_parts)
        l2 = scale**2 * np.concatenate(l2_parts)
        return cls(blocks, y, loss, l1.reshape(shape), l2.reshape(shape), scale.reshape(shape))

    @cached_property
    def offsets(self) -> NDArray[np.int_]:
        """Where each block's rows of w begin, and the end."""
        # w is stacked client by client, as the blocks are; the blocks themselves are never stacked,
        # which would take their memory twice.
        return np.cumsum([0, *(block.shape[1] for block in self.blocks)])

    @cached_property
    def zero_value(self) -> float:
        """f(0): no penalty is charged there."""
        return self.loss.value(np.zeros_like(self.y), self.y)

    @cached_property
    def smoothness(self) -> float:
        """L of the smooth part, for a restricted problem (whose columns are scaled already)."""
        return overall_smoothness(self.blocks, self.loss, float(self.l2.max()))

    def start(self) -> Array:
        return np.zeros((len(self.l1), *self.y.shape[1:]))

    def forward(self, w: Array) -> Array:
        """z = X w."""
        theta, z = self.scale * w, np.zeros_like(self.y)
        for block, begin, end in zip(self.blocks, self.offsets[:-1], self.offsets[1:], strict=True):
            z += block @ theta[begin:end]
        return z

    def adjoint(self, r: Array) -> Array:
        """X^T r, in the scaled unknowns."""
        return np.asarray(self.scale * np.concatenate([block.T @ r for block in self.blocks]))

    def value(self, w: Array, z: Array) -> float:
        penalty = (self.l1 * np.abs(w)).sum() + 0.5 * (self.l2 * w * w).sum()
        return self.loss.value(z, self.y) + float(penalty)

    def gradient(self, w: Array, z: Array) -> Array:
        """The gradient of the smooth part: X^T loss'(z) + l2 w."""
        return self.adjoint(self.loss.gradient(z, self.y)) + self.l2 * w

    def subgradient(self, w: Array, gradient: Array) -> Array:
        """The shortest subgradient of f at w, from the gradient of the smooth part: zero at the
        optimum."""
        shrunk = gradient - np.clip(gradient, -self.l1, self.l1)
        # Where w_j = 0, the l1 penalty offers any slope between -l1 and l1: the best of them
        # cancels what it can of the gradient.
        return np.where(w != 0, gradient + self.l1 * np.sign(w), shrunk)

    def slope(self, w: Array, gradient: Array, step: Array) -> float:
        """The change (below 0) that a step promises: gradient^T step + l1 (|w + step|_1 -
        |w|_1)."""
        return float((gradient * step + self.l1 * (np.abs(w + step) - np.abs(w))).sum())

    def columns(self, rows: NDArray[np.int_]) -> Block:
        """The scaled columns of X that belong to these (sorted) rows of w: a copy."""
        parts, pieces = np.split(rows, np.searchsorted(rows, self.offsets[1:-1])), []
        for block, begin, part in zip(self.blocks, self.offsets[:-1], parts, strict=True):
            # Sliced before scaled: only the columns of the working set are copied.
            if len(part):
                pieces.append(block[:, part - begin] * self.scale[part].reshape(1, -1))
        if pieces and all(sp.issparse(piece) for piece in pieces):
            return sp.csr_array(sp.hstack(pieces))
        return np.hstack([np.empty((len(self.y), 0)), *map(dense, pieces)])

    def restricted(self, rows: NDArray[np.int_]) -> ScaledProblem:
        """The same objective with all other rows of w held at zero."""
        ones = np.ones_like(self.scale[rows])
        # The columns are scaled already, so the scale of the new problem is 1.
        return ScaledProblem(
            [self.columns(rows)], self.y, self.loss, self.l1[rows], self.l2[rows], ones
        )


def _column_norms(block: Any) -> Array:
    """The length of each column; einsum makes no copy of the block."""
    if sp.issparse(block):
        squares = block.power(2).sum(axis=0)
    else:
        squares = np.einsum("nj,nj->j", block, block)
    return np.sqrt(np.asarray(squares, dtype=np.float64))


def dense(matrix: Any) -> Array:
    """The matrix, if it is sparse as a dense one."""
    if sp.issparse(matrix):
        matrix = matrix.toarray()
    return np.asarray(matrix)


def check_not_negligible(problem: ScaledProblem, value: float, left: float) -> None:
    """Reject a least objective of zero: no gap can be relative to it.

    ``left`` is how far the value may fall yet: that of a loss with a negative optimum may pass
    through zero.
    """
    if max(abs(value), left) <= NEGLIGIBLE * abs(problem.zero_value):
        raise ConfigError(
            "The model fits the data perfectly (the least objective is zero to within rounding), "
            f"so a relative gap to it means nothing. {REMEDY}"
        )


def _unit(z: Array, output: int) -> Array:
    """An array of the shape of z: ones for one output, zeros for the others."""
    unit = np.zeros_like(z)
    unit.reshape(len(z), -1)[:, output] = 1.0
    return unit


def typical_curvature(problem: ScaledProblem, z: Array) -> float:
    """The mean second derivative of the loss: about that of f in one entry of w, columns having
    unit length."""
    unit = _unit(z, 0)
    mean = float(np.vdot(unit, problem.loss.hessian_product(z, problem.y, unit))) / len(z)
    return max(mean, 1e-8 * problem.loss.curvature)  # of a huber loss it may be zero


def hessian_of(problem: ScaledProblem, X: Block, z: Array) -> Array:
    """X^T loss''(z) X, its rows and columns ordered as the entries of w."""
    outputs, size = z[:1].size, X.shape[1]
    hessian = np.empty((size, outputs, size, outputs))
    # The Hessian is symmetric in the outputs too: each pair is computed once.
    for e in range(outputs):
        curved = problem.loss.hessian_product(z, problem.y, _unit(z, e)).reshape(len(z), -1)
        for c in range(e, outputs):
            product = dense(X.T @ (X * curved[:, c : c + 1]))
            hessian[:, c, :, e] = product
            hessian[:, e, :, c] = product
    return hessian.reshape(size * outputs, size * outputs)
