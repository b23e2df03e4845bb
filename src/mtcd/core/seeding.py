"""Random numbers as a function of their purpose.

Every draw belongs to a seed, a purpose and ids such as (token, iteration): it does not depend on
the caller, the order of calls or the process. That makes engines agree, and reruns repeat. Philox
takes a key, and streams of different keys are independent by construction.
"""

from __future__ import annotations

import hashlib
from array import array
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

BLOCK = 256
"""Uniform numbers that are made at a time: making one costs as much as making all of them."""


def stream(seed: int, purpose: str, *ids: int) -> np.random.Generator:
    """The generator for one purpose, for example ``stream(seed, "start", token, iteration)``.

    >>> float(stream(0, "start", 1).random()) == float(stream(0, "start", 1).random())
    True
    """
    # A hash of the text, not Python's hash(): it is the same in every process.
    name = f"{int(seed)} {purpose} {' '.join(str(int(i)) for i in ids)}"
    key = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=16).digest())
    return np.random.Generator(np.random.Philox(key=key))


# At most 32 MB. With few, tokens that take turns would have their blocks made again at each hop.
@lru_cache(maxsize=16384)
def uniform_block(seed: int, purpose: str, ids: tuple[int, ...], block: int) -> array[float]:
    """``BLOCK`` numbers of the endless row of ``uniform``."""
    return array("d", stream(seed, purpose, *ids, block).random(BLOCK).tobytes())


def uniform(seed: int, purpose: str, ids: tuple[int, ...], position: int) -> float:
    """The number at ``position`` of an endless row of uniform numbers in [0, 1), read at random.

    Made in blocks, so that a long walk costs next to nothing and any hop can be looked up alone.

    >>> uniform(0, "docs", (2,), 1000) == uniform(0, "docs", (2,), 1000)
    True
    """
    return uniform_block(seed, purpose, ids, position // BLOCK)[position % BLOCK]


def shuffled(seed: int, purpose: str, ids: tuple[int, ...], count: int) -> NDArray[np.intp]:
    """0..count-1 in an order that depends on the seed, the purpose and the ids alone.

    >>> shuffled(0, "docs", (), 5).tolist() == shuffled(0, "docs", (), 5).tolist()
    True
    """
    return stream(seed, purpose, *ids).permutation(count)
