"""Secret randomness, from the operating system: never from a seed, which others could know."""

from __future__ import annotations

import os

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]


def uniform(modulus: int, count: int) -> Integers:
    """``count`` integers, uniform from 0 to ``modulus`` - 1, by rejection."""
    # cut to the bits of the modulus, at least half of all draws are kept
    bits = modulus.bit_length()
    # Some are rejected, so draw again what is missing. A remainder modulo t would not be uniform.
    found = np.empty(0, np.uint64)
    while len(found) < count:
        drawn = np.frombuffer(os.urandom(8 * (count - len(found))), np.uint64) >> np.uint64(
            64 - bits
        )
        found = np.concatenate([found, drawn[drawn < modulus]])
    return found.astype(np.int64)


def uniform_residues(bits: int, count: int, moduli: list[int]) -> npt.NDArray[np.uint64]:
    """``count`` integers, uniform from -2^bits to 2^bits - 1, modulo each of these moduli below
    2^56: one row each."""
    # more bits than a word has: digit by digit, from the highest one
    # One byte more than the bits may need; the top one is masked.
    size = bits // 8 + 1
    drawn = np.frombuffer(os.urandom(size * count), np.uint8).reshape(size, count)
    top = drawn[:1] & np.uint8((2 << (bits - 8 * (size - 1))) - 1)
    digits = np.concatenate([top, drawn[1:]]).astype(np.uint64)
    rows = []
    for modulus in moduli:
        row = np.zeros(count, np.uint64)
        for digit in digits:
            row = (row * np.uint64(256) + digit) % np.uint64(modulus)
        rows.append((row + np.uint64(modulus - (1 << bits) % modulus)) % np.uint64(modulus))
    return np.array(rows)
