"""The largest eigenvalue of a positive semidefinite matrix, from above.

A step size of 1/L must not be too long, so L must not be too small. Lanczos comes from below: it
finds the largest eigenvalue that its start has a part of, and nothing in what it computes rules out
a larger one. So its answer is checked (:func:`certified_top`) or raised by a margin that is known
to suffice (:func:`krylov_bound`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy  # its parts are loaded when they are used

from mtcd.core.arrays import Array, is_sparse

Product = Callable[[Array], Array]

# Relative accuracy asked of Lanczos; the result is raised by as much.
TOLERANCE = 1e-7
# krylov_bound: how far above the true value it may be, and the probability that it is below.
MARGIN = 0.01
RISK = 1e-9


def dense(matrix: Any) -> Array:
    """The matrix as an array."""
    if is_sparse(matrix):
        matrix = matrix.toarray()
    return np.asarray(matrix)


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
