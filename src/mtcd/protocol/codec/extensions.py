"""Typed slots: what features carry on a token, or on the end of a training.

A feature declares an :class:`Extension` in its own folder, so the token names no feature. A run
agrees on its slots (``Bounds.slots``), as it does on everything else that arrives: a slot that was
not agreed on is refused, and so is a token without one that all tokens of the run carry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from mtcd.core.errors import WireError
from mtcd.protocol.codec.fields import Field
from mtcd.protocol.codec.limits import Bounds
from mtcd.protocol.codec.reading import WORD, Chunks, Reader, Word

MOST_EXTENSIONS = 62  # a bit each, in one word


@dataclass(frozen=True, eq=False)
class Extension:
    """A typed slot. It is declared once, when the module of its feature is imported.

    Parameters
    ----------
    number : int
        Its bit in the word that says which slots follow. It must never have been that of another.
    name : str
        Its key in ``Token.slots``, and what errors call it.
    field : Field
        How a value is written, read and checked.
    floats : callable, optional
        The numbers in a value, which the ledger counts; none unless given.
    wide : bool, default True
        Whether these travel in double precision under every transport.
    always : bool, default True
        Whether every token of a run that has agreed on the slot carries it.
    check : callable, optional
        Given the payload, the value and the bounds: raises a ``WireError`` if the value does not
        fit the rest of the payload.
    extrapolates : callable, optional
        Whether a token with this value has an aggregate that no clients have yet, so that its
        objective says nothing on divergence.
    former : callable, optional
        The value, from the attributes that a token had up to protocol 8, or None: for checkpoints.

    Examples
    --------
    >>> from mtcd.protocol.codec.fields import Real
    >>> Extension(61, "temperature", Real(), floats=lambda value: 1).name
    'temperature'
    """

    number: int
    name: str
    field: Field
    floats: Callable[[Any], int] = lambda value: 0
    wide: bool = True
    always: bool = True
    check: Callable[[Any, Any, Bounds], None] = lambda payload, value, bounds: None
    extrapolates: Callable[[Any], bool] = lambda value: False
    former: Callable[[Mapping[str, Any]], Any] = lambda attributes: None


EXTENSIONS: dict[str, Extension] = {}
"""All that are declared, by name."""


def declare(extension: Extension) -> Extension:
    """Declare an extension; returns it with its name in its field, for errors."""
    # A number that was ever used stays taken: journals and checkpoints of old runs hold it.
    for other in EXTENSIONS.values():
        if extension.number == other.number or extension.name == other.name:
            raise TypeError(
                f"the slot {extension.name!r}, number {extension.number}, is taken by "
                f"{other.name!r}, number {other.number}"
            )
    # One bit below the sign of a word, and one spare.
    if not 0 <= extension.number < MOST_EXTENSIONS:
        raise TypeError(f"the slot {extension.name!r} needs a number below {MOST_EXTENSIONS}")

    named = replace(extension, field=extension.field.named(extension.name))
    EXTENSIONS[extension.name] = named
    return named


def numbers_in(slots: Mapping[str, Any], wide: bool = False) -> int:
    """The numbers in these slots; with ``wide``, those in double precision under every
    transport."""
    count = 0
    for name, value in slots.items():
        extension = EXTENSIONS[name]
        if extension.wide or not wide:
            count += extension.floats(value)
    return count


class AgreedSlots(NamedTuple):
    """The slots of a run."""

    extensions: tuple[Extension, ...]
    """In the order of their numbers."""
    allowed: int
    """Their bits."""
    required: int
    """The bits of those that every token carries."""

    @staticmethod
    def of(names: Iterable[str]) -> AgreedSlots:
        """The slots of these names."""
        # By number, in whatever order they were agreed on: writer and reader walk them alike.
        found = sorted((EXTENSIONS[name] for name in names), key=_number)
        required = [extension for extension in found if extension.always]
        return AgreedSlots(tuple(found), _bits(found), _bits(required))


class Slots(Field):
    """A word that says which slots follow, then each by the field that its feature declares.

    ``whole``: whether slots that every token carries must be there. Where nothing is agreed on, the
    word is read together with its neighbours, so that a plain token pays for eight bytes only.
    """

    def __init__(self, whole: bool = True) -> None:
        self.whole = whole

    def write(self, value: Mapping[str, Any], chunks: Chunks) -> None:
        if not value:
            chunks.append(NOTHING)
            return

        unknown = [name for name in value if name not in EXTENSIONS]
        if unknown:
            raise WireError(self.name, f"have one that nobody has declared: {unknown[0]!r}")
        # in the order of numbers, so that there is one way to write the same slots
        carried = AgreedSlots.of(value)
        chunks.append(WORD.pack(carried.allowed))
        for extension in carried.extensions:
            extension.field.write(value[extension.name], chunks)

    def read(self, frame: Reader) -> dict[str, Any]:
        agreed = self._agreed(frame.bounds)
        there = frame.whole(self.name, 0, 1 << MOST_EXTENSIONS)
        # Bits, not names: an unknown slot has no length, so nothing behind it could be read.
        if there & ~agreed.allowed:
            raise WireError(self.name, "have one that this run has not agreed on")
        if self.whole and agreed.required & ~there:
            raise WireError(self.name, "lack one that every token of this run carries")
        found = {}
        for extension in agreed.extensions:
            if there >> extension.number & 1:
                found[extension.name] = extension.field.read(frame)
        return found

    def word(self, bounds: Bounds) -> Word | None:
        if bounds.slots:
            return None
        # nothing is agreed on: the word must be 0, and is read together with its neighbours
        return Word(self.name, 0, 1, make=lambda _: {})

    def most(self, bounds: Bounds) -> int:
        return 8 + sum(one.field.most(bounds) for one in self._agreed(bounds).extensions)

    def _agreed(self, bounds: Bounds) -> AgreedSlots:
        # Found once per run: this stands in the path of every hop.
        found: AgreedSlots | None = bounds.steps.get(AgreedSlots)
        if found is None:
            found = bounds.steps[AgreedSlots] = AgreedSlots.of(bounds.slots)
        return found


NOTHING = WORD.pack(0)


def extrapolates(slots: Mapping[str, Any]) -> bool:
    """Whether the aggregate of a token with these slots is one that no clients have yet."""
    return any(EXTENSIONS[name].extrapolates(value) for name, value in slots.items())


def check_slots(payload: Any, bounds: Bounds) -> None:
    """Check each slot of a payload against the rest of it."""
    for name, value in payload.slots.items():
        EXTENSIONS[name].check(payload, value, bounds)


def _number(extension: Extension) -> int:
    return extension.number


def _bits(extensions: Iterable[Extension]) -> int:
    return sum(1 << extension.number for extension in extensions)
