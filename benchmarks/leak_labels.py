"""Labels from sums over labels by lattice reduction: what the server of a sealed training could do,
and cannot now.

``python -m benchmarks.leak_labels`` trains on N samples, then attacks the exact sums <y, D> and
those that the label holder told, without label DP and with it (``lattice.py``; it needs the extra
``attacks``). With label DP the exact sums tell the released labels; of soft labels, which promise
nothing, they tell what the noise leaves.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

import mtcd
from benchmarks.lattice import labels_from_sums, nearest_labels
from benchmarks.leak_attacks import Matrix
from mtcd.engines.local import LocalEngine
from mtcd.privacy.labels.mechanisms import probabilities
from mtcd.privacy.sealed.plan import STEP
from mtcd.privacy.sealed.settings import SealedTours
from mtcd.privacy.settings import LabelSource
from mtcd.protocol.ledger.ledger import Ledger

SOFT = 0.125
"""The standard deviation of soft labels."""


class Observed(NamedTuple):
    """What the server of a sealed training sees, and what it is after."""

    changes: Matrix
    """D of each tour: how the scores changed."""
    exact: list[float]
    """<y~, D> for the released labels y~ of 0 and 1."""
    told: list[float | None]
    """The same as the label holder tells it; None once its bits are spent."""
    step: float
    """What is told is a multiple of it."""
    labels: Matrix
    released: Matrix


def observed(
    samples: int,
    columns: int,
    tours: int,
    seed: int = 0,
    epsilon: float | None = None,
    soft: float | None = None,
) -> Observed:
    """A sealed training with a server, of two parties.

    Parameters
    ----------
    samples : int
        N.
    columns : int
        Those of both parties together.
    tours : int
        How many are watched.
    seed : int
        Draws the table.
    epsilon : float, optional
        That of the labels; None without label differential privacy.
    soft : float, optional
        The standard deviation of soft labels, instead of ``epsilon``.
    """
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((samples, columns))
    scores = X @ rng.standard_normal(columns) / np.sqrt(columns) * 2
    labels = (scores + rng.logistic(size=samples) > 0).astype(int)
    released, noise = labels, None
    p, q = 1.0, 0.0
    wanted: Any = None
    if epsilon is not None:
        wanted = mtcd.LabelDP(epsilon=epsilon, insecure_seeded_draws=True)
        p, q = probabilities(epsilon, 2)
    if soft is not None:
        wanted = mtcd.SoftLabels(soft=soft, insecure_seeded_draws=True)
    if wanted is not None:
        noise = mtcd.Privacy(mode="sealed", labels=wanted).labels
        released = noise.released(labels, LabelSource())

    data = mtcd.split(X, released, clients=2)
    problem = mtcd.Glm("logistic", l2=1.0, label_noise=noise).problem(data)
    network = mtcd.make_network("complete", data.clients)
    parties = SealedTours(scheme="clear").parties(problem, network, 0)
    server: Any = parties.server
    changes: list[Matrix] = []
    told: list[float | None] = []
    ends = {name: getattr(server.holding.steering, name) for name in ("end_tour", "correct")}

    def noted(name: str) -> Any:
        def end(change: Matrix, sums: Matrix, label_sum: float | None, *rest: float) -> None:
            changes.append(change.copy())
            known = None
            if label_sum is not None:
                # the loss takes (y~ - q) / (p - q), with p and q that everybody knows
                known = label_sum * (p - q) + q * float(change.sum())
            told.append(known)
            ends[name](change, sums, label_sum, *rest)

        return end

    for name in ends:
        setattr(server.holding.steering, name, noted(name))
    for report in LocalEngine(parties, Ledger()).run():
        if report is not None and report.hop == tours:
            break

    seen = np.array(changes)
    at_zero = problem.loss.value(np.zeros(samples), problem.labels)
    step = STEP * float(2.0 ** np.ceil(np.log2(at_zero))) * (p - q)
    return Observed(seen, (seen @ released).tolist(), told, step, labels, released)


def attacked(seen: Observed, sums: Sequence[float | None], error: float) -> str:
    """The shares of labels that the attack finds, in words."""
    known = [t for t, one in enumerate(sums) if one is not None]
    start = time.process_time()
    told = np.array([sums[t] for t in known], float)
    found = labels_from_sums(seen.changes[known], told, error)
    seconds = time.process_time() - start
    if found is None:
        return f"{len(known)} sums: nothing, {seconds:.1f} CPU s"
    return (
        f"{len(known)} sums: {np.mean(found == seen.labels):.0%} of the labels, "
        f"{np.mean(found == seen.released):.0%} of those released, {seconds:.1f} CPU s"
    )


def main() -> None:
    """Print what the attack finds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--sizes", type=int, nargs="+", default=[60, 8], help="samples and tours, in pairs"
    )
    parser.add_argument("--tables", type=int, default=1)
    given = parser.parse_args()
    sizes = list(zip(given.sizes[::2], given.sizes[1::2], strict=True))
    for samples, tours in sizes:
        for seed in range(given.tables):
            for epsilon in (None, 2.0):
                show(samples, tours, seed, epsilon)
            show_soft(samples, tours, seed)


def show(samples: int, tours: int, seed: int, epsilon: float | None) -> None:
    """Print what the attack finds for one table."""
    seen = observed(samples, 2 * tours, tours, seed, epsilon)
    name = f"N = {samples}, table {seed}, "
    name += "without label DP" if epsilon is None else f"epsilon {epsilon:g}"
    by_scores = np.mean((seen.changes.sum(axis=0) > 0) == seen.labels)
    print(f"{name}, guessed from the scores alone: {by_scores:.0%} of the labels", flush=True)
    every = [round(one / seen.step) * seen.step for one in seen.exact]
    for kind, sums, error in (
        ("exact", seen.exact, 0.0),
        ("rounded, all of them", every, seen.step / 3.5),
        ("as told", seen.told, seen.step / 3.5),
    ):
        print(f"{name}, {kind}: {attacked(seen, sums, error)}", flush=True)


def show_soft(samples: int, tours: int, seed: int) -> None:
    """Print what the attack finds of soft labels, from their exact sums."""
    seen = observed(samples, 2 * tours, tours, seed, soft=SOFT)
    # main directions: the changes of the last tours are hardly new
    left, sizes, right = np.linalg.svd(seen.changes, full_matrices=False)
    kept = sizes > 1e-6 * sizes[0]
    sums = (left.T @ np.array(seen.exact))[kept] / sizes[kept]
    found = nearest_labels(right[kept], sums, SOFT)
    fair = np.full(samples, 0.5)
    guess = right[kept].T @ (sums - right[kept] @ fair) > 0
    print(
        f"N = {samples}, table {seed}, soft {SOFT:g}, exact: {len(sums)} sums: "
        f"{np.mean(found == seen.labels):.0%} of the labels, "
        f"{np.mean(guess == seen.labels):.0%} by least squares",
        flush=True,
    )


if __name__ == "__main__":
    main()
