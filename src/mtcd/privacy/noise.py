"""Gaussian noise as integers.

Where a query is an integer, adding a rounded Gaussian number is the same as rounding the query plus that number: a
Gaussian mechanism whose result is rounded. Rounding also leaves out the last bits of a floating-point number, which may
tell the query that it was added to.
"""

from __future__ import annotations

import os

import numpy as np
import scipy  # its parts are loaded when they are used
from numpy.typing import NDArray

from mtcd.seeding import stream

Integers = NDArray[np.int64]
BITS = 53


def secret_noise(deviation: float, count: int) -> Integers:
    """From the operating system's randomness: nobody can draw it again."""
    drawn = np.frombuffer(os.urandom(8 * count), np.uint64) >> np.uint64(64 - BITS)
    return _integers(deviation, drawn)


def seeded_noise(deviation: float, count: int, seed: int, client: int, tour: int) -> Integers:
    """From the seed of the run: the same again when a training is resumed, but no secret to those who know the seed."""
    drawn = stream(seed, "differential privacy", client, tour).integers(0, 2**BITS, count, np.uint64)
    return _integers(deviation, drawn)


def _integers(deviation: float, drawn: NDArray[np.uint64]) -> Integers:
    """By the inverse of the distribution function, at the middle of one of 2^53 intervals: at most 8.3 deviations."""
    uniform = np.minimum((drawn.astype(float) + 0.5) / 2.0**BITS, 1 - 2.0**-BITS)
    return np.asarray(np.rint(deviation * scipy.special.ndtri(uniform)), np.int64)
