"""The folds of a cross-validation: drawn once for all clients, from the labels and the seed
alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mtcd.core.arrays import Rows
from mtcd.core.checks import check_whole
from mtcd.core.errors import ConfigError, DataError
from mtcd.core.seeding import stream


def fold_numbers(folds: int | ArrayLike, labels: NDArray[Any], of_classes: bool, seed: int) -> Rows:
    """The fold of each sample: 0, 1, ...; in all folds about the same share of every class.

    ``folds`` is their number, or holds a fold for each sample.

    >>> fold_numbers(2, np.array(["a", "b", "a", "b"]), True, 0).tolist()
    [1, 1, 0, 0]
    """
    if not isinstance(folds, int | np.integer):
        return _given(folds, len(labels))
    check_whole("folds", folds, least=2)
    if folds > len(labels):
        raise DataError(
            f"There are {len(labels)} samples, too few for {folds} folds: ask for fewer."
        )

    order = stream(seed, "folds").permutation(len(labels))
    if of_classes:
        classes, counts = np.unique(labels, return_counts=True)
        few = int(counts.argmin())
        if counts[few] < folds:
            raise DataError(
                f"Class {classes[few].item()!r} has {counts[few]} sample(s), too few for {folds} "
                "folds: ask for fewer folds, or leave the class out."
            )
        order = order[np.argsort(labels[order], kind="stable")]  # class after class

    # dealt out one by one, like cards: of every class, folds get as many as each other, or one more
    numbers = np.empty(len(labels), dtype=np.intp)
    numbers[order] = np.arange(len(labels)) % folds
    return numbers


def _given(folds: ArrayLike, samples: int) -> Rows:
    try:
        numbers = np.asarray(folds)
        if numbers.shape != (samples,):
            raise ValueError
        # any names of folds: they become 0, 1, ... in sorted order
        found, numbers = np.unique(numbers, return_inverse=True)
    except (TypeError, ValueError):  # of ragged lists, and of values that cannot be sorted
        raise ConfigError(
            f"folds must be a number of folds, or a fold for each of the {samples} samples."
        ) from None

    if len(found) < 2:
        raise ConfigError("folds: all samples are in one fold: give at least two.")
    return numbers.astype(np.intp)
