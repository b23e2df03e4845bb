"""Labels from sums over labels by lattice reduction: what the server of a sealed training could do,
and cannot now.

``python -m benchmarks.leak_labels`` trains on N samples, then attacks the exact sums <y, D> and
those that the label holder told. A sum over labels of 0 and 1 is a subset sum; a few of them make
the labels the shortest vector of a lattice (Lagarias and Odlyzko 1985; Coster and others 1992). The
reduction is that of ``fpylll`` if it is installed (``pip install fpylll``), otherwise a plain one
in Python, for 40 samples or so.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

import mtcd
from benchmarks.leak_attacks import Matrix
from mtcd.engines.local import LocalEngine
from mtcd.privacy.sealed.label_sums import STEP
from mtcd.privacy.sealed.settings import SealedTours
from mtcd.protocol.ledger.ledger import Ledger

PRECISION = 2**24
DELTA = Fraction(99, 100)
Basis = list[list[int]]


def reduced(basis: Basis) -> Basis:
    """An LLL-reduced basis of the same lattice, in exact arithmetic."""
    basis = [list(row) for row in basis]
    size = len(basis)
    mu, lengths = _orthogonal(basis)
    k = 1
    while k < size:
        for j in range(k - 1, -1, -1):
            if q := round(mu[k][j]):
                basis[k] = [a - q * b for a, b in zip(basis[k], basis[j], strict=True)]
                for i in range(j):
                    mu[k][i] -= q * mu[j][i]
                mu[k][j] -= q
        if lengths[k] >= (DELTA - mu[k][k - 1] ** 2) * lengths[k - 1]:
            k += 1
            continue
        _swap(basis, mu, lengths, k)
        k = max(k - 1, 1)
    return basis


def _orthogonal(basis: Basis) -> tuple[list[list[Any]], list[Any]]:
    """The coefficients and squared lengths of Gram and Schmidt."""
    size = len(basis)
    gram = [
        [sum(a * b for a, b in zip(one, other, strict=True)) for other in basis] for one in basis
    ]
    mu = [[Fraction(0)] * size for _ in range(size)]
    r = [[Fraction(0)] * size for _ in range(size)]
    for i in range(size):
        for j in range(i + 1):
            r[i][j] = gram[i][j] - sum(mu[j][n] * r[i][n] for n in range(j))
            mu[i][j] = Fraction(r[i][j]) / r[j][j] if j < i else Fraction(1)
    return mu, [r[i][i] for i in range(size)]


def _swap(basis: Basis, mu: list[list[Any]], lengths: list[Any], k: int) -> None:
    """Exchange rows k - 1 and k, and update the coefficients."""
    m = mu[k][k - 1]
    longer = lengths[k] + m * m * lengths[k - 1]
    mu[k][k - 1] = m * lengths[k - 1] / longer
    lengths[k] = lengths[k - 1] * lengths[k] / longer
    lengths[k - 1] = longer
    basis[k - 1], basis[k] = basis[k], basis[k - 1]
    for j in range(k - 1):
        mu[k - 1][j], mu[k][j] = mu[k][j], mu[k - 1][j]
    for i in range(k + 1, len(basis)):
        t = mu[i][k]
        mu[i][k] = mu[i][k - 1] - m * t
        mu[i][k - 1] = t + mu[k][k - 1] * mu[i][k]


def _fastest(basis: Basis, block: int) -> Basis:
    """Reduced by fpylll if it is there, with blocks of up to this size; otherwise by the reduction
    above."""
    try:
        from fpylll import BKZ, LLL, IntegerMatrix
    except ImportError:
        return reduced(basis)
    matrix = IntegerMatrix.from_matrix(basis)
    LLL.reduction(matrix)
    for size in range(10, block + 1, 10):
        BKZ.reduction(matrix, BKZ.Param(size, max_loops=8, flags=BKZ.MAX_LOOPS))
    return [[matrix[i, j] for j in range(matrix.ncols)] for i in range(matrix.nrows)]


def labels_from_sums(changes: Matrix, sums: Matrix, error: float, block: int = 0) -> Matrix | None:
    """Labels of 0 and 1 from sums over them, or None if the reduction finds no vector of such a
    form.

    Args:
        changes: D, one row for each sum.
        sums: <y, D>, one for each row.
        error: How far the sums may be off.
        block: The largest block size of the reduction, if fpylll is installed; 0: LLL alone.
    """
    count, samples = changes.shape
    weight = 0.5 / max(error, 1e-9) * PRECISION  # an error counts as much as a label
    basis: Basis = []
    for i in range(samples):
        unit = [PRECISION * (j == i) for j in range(samples)]
        basis.append([*unit, *(round(float(d) * weight) for d in changes[:, i]), 0])
    goal = [-PRECISION // 2] * samples
    basis.append([*goal, *(-round(float(s) * weight) for s in sums), PRECISION // 2])

    for row in _fastest(basis, block):
        vector = np.array([float(x) / PRECISION for x in row])
        is_half = np.abs(np.abs(vector[[*range(samples), -1]]) - 0.5) < 1e-6
        if is_half.all() and count:
            return np.rint(vector[:samples] * np.sign(vector[-1]) + 0.5)
    return None


def observed(
    samples: int, columns: int, tours: int, seed: int = 0
) -> tuple[Matrix, Matrix, list[float | None], Any]:
    """The changes of the scores that the server sees, the exact sums, those that it is told, and
    the problem."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((samples, columns))
    scores = X @ rng.standard_normal(columns) / np.sqrt(columns) * 2
    data = mtcd.split(X, (scores + rng.logistic(size=samples) > 0).astype(int), clients=2)
    problem = mtcd.Glm("logistic", l2=1.0).problem(data)
    network = mtcd.make_network("complete", data.clients)
    parties = SealedTours(scheme="clear").parties(problem, network, 0)
    server: Any = parties.server
    changes: list[Matrix] = []
    told: list[float | None] = []
    ends = {name: getattr(server.holding.steering, name) for name in ("end_tour", "correct")}

    def noted(name: str) -> Any:
        def end(change: Matrix, sums: Matrix, label_sum: float | None, *rest: float) -> None:
            changes.append(change.copy())
            told.append(label_sum)
            ends[name](change, sums, label_sum, *rest)

        return end

    for name in ends:
        setattr(server.holding.steering, name, noted(name))
    for report in LocalEngine(parties, Ledger()).run():
        if report is not None and report.hop == tours:
            break
    seen = np.array(changes)
    return seen, seen @ problem.labels, told, problem


def attacked(
    changes: Matrix, sums: Sequence[float | None], error: float, labels: Matrix, block: int
) -> str:
    """The share of labels that the attack finds, in words."""
    known = [t for t, one in enumerate(sums) if one is not None]
    start = time.process_time()
    told = np.array([sums[t] for t in known], float)
    found = labels_from_sums(changes[known], told, error, block) if known else None
    right = "nothing" if found is None else f"{np.mean(found == labels):.0%} of the labels"
    return f"{len(known)} sums: {right}, {time.process_time() - start:.1f} CPU s"


def main() -> None:
    """Print what the attack finds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--sizes", type=int, nargs="+", default=[60, 8], help="samples and tours, in pairs"
    )
    parser.add_argument("--block", type=int, default=30)
    given = parser.parse_args()
    for samples, tours in zip(given.sizes[::2], given.sizes[1::2], strict=True):
        changes, exact, told, problem = observed(samples, 2 * tours, tours)
        by_scores = np.mean((changes.sum(axis=0) > 0) == problem.labels)
        print(
            f"N = {samples}, guessed from the scores alone: {by_scores:.0%} of the labels",
            flush=True,
        )
        step = STEP * float(2.0 ** np.ceil(np.log2(samples * np.log(2))))
        every = [round(float(one) / step) * step for one in exact]
        for name, sums, error in (
            ("exact", list(exact), 0.0),
            ("rounded, all of them", every, step / 3.5),
            ("as told", told, step / 3.5),
        ):
            print(
                f"N = {samples}, {name}: "
                f"{attacked(changes, sums, error, problem.labels, given.block)}",
                flush=True,
            )


if __name__ == "__main__":
    main()
