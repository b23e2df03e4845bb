"""What can be reconstructed from vectors that an attacker has seen: subspaces, inner products,
scores, labels.

All measures are between 0 and 1. ``permuted`` measures are against the same table with its rows in
another order, so they show what chance gives.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]


def basis_of(vectors: Matrix, most: int) -> Matrix:
    """An orthonormal basis of the ``most`` main directions of the columns, fewer if there are
    fewer."""
    if not vectors.size:
        return np.zeros((len(vectors), 0))
    left, sizes, _ = np.linalg.svd(vectors, full_matrices=False)
    return np.asarray(left[:, : min(most, int((sizes > 1e-12 * sizes[0]).sum()))])


def overlap(vectors: Matrix, X: Matrix) -> float:
    """The share of the column space of X that lies in the main directions of the vectors, as many
    as X has columns."""
    claimed, own = basis_of(vectors, X.shape[1]), np.linalg.qr(X)[0]
    return float((np.square(claimed.T @ own)).sum() / X.shape[1])


def squared_correlation(a: Matrix, b: Matrix) -> float:
    """R^2 of the best linear function of one number."""
    a, b = a - a.mean(), b - b.mean()
    size = float((a @ a) * (b @ b))
    return float((a @ b) ** 2 / size) if size > 0 else 0.0


def gram(changes: Matrix, derivatives: Matrix, columns: int) -> Matrix:
    """X X^T from changes -eta X X^T g for known g, by least squares in the space of the changes; up
    to a factor."""
    Q = basis_of(changes, columns)
    if not derivatives.size:
        return np.asarray(Q @ Q.T)
    S = np.linalg.lstsq((Q.T @ derivatives).T, -(Q.T @ changes).T, rcond=1e-10)[0]
    return np.asarray(Q @ ((S + S.T) / 2) @ Q.T)


def gram_found(guess: Matrix, X: Matrix) -> float:
    """R^2 of the inner products between different samples."""
    above = np.triu_indices(len(X), 1)
    return squared_correlation(guess[above], (X @ X.T)[above])


def auc(scores: Matrix, labels: Matrix) -> float:
    """How well scores tell the labels, in the better of both directions; 0.5 is chance."""
    ranks = np.empty(len(scores))
    ranks[np.argsort(scores)] = np.arange(len(scores))
    ones = labels > labels.mean()
    found = (ranks[ones].mean() - ranks[~ones].mean()) / len(scores) + 0.5
    return float(max(found, 1 - found))


def labels_from_gradient(X: Matrix, gradient: Matrix) -> Matrix:
    """The least-squares guess of -g, of which a party knows X^T g: at the start, of the labels."""
    return np.asarray(-X @ np.linalg.lstsq(X.T @ X, gradient, rcond=None)[0])
