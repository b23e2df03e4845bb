"""The fields of payloads: each field type writes a value as bytes, reads and checks it, and knows
its largest size."""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from copy import copy
from operator import attrgetter
from typing import Any, ClassVar, Self

import numpy as np

from mtcd.protocol.codec.limits import MOST, Bounds
from mtcd.protocol.codec.reading import (
    REAL,
    REAL_CODE,
    WORD,
    Chunks,
    Reader,
    Word,
    padded,
    put_numbers,
    put_octets,
    put_wholes,
)

Limit = int | str | Callable[[Bounds], int]
"""A number, the name of an attribute of ``Bounds``, or a function of them."""


def limit_of(feature: str) -> Callable[[Bounds], int]:
    """The limit that a feature has given its field, under this name; 0 in a run without it."""
    return lambda bounds: bounds.limits.get(feature, 0)


def limit(given: Limit) -> Callable[[Bounds], int]:
    """The limit as a function."""
    if isinstance(given, str):
        return attrgetter(given)
    if callable(given):
        return given
    return lambda bounds: given


class Field(ABC):
    """The type of one attribute of a payload. ``name`` is set when the payload class is
    declared."""

    name = ""
    code: ClassVar[str | None] = None
    """How ``struct`` packs a value, if it is a single word in every run: adjacent words are written
    together."""

    def named(self, name: str) -> Self:
        """The same field for the attribute of this name."""
        # A copy: one field object serves every class that declares it, each under its own name.
        field = copy(self)
        field.name = name
        return field

    @abstractmethod
    def write(self, value: Any, chunks: Chunks) -> None:
        """Append the bytes of the value."""

    def read(self, frame: Reader) -> Any:
        """Read a value and check it against the bounds. Not called for fields that are a single
        ``word``."""
        raise NotImplementedError

    def word(self, bounds: Bounds) -> Word | None:
        """The word, if the field always is a single word in this run: adjacent words are read
        together."""
        return None

    def most(self, bounds: Bounds) -> int:
        """The largest number of bytes that the field can have."""
        return 8


class Whole(Field):
    """A whole number from ``low`` to ``high``."""

    code = "q"

    def __init__(self, high: Limit = MOST - 1, low: Limit = 0) -> None:
        self.low, self.high = limit(low), limit(high)

    def write(self, value: Any, chunks: Chunks) -> None:
        chunks.append(WORD.pack(value))

    def word(self, bounds: Bounds) -> Word:
        return Word(self.name, self.low(bounds), self.high(bounds) + 1)


class Flag(Whole):
    """A truth value, in a word of 0 or 1."""

    def __init__(self) -> None:
        super().__init__(1)

    def word(self, bounds: Bounds) -> Word:
        return Word(self.name, 0, 2, make=bool)


class Real(Field):
    """A finite number in double precision."""

    code = REAL_CODE

    def write(self, value: Any, chunks: Chunks) -> None:
        # Refused at the sender, where the cause is; the receiver would refuse it too.
        if not math.isfinite(value):
            put_numbers(self.name, np.array([value]), chunks)  # which refuses it
        chunks.append(REAL.pack(value))

    def word(self, bounds: Bounds) -> Word:
        # not below the largest number, as that is finite; NaN is in no range
        return Word(self.name, -sys.float_info.max, math.inf, "d")


class Row(Field):
    """At most ``high`` finite numbers, converted by ``make``."""

    def __init__(self, high: Limit, make: Callable[[Any], Any] = np.asarray) -> None:
        self.high, self.make = limit(high), make

    def write(self, value: Any, chunks: Chunks) -> None:
        chunks.append(WORD.pack(len(value)))
        if len(value):
            put_numbers(self.name, np.asarray(value, np.float64), chunks)

    def read(self, frame: Reader) -> Any:
        # Never more than the limit is read, whatever the count in front says.
        count = frame.whole(self.name, 0, self.high(frame.bounds) + 1)
        return self.make(frame.numbers(self.name, count))

    def word(self, bounds: Bounds) -> Word | None:
        if self.high(bounds):
            return None
        return _none(self.name, lambda: self.make(np.empty(0)))

    def most(self, bounds: Bounds) -> int:
        return 8 + 8 * self.high(bounds)


class Octets(Field):
    """A block of at most ``high`` bytes, an array of uint8: what it contains, its reader checks."""

    def __init__(self, high: Limit) -> None:
        self.high = limit(high)

    def write(self, value: Any, chunks: Chunks) -> None:
        put_octets(value, chunks)

    def read(self, frame: Reader) -> Any:
        return frame.octets(self.name, self.high(frame.bounds))

    def most(self, bounds: Bounds) -> int:
        return 8 + padded(self.high(bounds))


class ClientSet(Field):
    """A set of at most ``high`` clients."""

    def __init__(self, make: Callable[[Iterable[int]], Any], high: Limit) -> None:
        self.make, self.high = make, limit(high)

    def write(self, value: Any, chunks: Chunks) -> None:
        put_wholes(value, chunks)

    def read(self, frame: Reader) -> Any:
        count = frame.whole(self.name, 0, self.high(frame.bounds) + 1)
        return self.make(frame.wholes(self.name, count, frame.bounds.clients))

    def word(self, bounds: Bounds) -> Word | None:
        if self.high(bounds):
            return None
        return _none(self.name, lambda: self.make(()))

    def most(self, bounds: Bounds) -> int:
        return 8 + 8 * self.high(bounds)


class Optional(Field):
    """A field that may be None, and must be None unless it is ``allowed``."""

    def __init__(self, field: Field, allowed: Callable[[Bounds], bool]) -> None:
        self.field, self.allowed = field, allowed

    def named(self, name: str) -> Self:
        field = super().named(name)
        field.field = self.field.named(name)
        return field

    def write(self, value: Any, chunks: Chunks) -> None:
        chunks.append(WORD.pack(value is not None))
        if value is not None:
            self.field.write(value, chunks)

    def read(self, frame: Reader) -> Any:
        # A run that does not allow it has only one value of this word: 0.
        there = frame.whole(self.name, 0, 1 + self.allowed(frame.bounds))
        if not there:
            return None
        return self.field.read(frame)

    def word(self, bounds: Bounds) -> Word | None:
        if self.allowed(bounds):
            return None
        return _none(self.name, lambda: None)

    def most(self, bounds: Bounds) -> int:
        if not self.allowed(bounds):
            return 8
        return 8 + self.field.most(bounds)


def _none(name: str, make: Callable[[], Any]) -> Word:
    """The word for the number of elements, where there can be none."""
    return Word(name, 0, 1, make=lambda count: make())
