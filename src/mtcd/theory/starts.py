"""Where a token may be, and where it starts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mtcd.errors import ConfigError

Array = NDArray[np.float64]


class Roam(NamedTuple):
    """Where one token may be, and the probability of starting at each of these clients."""

    clients: tuple[int, ...]
    start: tuple[float, ...]


def uniform_roam(clients: Iterable[int]) -> Roam:
    """A token that is as likely to start at one of these clients as at another.

    >>> uniform_roam([3, 5])
    Roam(clients=(3, 5), start=(0.5, 0.5))
    """
    region = tuple(clients)
    return Roam(region, (1 / len(region),) * len(region))


def checked_start(start: Sequence[float] | Array, K: int) -> Array:
    """The start as an array, if it is one probability for each of K clients."""
    p = np.array(start, dtype=float)
    if p.shape != (K,):
        raise ConfigError(f"the start has {p.size} probabilities for {K} clients: give one for each client.")
    if not (p >= 0).all() or not abs(p.sum() - 1.0) < 1e-9:
        raise ConfigError("the start must be probabilities, 0 or more, that add up to 1: divide them by their sum.")
    return p
