"""How one label is randomised: randomised response of classes, Laplace noise of values; normal
noise of soft labels, which promises nothing.

All is computed from words of 53 random bits, with whole numbers where it decides what is promised:
the probabilities are multiples of 2^-53, rounded so that no label is promised less than epsilon.
"""

from __future__ import annotations

import hashlib
import math
from typing import Any

import numpy as np
import scipy  # its parts are loaded when they are used
from numpy.typing import NDArray

from mtcd.core.arrays import Array

BITS = 53
ONE: int = 2**BITS
Words = NDArray[np.uint64]

STEPS = 2**16
"""The steps of the grid that the range of values is divided into."""
TAIL = 20.0
"""Noise beyond so many of its scales is cut off, outside the range: e^-20 of the draws."""
SOFT_STEPS = 2**32
"""The steps of the grid for soft labels: the last bits of a sum must not tell what was added."""
SOFT_TAIL = 6.0
"""Normal noise beyond so many standard deviations is cut off: 2e-9 of the draws."""
MARGIN = 1e-6
"""By which the noise is larger than computed, for what is rounded."""


def words(secret: bytes, purpose: str, count: int) -> Words:
    """So many words of 53 bits: SHAKE-256 of the secret and what they are for."""
    bits = hashlib.shake_256(secret + purpose.encode()).digest(8 * count)
    return np.frombuffer(bits, "<u8") >> np.uint64(64 - BITS)


def probabilities(epsilon: float, classes: int) -> tuple[float, float]:
    """The probability p of keeping a label, and q of each of the other classes.

    Parameters
    ----------
    epsilon : float
        The budget: p / q is e^epsilon.
    classes : int
        k, the number of classes.

    Examples
    --------
    >>> p, q = probabilities(math.log(3), 2)
    >>> round(p, 12), round(q, 12)
    (0.75, 0.25)
    """
    # of e^-epsilon, which does not overflow
    other = math.exp(-epsilon)
    p = 1.0 / (1.0 + (classes - 1) * other)
    return p, p * other


def threshold(epsilon: float, classes: int) -> int:
    """A label is kept where a word is below this.

    Less than p by what covers rounding: of p itself, and of the choice among the other classes,
    each of which has one of 2^53 words less than its share at most.
    """
    p, _ = probabilities(epsilon, classes)
    return max(int(p * ONE) - classes - 2, 0)


def responses(codes: NDArray[np.int64], classes: int, epsilon: float, drawn: Words) -> Any:
    """The classes that are released, as numbers.

    Parameters
    ----------
    codes : array of int
        The classes of the labels, from 0.
    classes : int
        k.
    epsilon : float
        The budget.
    drawn : array of words
        Two for each label.

    Examples
    --------
    >>> responses(np.array([0, 1]), 2, 1.0, np.array([0, 2**53 - 1, 0, 0], np.uint64))
    array([0, 0])
    """
    keeping, choosing = drawn[: len(codes)], drawn[len(codes) :]
    kept = keeping < np.uint64(threshold(epsilon, classes))
    # the steps from a label to another class: 1 to k - 1
    steps = 1 + _scaled(choosing, classes - 1)
    return np.where(kept, codes, (codes + steps) % classes)


def _scaled(drawn: Words, count: int) -> NDArray[np.int64]:
    """Whole numbers below ``count`` of these words: the upper half of a product, without the
    rounding of floats."""
    low = drawn & np.uint64(2**26 - 1)
    high = drawn >> np.uint64(26)
    carried = (low * np.uint64(count)) >> np.uint64(26)
    return ((high * np.uint64(count) + carried) >> np.uint64(BITS - 26)).astype(np.int64)


def noisy_values(
    values: Array, low: float, high: float, epsilon: float, secret: bytes, purpose: str
) -> Array:
    """Values with Laplace noise: discrete, on a grid of the range, without bias.

    Parameters
    ----------
    values : array
        Those outside of the range count as its nearest end.
    low, high : float
        The range, which must not depend on the values.
    epsilon : float
        The budget.
    secret : bytes
        What the draws follow from.
    purpose : str
        What they are for.
    """
    places = _places(values, low, high, STEPS).astype(np.int64)
    moved = noisy_places(places, STEPS, epsilon, secret, purpose)
    return _values(moved, low, high, STEPS)


def noisy_places(
    places: NDArray[np.int64], steps: int, epsilon: float, secret: bytes, purpose: str
) -> NDArray[np.int64]:
    """Places from 0 to ``steps``, with noise: P(n) is proportional to e^(-epsilon |n| / steps).

    The noise is the difference of two geometric numbers, whose bits are independent: bit i is 1
    with probability 1 / (1 + e^(rate 2^i)). Sums beyond the range by more than ``TAIL`` scales of
    the noise are cut off there, so that nothing is seen of where the bits end.
    """
    rate = epsilon * (1.0 - MARGIN) / steps
    beyond = math.ceil(TAIL / rate)
    bits = math.ceil(math.log2(steps + 2 * beyond + 1))
    up = _geometric(rate, bits, secret, f"{purpose} up", len(places))
    down = _geometric(rate, bits, secret, f"{purpose} down", len(places))
    moved: NDArray[np.int64] = np.clip(places + up - down, -beyond, steps + beyond)
    return moved


def _geometric(
    rate: float, bits: int, secret: bytes, purpose: str, count: int
) -> NDArray[np.int64]:
    """Numbers n with probabilities proportional to e^(-rate n), below 2^bits."""
    found = np.zeros(count, np.int64)
    for i in range(bits):
        # e^-x / (1 + e^-x), which does not overflow
        other = math.exp(-rate * 2.0**i)
        is_set = words(secret, f"{purpose} {i}", count) < np.uint64(other / (1.0 + other) * ONE)
        found += is_set.astype(np.int64) << i
    return found


def soft_values(
    values: Array, low: float, high: float, deviation: float, secret: bytes, purpose: str
) -> Array:
    """Values with normal noise, on a grid of the range, without bias.

    Parameters
    ----------
    values : array
        Those outside of the range count as its nearest end.
    low, high : float
        The range.
    deviation : float
        The standard deviation of the noise, in widths of the range.
    secret : bytes
        What the draws follow from.
    purpose : str
        What they are for.
    """
    places = _places(values, low, high, SOFT_STEPS)
    # the middle of each interval of words: symmetric, and neither 0 nor 1
    uniform = (words(secret, purpose, len(values)) + 0.5) / ONE
    noise = np.clip(scipy.special.ndtri(uniform), -SOFT_TAIL, SOFT_TAIL) * deviation
    # halves between two steps: no label with noise is 0, which is what parties without labels have
    moved = places + np.floor(noise * SOFT_STEPS) + 0.5
    return _values(moved, low, high, SOFT_STEPS)


def _places(values: Array, low: float, high: float, steps: int) -> Array:
    """The nearest place of each value on a grid of the range; the nearest end, if it is outside."""
    return np.asarray(np.rint((np.clip(values, low, high) - low) / (high - low) * steps))


def _values(places: NDArray[Any], low: float, high: float, steps: int) -> Array:
    """The values at places of the grid."""
    return np.asarray(low + places * ((high - low) / steps), dtype=float)
