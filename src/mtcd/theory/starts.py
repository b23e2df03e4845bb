"""The clients that a token may visit, and its start distribution."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Roam(NamedTuple):
    """The clients that one token may visit, and the probability of starting at each of them."""

    clients: tuple[int, ...]
    start: tuple[float, ...]


def uniform_roam(clients: Iterable[int]) -> Roam:
    """A token with a uniform start among these clients.

    >>> uniform_roam([3, 5])
    Roam(clients=(3, 5), start=(0.5, 0.5))
    """
    region = tuple(clients)
    return Roam(region, (1 / len(region),) * len(region))
