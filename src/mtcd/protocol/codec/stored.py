"""What the state of a party may hold: one list, for all that write states or read them.

Beside plain values, arrays, lists and dicts these are tuples, sets, and objects of the classes that
are declared as ``stored``, as all payloads are. Each is written as a name and its parts, and made
anew from them. Journals (``records.py``) and checkpoints, also those of Ray
(``mtcd.protocol.snapshots``), differ only in how they spell a name and where they put arrays; so a
new class, or a new attribute of one, is declared in one place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, is_dataclass
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

Class = TypeVar("Class", bound=type)

PLAIN = frozenset({type(None), bool, int, float, str})
"""Values that every state is written with as they are."""

STORED: dict[str, type] = {}
"""The classes that states may hold, by name."""

SEQUENCES: dict[str, Callable[[Any], Any]] = {
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
}


class Description(NamedTuple):
    """How objects of a class are written.

    Parameters
    ----------
    name
        The name of the class.
    parts
        Given an object, its parts, in the order in which it is made of them.
    """

    name: str
    parts: Callable[[Any], Iterable[Any]]


# Sets sorted: equal states are then equal bytes, whatever the order in which sets were filled.
DESCRIBED: dict[type, Description] = {
    tuple: Description("tuple", iter),
    set: Description("set", sorted),
    frozenset: Description("frozenset", sorted),
}
"""By class. Those that are stored are added on use, as ``described`` finds them."""


def stored(kind: Class) -> Class:
    """Declare a class that states may hold."""
    # By the bare name: modules move from version to version, and old states must stay readable.
    taken = STORED.setdefault(kind.__name__, kind)
    if taken is not kind:
        raise TypeError(f"two classes that are stored have the name {kind.__name__}")
    return kind


def described(kind: type) -> Description | None:
    """How objects of this class are written; None if no state may hold them."""
    # Looked up at every commit, for every object: found once for each class.
    known = DESCRIBED.get(kind)
    if known is None and STORED.get(kind.__name__) is kind:
        known = DESCRIBED[kind] = Description(kind.__name__, _parts_of(kind))
    return known


def is_described(name: str) -> bool:
    """Whether ``made`` knows this name."""
    return name in SEQUENCES or name in STORED


def made(name: str, parts: Sequence[Any]) -> Any:
    """The object of this name, made of its parts.

    >>> made("tuple", [1, 2])
    (1, 2)
    """
    if name in SEQUENCES:
        return SEQUENCES[name](parts)
    return STORED[name](*parts)


def _parts_of(kind: type) -> Callable[[Any], Any]:
    if not is_dataclass(kind):
        return tuple
    names = [field.name for field in fields(kind)]
    if len(names) > 1:  # only quicker, and of one name it would get no tuple
        return attrgetter(*names)
    return lambda value: [getattr(value, name) for name in names]
