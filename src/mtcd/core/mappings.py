"""Mappings that are made in many places: positions of names, values that are there, attributes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


def positions(names: Iterable[K]) -> dict[K, int]:
    """The position of each name.

    >>> positions(["age", "income"])
    {'age': 0, 'income': 1}
    """
    return {name: place for place, name in enumerate(names)}


def without_none(given: Mapping[K, V | None]) -> dict[K, V]:
    """The entries whose value is not None.

    >>> without_none({"tokens": 2, "hops": None})
    {'tokens': 2}
    """
    return {name: value for name, value in given.items() if value is not None}


def attributes(thing: object, names: Iterable[str]) -> dict[str, Any]:
    """The attributes of these names.

    >>> attributes(1j, ["real", "imag"])
    {'real': 0.0, 'imag': 1.0}
    """
    return {name: getattr(thing, name) for name in names}
