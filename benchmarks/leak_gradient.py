"""Labels from a party's first gradient in a sealed training: ``python -m benchmarks.leak_gradient``.

Where the label holder has nothing but labels and an intercept, the derivative of the loss at the
first visit is the same for all samples but for their labels. So the gradient of the next party is
<x, y> for each of its columns x, up to a constant: as many sums over labels of 0 and 1 as it has
columns, from which a lattice reduction reads them (``lattice.py``; it needs the extra
``attacks``). With ``privacy.labels`` the same attack finds randomised labels, and no others: the
reduction looks for two values a fixed distance apart.

A *wide party*, of as many columns as samples, needs no lattice: its gradient determines the
derivative of every sample, whose sign is the label, whatever columns the label holder has.

Soft labels promise nothing; there the sums are off by their noise. Of a few samples all vectors of
labels can be tried instead: the most likely one is the best that any attack on these sums can do.
"""

from __future__ import annotations

import argparse
import time
from typing import NamedTuple

import numpy as np

import mtcd
from benchmarks.lattice import labels_from_sums, nearest_labels, whitened
from benchmarks.leak import A, Recording
from benchmarks.leak_attacks import Matrix
from mtcd.core.errors import DataError, MtcdError
from mtcd.models.glm.model import LinearProblem
from mtcd.privacy.labels.mechanisms import probabilities
from mtcd.privacy.labels.settings import LabelDP
from mtcd.privacy.labels.soft import SoftLabels
from mtcd.privacy.sealed.settings import SealedTours
from mtcd.privacy.settings import LabelSource


class Observed(NamedTuple):
    """What the attacker has: its columns and its first gradient. What it is after: the labels of
    the table, and those that were released."""

    columns: Matrix
    gradient: Matrix
    labels: Matrix
    released: Matrix
    spacing: float
    """The distance between the two values of a label in the loss, which everybody knows."""
    rounding: float
    """The standard deviation by which the derivative of a sample is off: it is rounded twice, by
    the label holder and in the update of its intercept."""
    deviation: float
    """The standard deviation of the noise of soft labels; 0 of others."""


MOST_TRIED = 26
"""Labels of which all vectors are tried."""
HOLDER_COLUMNS = 12
"""Those of a label holder beside a wide party."""


def observed(
    samples: int,
    columns: int,
    epsilon: float | None,
    seed: int,
    soft: float | None = None,
    holder_columns: int = 0,
) -> Observed:
    """The first visit of a sealed training at a party beside a label holder.

    Parameters
    ----------
    samples : int
        N.
    columns : int
        d_k of the attacker.
    epsilon : float, optional
        That of the labels; None without label differential privacy.
    seed : int
        Draws the table.
    soft : float, optional
        The standard deviation of soft labels, instead of ``epsilon``.
    holder_columns : int
        Those of the label holder, beside its intercept.
    """
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((samples, columns))
    scores = X @ rng.standard_normal(columns) / np.sqrt(columns) * 2
    labels = (scores + rng.logistic(size=samples) > 0).astype(int)
    released = labels
    noise, spacing = None, 1.0
    if epsilon is not None:
        noise = mtcd.Privacy(
            mode="sealed", labels=LabelDP(epsilon=epsilon, insecure_seeded_draws=True)
        ).labels
        released = noise.released(labels, LabelSource())
        p, q = probabilities(epsilon, 2)
        spacing = 1 / (p - q)
    if soft is not None:
        noise = mtcd.Privacy(
            mode="sealed", labels=SoftLabels(soft=soft, insecure_seeded_draws=True)
        ).labels
        released = noise.released(labels, LabelSource())

    model = mtcd.Glm("logistic", l2=1.0, intercept=True, label_noise=noise)
    loss, encoded, classes = model.weighted(released)
    held = np.hstack([rng.standard_normal((samples, holder_columns)), np.ones((samples, 1))])
    blocks = (np.asfortranarray(held), np.asfortranarray(X))
    problem = LinearProblem(loss, encoded, classes, blocks, model.penalties(2))
    network = mtcd.make_network("complete", ("holder", "attacker"))
    # what refuses wide parties stands in the way of the attack, and is not what is measured
    sealed = SealedTours(scheme="clear", accept_revealed_labels=True)
    run = Recording(sealed, problem, network)
    block = run.by_number[A].block
    update, seen = block.update, []

    def recorded(products: Matrix, token: float, draws: Matrix) -> Matrix:
        seen.append((products / (block.column_scales * token), 1.0 / token))
        return np.asarray(update(products, token, draws))

    block.update = recorded
    try:
        run.run(1)
    except MtcdError:
        # a wide party may fit noise so closely that the training fails, after its first gradient
        if not seen:
            raise
    gradient, step = seen[0]
    # that of two numbers that are uniform within a step
    rounding = step * np.sqrt(2 / 12)
    return Observed(block.rounded, gradient, labels, released, spacing, rounding, soft or 0.0)


def equations_of(seen: Observed) -> tuple[Matrix, Matrix]:
    """Equations of the labels, and their right-hand sides.

    The gradient is X^T (t - s y) for a t that is the same for all samples and s, the spacing. A
    combination of columns that add up to 0 has no t.
    """
    ones = seen.columns.sum(axis=0)
    # an orthonormal basis of the combinations without t
    combinations = np.linalg.svd(ones[None, :])[2][1:]
    return combinations @ seen.columns.T, -(combinations @ seen.gradient) / seen.spacing


def attacked(seen: Observed) -> Matrix | None:
    """The labels that the reduction finds; None if it finds none."""
    equations, sums = equations_of(seen)
    # combinations have length 1: an error is that of a sum of N roundings, and of N draws of noise
    rounding = seen.rounding / seen.spacing * np.sqrt(len(seen.columns))
    noise = seen.deviation * np.sqrt(np.mean(np.sum(equations**2, axis=1)))
    return labels_from_sums(equations, sums, rounding + noise)


def nearest(seen: Observed) -> Matrix:
    """The guess of a reduction where there is noise on labels."""
    return nearest_labels(*equations_of(seen), seen.deviation)


def from_derivatives(seen: Observed) -> Matrix:
    """The labels that a party with as many columns as samples finds by algebra."""
    derivatives = np.linalg.lstsq(seen.columns.T, seen.gradient, rcond=None)[0]
    # g = sigma(z) - (y~ - q) / (p - q), with sigma between 0 and 1: below 0 for y~ = 1 alone
    return np.asarray(derivatives < 0, dtype=float)


def guessed(seen: Observed) -> Matrix:
    """The labels that least squares guesses: it knows nothing of 0 and 1, so that noise on labels
    hardly changes it."""
    equations, sums = equations_of(seen)
    fair = np.full(equations.shape[1], 0.5)
    guess = np.linalg.pinv(equations) @ (sums - equations @ fair)
    return np.asarray(guess > 0, dtype=float)


def most_likely(seen: Observed) -> Matrix:
    """The labels whose sums are the likeliest for this noise: all vectors are tried, as pairs of
    halves."""
    equations, sums = whitened(*equations_of(seen))
    samples = equations.shape[1]
    first, second = (halves(count) for count in (samples // 2, samples - samples // 2))
    left = sums - first @ equations[:, : samples // 2].T
    taken = second @ equations[:, samples // 2 :].T
    squares = np.sum(taken**2, axis=1)

    best, found = np.inf, np.zeros(samples)
    for half, rest in zip(first, left, strict=True):
        distances = squares - 2 * (taken @ rest)
        place = int(np.argmin(distances))
        distance = distances[place] + rest @ rest
        if distance < best:
            best, found = distance, np.concatenate([half, second[place]])

    return found


def halves(count: int) -> Matrix:
    """All vectors of so many labels."""
    numbers = np.arange(2**count)
    return np.asarray(numbers[:, None] >> np.arange(count) & 1, dtype=float)


def right(found: Matrix | None, labels: Matrix) -> str:
    """The share of labels that were found, in words."""
    return "nothing" if found is None else f"{np.mean(found == labels):.0%}"


def main() -> None:
    """Print what the attacks find."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=100)
    parser.add_argument("--columns", type=int, default=16)
    parser.add_argument("--tables", type=int, default=5)
    given = parser.parse_args()
    for epsilon in (None, 1.0, 2.0):
        for seed in range(given.tables):
            show_attack(given.samples, given.columns, epsilon, seed)
    for epsilon in (None, 1.0, 2.0):
        for seed in range(given.tables):
            show_attack(given.samples, given.samples, epsilon, seed, HOLDER_COLUMNS)
    for seed in range(given.tables):
        for soft in (None, 0.125):
            show_soft(given.samples, given.columns, soft, seed)


def show_attack(
    samples: int, columns: int, epsilon: float | None, seed: int, holder_columns: int = 0
) -> None:
    """Print what the attack on a first gradient finds: by algebra of a wide party."""
    name = f"N = {samples}, {columns} columns, table {seed}, "
    name += "without label DP" if epsilon is None else f"epsilon {epsilon:g}"
    began = time.process_time()
    try:
        seen = observed(samples, columns, epsilon, seed, holder_columns=holder_columns)
    except DataError as error:  # a few labels, all but one of which may be flipped
        print(f"{name}: {error}", flush=True)
        return

    found = from_derivatives(seen) if columns >= samples else attacked(seen)
    kept = np.mean(seen.labels == seen.released)
    print(
        f"{name}: {right(found, seen.labels)} of the labels, "
        f"{right(found, seen.released)} of those released ({kept:.0%} are the same), "
        f"{time.process_time() - began:.1f} CPU s",
        flush=True,
    )


def show_soft(samples: int, columns: int, soft: float | None, seed: int) -> None:
    """Print what attacks on soft labels find, and on the labels themselves."""
    seen = observed(samples, columns, None, seed, soft)
    found = {"reduction": attacked(seen)}
    if soft is not None:
        found["the nearest point of the lattice"] = nearest(seen)
    if samples <= MOST_TRIED:
        found["trying all"] = most_likely(seen)
    found["least squares"] = guessed(seen)
    shares = ", ".join(f"{right(one, seen.labels)} by {way}" for way, one in found.items())
    share = seen.labels.mean()
    print(
        f"N = {samples}, {columns} columns, table {seed}, soft {soft or 0:g}: of the labels "
        f"{shares}; {max(share, 1 - share):.0%} are of the larger class",
        flush=True,
    )


if __name__ == "__main__":
    main()
