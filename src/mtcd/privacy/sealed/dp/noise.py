"""Gaussian noise as integers, from a secret of the operating system.

Where a query is an integer, adding a rounded Gaussian number is the same as rounding the query plus
that number: a Gaussian mechanism whose result is rounded. Rounding also leaves out the last bits of
a floating-point number, which may tell the query that it was added to.

Noise is a function of the secret, the client and the tour: a tour that is repeated, after a restart
or from a backup, releases the same numbers again, and spends nothing.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy  # its parts are loaded when they are used
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Secret = NDArray[np.uint8]
BITS = 53
SECRET_BYTES = 32


def draw_secret() -> Secret:
    """From the operating system."""
    return np.frombuffer(os.urandom(SECRET_BYTES), np.uint8)


def insecure_secret(seed: int, settings: str, arrays: Iterable[Any]) -> Secret:
    """For a training that can be repeated. It is no secret: who has the data can compute it, and
    guesses the seed.

    It depends on settings and data, as two trainings that share their noise cancel it: the
    difference of two gradients with the same noise has none.
    """
    digest = hashlib.blake2b(
        f"insecure seeded noise {int(seed)} {settings}".encode(), digest_size=SECRET_BYTES
    )
    # Sparse and dense blocks with the same numbers are the same data.
    for array in arrays:
        if hasattr(array, "toarray"):
            array = array.toarray()
        dense = np.ascontiguousarray(array, np.float64)
        digest.update(repr(dense.shape).encode())
        digest.update(dense.data)
    return np.frombuffer(digest.digest(), np.uint8)


def gaussian_noise(
    deviation: float, count: int, secret: Secret, client: int, tour: int
) -> Integers:
    """``count`` integers, by the inverse of the distribution function at the middle of one of 2^53
    intervals.

    SHAKE-256 of the secret and the ids gives the bits. No number exceeds 8.3 deviations.
    """
    ids = f"differential privacy {client} {tour}".encode()
    # SHAKE is extendable, so that one call gives all bits; ids keep clients and tours apart.
    bits = hashlib.shake_256(secret.tobytes() + ids).digest(8 * count)
    drawn = np.frombuffer(bits, "<u8") >> np.uint64(64 - BITS)
    # never 1, of which the inverse is infinite
    uniform = np.minimum((drawn.astype(float) + 0.5) / 2.0**BITS, 1 - 2.0**-BITS)
    return np.asarray(np.rint(deviation * scipy.special.ndtri(uniform)), np.int64)
