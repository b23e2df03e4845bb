"""Where a token may be, and where it starts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


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
