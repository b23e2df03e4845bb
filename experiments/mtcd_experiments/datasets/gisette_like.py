"""A stand-in for Gisette, made from MNIST: the same task, the same sizes, a similar look; not its
numbers.

Gisette's makers took pixels of the digits 4 and 9 and products of them, added as many features
without meaning (probes), and shuffled all. Which ones they drew is not published: here, a seed
draws them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mtcd.core.seeding import stream
from mtcd_experiments.datasets import mnist
from mtcd_experiments.datasets.entry import Dataset, Raw
from mtcd_experiments.datasets.gisette import LARGEST

NEGATIVE, POSITIVE = 4, 9
PER_CLASS = 3000
REAL = 2500  # and as many probes
MIDDLE = slice(4, 24)  # the 20 x 20 pixels that size-normalised digits fill
# less ink than this counts as none; chosen so that 14% of the values are not 0 (Gisette: 13%)
FAINT = 64
USED = 0.02  # pixels with ink in a smaller share of the samples are left out
FULL = 255


@dataclass(frozen=True, eq=False)
class Made:
    """The data set, and which of its features are probes."""

    values: NDArray[np.uint16]  # samples x features, column-major
    labels: NDArray[np.int64]
    probes: NDArray[np.bool_]


def make(
    images: NDArray[np.uint8],
    digits: NDArray[np.uint8],
    seed: int,
    per_class: int = PER_CLASS,
    real: int = REAL,
) -> Made:
    """Draw the data set. Arrays are features x samples until the end, so that columns are
    contiguous."""
    rows = _samples(digits, per_class, seed)
    meaningful = _real_features(_ink(images[rows]), real, seed)
    probes = stream(seed, "gisette-like probes").permuted(meaningful, axis=1)
    order = stream(seed, "gisette-like features").permutation(2 * real)
    values = np.concatenate([meaningful, probes])[order]
    return Made(values.T, (digits[rows] == POSITIVE).astype(np.int64), order >= real)


def _samples(digits: NDArray[np.uint8], per_class: int, seed: int) -> NDArray[np.intp]:
    """As many of either digit, in any order."""
    drawn = [
        stream(seed, "gisette-like samples", digit).choice(
            np.flatnonzero(digits == digit), per_class, replace=False
        )
        for digit in (NEGATIVE, POSITIVE)
    ]
    return stream(seed, "gisette-like order").permutation(np.concatenate(drawn))


def _ink(images: NDArray[np.uint8]) -> NDArray[np.uint32]:
    """The ink of the pixels that are used, pixels x samples."""
    pixels = images[:, MIDDLE, MIDDLE].reshape(len(images), -1).T
    ink = np.where(pixels < FAINT, 0, pixels).astype(np.uint32)
    used: NDArray[np.bool_] = (ink > 0).mean(axis=1) >= USED
    return ink[used]


def _real_features(ink: NDArray[np.uint32], real: int, seed: int) -> NDArray[np.uint16]:
    """Each pixel, and products of as many pairs of pixels as are needed, no pair twice: rounded to
    0..999."""
    first, second = np.triu_indices(len(ink), k=1)
    pairs = stream(seed, "gisette-like pairs").choice(len(first), real - len(ink), replace=False)
    products = np.concatenate([ink * FULL, ink[first[pairs]] * ink[second[pairs]]])
    # in whole numbers, so that every machine rounds alike
    rounded: NDArray[np.uint32] = (2 * LARGEST * products + FULL**2) // (2 * FULL**2)
    return rounded.astype(np.uint16)


def read(files: Mapping[str, Path], seed: int) -> Raw:
    """The data set of this seed."""
    made = make(*mnist.read_mnist(files), seed)
    note = f"gisette-like: made from MNIST, {NEGATIVE} (label 0) against {POSITIVE} (label 1), seed {seed}; "
    return Raw(made.values, LARGEST, made.labels, note + "not Gisette itself.")


GISETTE_LIKE = Dataset(
    title="gisette-like (made from MNIST)",
    subfolder="mnist",
    files=mnist.FILES,
    how=mnist.HOW,
    read=read,
)
