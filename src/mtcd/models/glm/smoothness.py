"""Smoothness constants of f(theta) = loss(sum_k X_k theta_k) + r(theta), without stacking the
blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mtcd.core.arrays import Array, is_sparse
from mtcd.data.vertical import Block
from mtcd.models.glm.top_eigenvalue import (
    certified_top,
    dense,
    krylov_bound,
    lanczos,
    top_eigenvalue,
)
from mtcd.models.losses import Loss

# Up to this side all eigenvalues of a dense Gram matrix take no longer than Lanczos, which passes
# over the block some hundred times. Passes over a sparse block are quick, so there Lanczos pays
# early.
_DENSE_BLOCK = 1000
_DENSE_SPARSE = 200
# Up to this side a Cholesky factorisation certifies what Lanczos found; beyond, it would take
# longer than Lanczos.
_CERTIFIED = 2000
# Up to this many samples or features of all blocks together the Gram matrix is formed; it takes a
# copy of the columns.
_DENSE_OVERALL = 64


def block_smoothness(blocks: Sequence[Block], loss: Loss, l2: float = 0.0) -> Array:
    """L_k = curvature * sigma_max(X_k)^2 + l2, of each client's own parameters; rows count by their
    weights.

    >>> from mtcd.models.losses.squared import Squared
    >>> block_smoothness([np.diag([1.0, 2.0]), np.ones((2, 1))], Squared(), l2=0.5).round(6).tolist()
    [4.5, 2.5]
    """
    return loss.curvature * np.array([_block_sigma(loss.scaled(block)) for block in blocks]) + l2


def overall_smoothness(blocks: Sequence[Block], loss: Loss, l2: float = 0.0) -> float:
    """L = curvature * sigma_max([X_1 ... X_K])^2 + l2, of all parameters together.

    >>> from mtcd.models.losses.squared import Squared
    >>> round(overall_smoothness([np.eye(2), np.eye(2)], Squared()), 6)
    2.0
    """
    return loss.curvature * _overall_sigma([loss.scaled(block) for block in blocks]) + l2


def sample_norm(blocks: Sequence[Block]) -> float:
    """max_n |x_n|^2, where x_n is row n over all clients.

    >>> sample_norm([np.eye(2), np.array([[1.0], [3.0]])])
    10.0
    """
    rows = sum((_squared_rows(block) for block in blocks), np.zeros(blocks[0].shape[0]))
    return float(rows.max())


def _squared_rows(block: Any) -> Array:
    if is_sparse(block):
        squares = block.power(2).sum(axis=1)
    else:
        squares = np.einsum("nj,nj->n", block, block)  # no copy of the block
    return np.asarray(squares, dtype=np.float64)


def _block_sigma(block: Any) -> float:
    """sigma_max(X)^2, from X^T X or X X^T, whichever is smaller; never below the true value."""
    # X^T X and X X^T have the same largest eigenvalue: the smaller one is formed.
    X = block.T if block.shape[1] > block.shape[0] else block
    size = X.shape[1]
    if not size:  # the block of a client that is hosted elsewhere
        return 0.0
    if size <= (_DENSE_SPARSE if is_sparse(X) else _DENSE_BLOCK):
        return top_eigenvalue(dense(X.T @ X))
    if size > _CERTIFIED:
        return krylov_bound(lambda v: X.T @ (X @ v), size)
    return certified_top(lambda v: X.T @ (X @ v), dense(X.T @ X))


def _overall_sigma(blocks: Sequence[Block]) -> float:
    samples, features = blocks[0].shape[0], sum(block.shape[1] for block in blocks)
    if len(blocks) == 1:
        return _block_sigma(blocks[0])
    if features <= _DENSE_OVERALL:
        # A copy of all columns, so only where these are few.
        narrow = np.hstack([dense(block) for block in blocks])
        return top_eigenvalue(narrow.T @ narrow)

    def product(v: Array) -> Array:
        """sum_k X_k (X_k^T v)."""
        total = np.zeros_like(v)
        for block in blocks:
            total += block @ (block.T @ v)
        return total

    if samples <= _DENSE_OVERALL:
        return top_eigenvalue(product(np.eye(samples)))
    return lanczos(product, samples)
