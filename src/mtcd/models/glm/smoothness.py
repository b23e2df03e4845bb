"""Smoothness constants of f(theta) = loss(sum_k X_k theta_k) + r(theta), without stacking the
blocks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy

from mtcd.core.arrays import Array, dense, is_sparse
from mtcd.data.vertical import Block
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


# The largest eigenvalue of a positive semidefinite matrix, from above.
#
# A step size of 1/L must not be too long, so L must not be too small. Lanczos comes from below:
# it finds the largest eigenvalue that its start has a part of, and nothing in what it computes
# rules out a larger one. So its answer is checked (`certified_top`) or raised by a margin that is
# known to suffice (`krylov_bound`).


Product = Callable[[Array], Array]

# Relative accuracy asked of Lanczos; the result is raised by as much.
TOLERANCE = 1e-7
# krylov_bound: how far above the true value it may be, and the probability that it is below.
MARGIN = 0.01
RISK = 1e-9


def top_eigenvalue(gram: Array) -> float:
    """The largest eigenvalue, never below 0: exact, by all of them."""
    return max(float(np.linalg.eigvalsh(gram)[-1]), 0.0)


def certified_top(product: Product, gram: Array) -> float:
    """The same for a large matrix whose ``product`` with a vector is quick: within 1e-7, and never
    below.

    sigma >= lambda_max if and only if sigma*I - G is positive semidefinite, which its Cholesky
    factorisation shows: a quarter of the work of all eigenvalues, or less. Where that refuses what
    Lanczos found, all are computed.
    """
    found = lanczos(product, gram.shape[0])
    rest = -gram
    # sigma I - G is formed in place: the matrix may be the largest thing in memory.
    rest.flat[:: gram.shape[0] + 1] += found
    try:
        scipy.linalg.cholesky(rest, lower=True, overwrite_a=True, check_finite=False)
    except np.linalg.LinAlgError:
        return top_eigenvalue(gram)
    return found


def lanczos(product: Product, size: int) -> float:
    """The largest eigenvalue as Lanczos finds it from a random start, raised by its tolerance.

    The same at every call. Not certified.
    """
    start = _start(size)
    if not product(start).any():  # a zero matrix, from which Lanczos cannot start
        return 0.0
    from scipy.sparse.linalg import LinearOperator, eigsh

    # A fixed start: the step size, and with it the iterates, must be the same in every run.
    operator = LinearOperator((size, size), matvec=lambda v: product(v.ravel()), dtype=float)
    top = eigsh(operator, k=1, which="LA", v0=start, tol=TOLERANCE, return_eigenvectors=False)
    # Ritz values are below the eigenvalue; its tolerance is what may be missing.
    return float(top[0]) * (1.0 + TOLERANCE)


def krylov_bound(product: Product, size: int) -> float:
    """An upper bound of the largest eigenvalue that is at most 1% above it, for matrices too large
    to factorise.

    After m steps of Lanczos from a start that is uniform on the sphere, the largest Ritz value is
    below (1 - e) lambda_max with a probability of at most 1.648 sqrt(n) exp(-sqrt(e) (2m - 1)),
    whatever the matrix (Kuczynski and Wozniakowski, 1992). So m is chosen for which that is
    ``RISK`` with e = ``MARGIN``, and the Ritz value divided by 1 - e: about 130 steps.
    """
    # The bound solved for m, with the risk on the left side.
    enough = (math.log(1.648 * math.sqrt(size) / RISK) / math.sqrt(MARGIN) + 1) / 2
    steps = min(size, math.ceil(enough))
    basis = np.zeros((steps, size))
    diagonal, beside = np.zeros(steps), np.zeros(steps)
    v = _start(size)
    v /= np.linalg.norm(v)
    for m in range(steps):
        basis[m] = v
        w = product(v)
        scale = float(np.linalg.norm(w))
        diagonal[m] = v @ w
        for _ in range(2):  # twice, so that the basis is orthogonal up to rounding
            w = w - basis[: m + 1].T @ (basis[: m + 1] @ w)
        beside[m] = np.linalg.norm(w)
        # the space is invariant: with a random start, nothing is left out
        if beside[m] <= 1e-14 * scale:
            diagonal, beside = diagonal[: m + 1], beside[: m + 1]
            break
        v = w / beside[m]
    largest = scipy.linalg.eigh_tridiagonal(diagonal, beside[:-1], eigvals_only=True)[-1]
    return max(float(largest), 0.0) / (1.0 - MARGIN)


def _start(size: int) -> Array:
    return np.random.default_rng(0).standard_normal(size)
