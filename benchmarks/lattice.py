"""Labels of 0 and 1 from sums over them, by lattice reduction: what the attacks of
``leak_labels.py`` and ``leak_gradient.py`` share.

A sum over labels of 0 and 1 is a subset sum; a few of them make the labels the shortest vector of a
lattice (Lagarias and Odlyzko 1985; Coster and others 1992). The reduction is LLL as FLINT has it,
which finds that vector for up to about 100 labels, or not, by the order of the rows: so several
orders are tried.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

try:
    import flint
except ImportError:
    raise SystemExit("The lattice attacks need FLINT: pip install python-flint") from None

from benchmarks.leak_attacks import Matrix

PRECISION = 2**24
"""Of the numbers in a basis, which are whole ones."""
ORDERS = 30
"""How many orders of the rows are tried."""
EXACTNESS = 2.0
"""A sum that is off by its error counts as much as so many labels of which nothing is known (their
standard deviation is 1/2): twice as much as is likely finds labels in more of the orders."""
Basis = list[list[int]]


def reduced(basis: Basis) -> Basis:
    """An LLL-reduced basis of the same lattice."""
    matrix = flint.fmpz_mat(basis).lll()
    return [[int(number) for number in row] for row in matrix.tolist()]


def labels_from_sums(
    changes: Matrix, sums: Matrix, error: float, orders: int = ORDERS
) -> Matrix | None:
    """Labels of 0 and 1 from sums over them, or None if the reduction finds no vector of such a
    form.

    Parameters
    ----------
    changes : array
        D, a row for each sum.
    sums : array
        <y, D>, one for each row.
    error : float
        The standard deviation of the sums from those of the labels.
    orders : int
        How many orders of the samples are tried at most.
    """
    if not len(sums):
        return None

    draws = np.random.default_rng(0)
    for _ in range(orders):
        order = draws.permutation(changes.shape[1])
        found = _embedded(changes[:, order], sums, error)
        if found is not None:
            labels = np.empty(len(found))
            labels[order] = found
            return labels

    return None


def _embedded(changes: Matrix, sums: Matrix, error: float) -> Matrix | None:
    """One attempt: the labels are a short vector beside those of the lattice."""
    samples = changes.shape[1]
    weight = EXACTNESS / max(error, 1e-9) * PRECISION
    basis = [[*row, 0] for row in _rows(changes, weight)]
    goal = [-PRECISION // 2] * samples
    basis.append([*goal, *(-round(float(one) * weight) for one in sums), PRECISION // 2])

    for row in reduced(basis):
        vector = np.array([float(number) / PRECISION for number in row])
        places = np.append(vector[:samples], vector[-1])
        if (np.abs(np.abs(places) - 0.5) < 1e-6).all():
            return np.asarray(np.rint(vector[:samples] * np.sign(vector[-1]) + 0.5))

    return None


def whitened(changes: Matrix, sums: Matrix) -> tuple[Matrix, Matrix]:
    """The same equations, turned and scaled so that noise on labels makes independent errors, as
    large as the noise on one label."""
    turned = np.linalg.inv(np.linalg.cholesky(changes @ changes.T))
    return turned @ changes, turned @ sums


def nearest_labels(changes: Matrix, sums: Matrix, deviation: float, orders: int = ORDERS) -> Matrix:
    """A guess of labels that had noise added: of the points of the lattice that nearest planes
    (Babai 1986) lead to, the one whose sums fit best.

    Parameters
    ----------
    changes, sums, orders
        As in :func:`labels_from_sums`.
    deviation : float
        The standard deviation of the noise on a label.
    """
    changes, sums = whitened(changes, sums)
    draws = np.random.default_rng(0)
    best, found = np.inf, np.zeros(changes.shape[1])
    for _ in range(orders):
        order = draws.permutation(changes.shape[1])
        guess = np.empty(len(order))
        guess[order] = _nearest(changes[:, order], sums, deviation)
        misfit = float(np.sum((changes @ guess - sums) ** 2))
        if misfit < best:
            best, found = misfit, guess

    return found


def _nearest(changes: Matrix, sums: Matrix, error: float) -> Matrix:
    """The labels of a point of the lattice that is near to a half for each label and to the
    sums."""
    samples = changes.shape[1]
    weight = 0.5 / error  # an error counts as much as a label
    basis = np.array(reduced(_rows(changes, weight * PRECISION)), dtype=float) / PRECISION
    target = np.concatenate([np.full(samples, 0.5), sums * weight])
    directions, triangle = np.linalg.qr(basis.T)
    left = directions.T @ target
    point = np.zeros(len(target))
    for i in reversed(range(samples)):
        times = np.rint(left[i] / triangle[i, i])
        left -= times * triangle[:, i]
        point += times * basis[i]

    return np.clip(np.rint(point[:samples]), 0.0, 1.0)


def _rows(changes: Matrix, weight: float) -> list[list[int]]:
    """A row for each label: its unit vector, and what it adds to the sums."""
    samples = changes.shape[1]
    units: NDArray[np.int64] = PRECISION * np.eye(samples, dtype=np.int64)
    return [
        [*units[i].tolist(), *(round(float(one) * weight) for one in changes[:, i])]
        for i in range(samples)
    ]
