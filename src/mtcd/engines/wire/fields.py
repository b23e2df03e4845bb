"""The fields of payloads: each knows how it is written, how it is read and checked, and how large it can be."""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from operator import attrgetter
from typing import Any

import numpy as np

from mtcd.engines.wire.expected import F8, MOST, Expected, Shape
from mtcd.engines.wire.reading import REAL, WORD, Chunks, Reader, Word, padded, put_array, put_numbers, put_wholes
from mtcd.extras import find

Bound = int | str | Callable[[Expected], int]
"""A number, or where ``Expected`` has it."""


def bound(given: Bound) -> Callable[[Expected], int]:
    """As a function."""
    if isinstance(given, str):
        return attrgetter(given)
    return given if callable(given) else lambda expected: given


class Field(ABC):
    """One attribute of a payload."""

    def __init__(self, name: str) -> None:
        self.name = name

    @abstractmethod
    def write(self, value: Any, chunks: Chunks) -> None:
        """Append its bytes."""

    def read(self, frame: Reader) -> Any:
        """The value, which is as the plan says it must be; asked for where it is not one ``word``."""
        raise NotImplementedError

    def word(self, expected: Expected) -> Word | None:
        """If it always is one word in this run: which. It is then read with those beside it."""
        return None

    def most(self, expected: Expected) -> int:
        """The most bytes that it can have."""
        return 8


class Whole(Field):
    """A whole number from ``low`` to ``high``."""

    def __init__(self, name: str, high: Bound = MOST - 1, low: Bound = 0) -> None:
        super().__init__(name)
        self.low, self.high = bound(low), bound(high)

    def write(self, value: Any, chunks: Chunks) -> None:
        chunks.append(WORD.pack(value))

    def word(self, expected: Expected) -> Word:
        return Word(self.name, self.low(expected), self.high(expected) + 1)


class Flag(Whole):
    """Yes or no."""

    def __init__(self, name: str) -> None:
        super().__init__(name, 1)

    def word(self, expected: Expected) -> Word:
        return Word(self.name, 0, 2, make=bool)


class Real(Field):
    """A finite number."""

    def write(self, value: Any, chunks: Chunks) -> None:
        if not math.isfinite(value):
            put_numbers(self.name, np.array([value]), chunks)  # which refuses it
        chunks.append(REAL.pack(value))

    def word(self, expected: Expected) -> Word:
        return Word(self.name, -sys.float_info.max, math.inf, "d")


class Row(Field):
    """A few reals, at most ``high``; ``make`` is what becomes of them."""

    def __init__(self, name: str, high: Bound, make: Callable[[Any], Any] = np.asarray) -> None:
        super().__init__(name)
        self.high, self.make = bound(high), make

    def write(self, value: Any, chunks: Chunks) -> None:
        chunks.append(WORD.pack(len(value)))
        if len(value):
            put_numbers(self.name, np.asarray(value, np.float64), chunks)

    def read(self, frame: Reader) -> Any:
        count = frame.whole(self.name, 0, self.high(frame.expected) + 1)
        return self.make(frame.numbers(self.name, count))

    def word(self, expected: Expected) -> Word | None:
        return None if self.high(expected) else _none(self.name, lambda: self.make(np.empty(0)))

    def most(self, expected: Expected) -> int:
        return 8 + 8 * self.high(expected)


class Clients(Field):
    """A set of clients, at most ``high``."""

    def __init__(self, name: str, make: Callable[[Iterable[int]], Any], high: Bound = "most_visited") -> None:
        super().__init__(name)
        self.make, self.high = make, bound(high)

    def write(self, value: Any, chunks: Chunks) -> None:
        put_wholes(value, chunks)

    def read(self, frame: Reader) -> Any:
        count = frame.whole(self.name, 0, self.high(frame.expected) + 1)
        return self.make(frame.wholes(self.name, count, frame.expected.clients))

    def word(self, expected: Expected) -> Word | None:
        return None if self.high(expected) else _none(self.name, lambda: self.make(()))

    def most(self, expected: Expected) -> int:
        return 8 + 8 * self.high(expected)


class Past(Field):
    """Weights of all tokens, by iteration."""

    def write(self, value: Mapping[int, Any], chunks: Chunks) -> None:
        put_wholes(value, chunks)
        for t in sorted(value):
            put_numbers(self.name, value[t], chunks)

    def read(self, frame: Reader) -> dict[int, Any]:
        expected = frame.expected
        count = frame.whole(self.name, 0, expected.most_past + 1)
        times = frame.wholes(self.name, count, expected.iterations)
        return {t: frame.numbers(self.name, expected.tokens) for t in times}

    def word(self, expected: Expected) -> Word | None:
        return None if expected.most_past else _none(self.name, dict)

    def most(self, expected: Expected) -> int:
        return 8 + 8 * expected.most_past * (1 + expected.tokens)


class Aggregate(Field):
    """An aggregate, or what has the same type and shape; a tensor where the network is split."""

    def shape(self, frame: Reader) -> Shape:
        """What it must have."""
        return frame.expected.shape

    def write(self, value: Any, chunks: Chunks) -> None:
        put_array(self.name, value, chunks)

    def read(self, frame: Reader) -> Any:
        return arrived(frame.array(self.name, self.shape(frame), frame.expected.dtype), frame.expected)

    def most(self, expected: Expected) -> int:
        return array_bytes(expected.shape, expected.dtype.itemsize)


class Representation(Aggregate):
    """h_k of the sender: never larger than the aggregate."""

    def shape(self, frame: Reader) -> Shape:
        return frame.expected.representation(frame.sender)


class Parameters(Field):
    """Those of a client, of whom others only know how many there can be at most."""

    def write(self, value: Any, chunks: Chunks) -> None:
        put_array(self.name, value, chunks)

    def read(self, frame: Reader) -> Any:
        return frame.array_up_to(self.name, frame.expected.parameters, 2, F8)

    def most(self, expected: Expected) -> int:
        return array_bytes((1, expected.parameters), 8)


class Theta0(Field):
    """The fusion module, array by array."""

    def write(self, value: Sequence[Any], chunks: Chunks) -> None:
        chunks.append(WORD.pack(len(value)))
        for one in value:
            put_array(self.name, one, chunks)

    def read(self, frame: Reader) -> list[Any]:
        expected = frame.expected
        frame.whole(self.name, len(expected.theta_0), len(expected.theta_0) + 1)
        return [arrived(frame.array(self.name, shape, expected.dtype), expected) for shape in expected.theta_0]

    def most(self, expected: Expected) -> int:
        return 8 + sum(array_bytes(shape, expected.dtype.itemsize) for shape in expected.theta_0)


class Optional(Field):
    """A field that may be None, and must be unless it is ``allowed``."""

    def __init__(self, field: Field, allowed: Callable[[Expected], bool]) -> None:
        super().__init__(field.name)
        self.field, self.allowed = field, allowed

    def write(self, value: Any, chunks: Chunks) -> None:
        chunks.append(WORD.pack(value is not None))
        if value is not None:
            self.field.write(value, chunks)

    def read(self, frame: Reader) -> Any:
        there = frame.whole(self.name, 0, 1 + self.allowed(frame.expected))
        return self.field.read(frame) if there else None

    def word(self, expected: Expected) -> Word | None:
        return None if self.allowed(expected) else _none(self.name, lambda: None)

    def most(self, expected: Expected) -> int:
        return 8 + (self.field.most(expected) if self.allowed(expected) else 0)


class Usually(Field):
    """A field that mostly has one value, whose bytes are known: these are written and recognised as a whole."""

    def __init__(self, field: Field, make: Callable[[], Any], is_usual: Callable[[Any], bool]) -> None:
        super().__init__(field.name)
        self.field, self.make, self.is_usual = field, make, is_usual
        chunks: Chunks = []
        field.write(make(), chunks)
        self._bytes = b"".join(chunks)

    def write(self, value: Any, chunks: Chunks) -> None:
        if self.is_usual(value):
            chunks.append(self._bytes)
        else:
            self.field.write(value, chunks)

    def read(self, frame: Reader) -> Any:
        end = frame.at + len(self._bytes)
        if frame.view[frame.at : end] == self._bytes and end <= frame.end:
            frame.at = end
            return self.make()
        return self.field.read(frame)

    def most(self, expected: Expected) -> int:
        return self.field.most(expected)


def _none(name: str, make: Callable[[], Any]) -> Word:
    """The word that says how many there are, where there can be none."""
    return Word(name, 0, 1, make=lambda count: make())


def array_bytes(shape: Shape, itemsize: int) -> int:
    """Of an array with what stands before it."""
    return 8 * (2 + len(shape)) + padded(itemsize * math.prod(shape))


def arrived(numbers: Any, expected: Expected) -> Any:
    """The array; for a split network the tensor, on the device where it is used."""
    if expected.split is None:
        return numbers
    return _torch().from_numpy(numbers).to(expected.device)


@cache
def _torch() -> Any:
    return find("torch")
