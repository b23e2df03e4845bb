"""Which attributes of two objects differ: for tests that make an object again from what was kept of
it."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping, Set
from typing import Any

import numpy as np

Path = tuple[str, ...]
PLAIN = (type(None), bool, int, float, complex, str, bytes, np.generic)


def differences(one: Any, other: Any, apart: Collection[str] = ()) -> list[str]:
    """The places at which they differ, such as ``client.theta``; attributes named in ``apart`` are
    left out.

    Objects of this package are compared attribute by attribute, others are not looked into. What is
    computed when it is first asked for (a cached property) counts only if both have it.
    """
    found: list[str] = []
    _compare(one, other, (), frozenset(apart), set(), found)
    return found


def _compare(
    one: Any, other: Any, place: Path, apart: Set[str], seen: set[tuple[int, int]], found: list[str]
) -> None:
    if one is other or (id(one), id(other)) in seen:
        return
    seen.add((id(one), id(other)))
    if isinstance(one, np.ndarray) or _is_tensor(one):
        if not _same_numbers(one, other):
            found.append(".".join(place))
        return
    if isinstance(one, PLAIN):
        if type(one) is not type(other) or not (one == other or one != one):
            found.append(f"{'.'.join(place)}: {one!r} and {other!r}")
        return
    parts = _parts(one), _parts(other)
    if parts[0] is None or parts[1] is None:
        if type(one) is not type(other):
            found.append(f"{'.'.join(place)}: {one!r} and {other!r}")
        return
    cached = _cached(one) | apart
    mine, theirs = (
        {name: part for name, part in some.items() if name not in cached} for some in parts
    )
    for name in mine.keys() ^ theirs.keys():
        if (mine | theirs)[name] is not None:  # None as an attribute of the class will do
            found.append(f"{'.'.join((*place, str(name)))}: one of both has none")
    for name in mine.keys() & theirs.keys():
        _compare(mine[name], theirs[name], (*place, str(name)), apart, seen, found)


def _parts(value: Any) -> Mapping[Any, Any] | None:
    """What a value consists of, by name; None if it is not looked into."""
    if isinstance(value, Mapping):
        return value
    if isinstance(value, Set):
        return dict.fromkeys(value, True)
    if isinstance(value, list | tuple | deque):
        return dict(enumerate(value))
    if not type(value).__module__.startswith("mtcd."):
        return None
    slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
    return {name: getattr(value, name) for name in slots if hasattr(value, name)} | getattr(
        value, "__dict__", {}
    )


def _cached(value: Any) -> Set[str]:
    """The names of attributes that are computed when they are first asked for."""
    if not type(value).__module__.startswith("mtcd."):
        return frozenset()
    kinds = (vars(kind) for kind in type(value).__mro__)
    return frozenset(
        name
        for kind in kinds
        for name, made in kind.items()
        if type(made).__name__ == "cached_property"
    )


def _is_tensor(value: Any) -> bool:
    """Whether this is a tensor of PyTorch, which need not be installed."""
    return hasattr(value, "detach") and hasattr(value, "numpy")


def _same_numbers(one: Any, other: Any) -> bool:
    if type(one) is not type(other) or one.shape != other.shape or one.dtype != other.dtype:
        return False
    if _is_tensor(one):
        one, other = one.detach().numpy(), other.detach().numpy()
    return bool(one.tobytes() == other.tobytes())
