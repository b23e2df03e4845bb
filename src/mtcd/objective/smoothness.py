"""Smoothness constants of f(theta) = loss(sum_k X_k theta_k) + r(theta), without stacking the blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtcd.data.sparse import is_sparse
from mtcd.data.vertical import Block
from mtcd.objective.losses import Loss

Array = NDArray[np.float64]

# Up to this side a dense Gram matrix beats Lanczos: one matrix product against hundreds of passes.
_DENSE_BLOCK = 1000
# The same for all blocks together, where forming the Gram would take a copy of the columns.
_DENSE_OVERALL = 64
# Relative accuracy asked of Lanczos, whose answers come from below; the result is raised by as much.
_TOLERANCE = 1e-7


def block_smoothness(blocks: Sequence[Block], loss: Loss, l2: float = 0.0) -> Array:
    """L_k = curvature * sigma_max(X_k)^2 + l2, of each client's own parameters.

    >>> from mtcd.objective.losses import Squared
    >>> block_smoothness([np.diag([1.0, 2.0]), np.ones((2, 1))], Squared(), l2=0.5).round(6).tolist()
    [4.5, 2.5]
    """
    return loss.curvature * np.array([_block_sigma(block) for block in blocks]) + l2


def overall_smoothness(blocks: Sequence[Block], loss: Loss, l2: float = 0.0) -> float:
    """L = curvature * sigma_max([X_1 ... X_K])^2 + l2, of all parameters together.

    >>> from mtcd.objective.losses import Squared
    >>> round(overall_smoothness([np.eye(2), np.eye(2)], Squared()), 6)
    2.0
    """
    return loss.curvature * _overall_sigma(blocks) + l2


def sample_norm(blocks: Sequence[Block]) -> float:
    """max_n |x_n|^2, where x_n is row n over all clients.

    >>> sample_norm([np.eye(2), np.array([[1.0], [3.0]])])
    10.0
    """
    rows = sum((_squared_rows(block) for block in blocks), np.zeros(blocks[0].shape[0]))
    return float(rows.max())


def _squared_rows(block: Any) -> Array:
    squares = block.power(2).sum(axis=1) if is_sparse(block) else np.einsum("nj,nj->n", block, block)
    return np.asarray(squares, dtype=np.float64)


def _dense(matrix: Any) -> Array:
    return np.asarray(matrix.toarray() if is_sparse(matrix) else matrix)


def _block_sigma(block: Block) -> float:
    """sigma_max(X)^2, from X^T X or X X^T, whichever is smaller."""
    wide = block.shape[1] > block.shape[0]
    if min(block.shape) <= _DENSE_BLOCK:
        gram = block @ block.T if wide else block.T @ block
        return _top(_dense(gram))
    if wide:
        return _lanczos(lambda v: block @ (block.T @ v), block.shape[0])
    return _lanczos(lambda v: block.T @ (block @ v), block.shape[1])


def _overall_sigma(blocks: Sequence[Block]) -> float:
    samples, features = blocks[0].shape[0], sum(block.shape[1] for block in blocks)
    if len(blocks) == 1:
        return _block_sigma(blocks[0])
    if features <= _DENSE_OVERALL:
        narrow = np.hstack([_dense(block) for block in blocks])
        return _top(narrow.T @ narrow)

    def product(v: Array) -> Array:
        """sum_k X_k (X_k^T v)."""
        total = np.zeros_like(v)
        for block in blocks:
            total += block @ (block.T @ v)
        return total

    if samples <= _DENSE_OVERALL:
        return _top(product(np.eye(samples)))
    return _lanczos(product, samples)


def _top(gram: Array) -> float:
    """The largest eigenvalue, never below 0."""
    return max(float(np.linalg.eigvalsh(gram)[-1]), 0.0)


def _lanczos(product: Callable[[Array], Array], size: int) -> float:
    """The largest eigenvalue of a positive semidefinite operator; the same at every call."""
    start = np.random.default_rng(0).standard_normal(size)
    if not product(start).any():  # a zero matrix, from which Lanczos cannot start
        return 0.0
    from scipy.sparse.linalg import LinearOperator, eigsh

    operator = LinearOperator((size, size), matvec=lambda v: product(v.ravel()), dtype=float)
    top = eigsh(operator, k=1, which="LA", v0=start, tol=_TOLERANCE, return_eigenvectors=False)
    return float(top[0]) * (1.0 + _TOLERANCE)
