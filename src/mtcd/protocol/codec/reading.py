"""Binary encoding in words of eight bytes, with a check at every step of reading.

Whole numbers and reals are one word each. An array is its kind, its dimensions, and its numbers,
filled up with zeros to whole words, so that arrays can be used where they lie.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from operator import attrgetter
from struct import Struct
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mtcd.core.errors import WireError
from mtcd.protocol.codec.limits import F8, Bounds, Shape

WORD, REAL = Struct("<q"), Struct("<d")
REAL_CODE = "d"
NOT_FINITE = "holds numbers that are not finite"
CUT_SHORT = "is cut short"
OUT_OF_RANGE = "is out of range"
I8 = np.dtype("<i8")
LARGE = 2**16  # bytes, from which it pays to look for a quicker way

Numbers = NDArray[Any]
Chunks = list[Any]
"""Bytes and arrays of bytes that are joined once."""


class Word(NamedTuple):
    """A number in one word, from ``low`` on, converted by ``make``."""

    name: str
    low: float
    below: float
    code: str = "q"
    make: Callable[[Any], Any] | None = None


class Words:
    """Adjacent numbers, read at once."""

    __slots__ = ("_struct", "_words")

    def __init__(self, words: Sequence[Word]) -> None:
        self._words = tuple(words)
        self._struct = Struct("<" + "".join(word.code for word in words))

    def read(self, frame: Reader) -> list[Any]:
        """Read and check all words."""
        # One check for all of them; the name in the error is that of the first that is missing.
        there = (frame.end - frame.at) // 8
        if there < len(self._words):
            raise WireError(self._words[max(there, 0)].name, CUT_SHORT)
        found = []
        for value, (name, low, below, code, make) in zip(
            self._struct.unpack_from(frame.view, frame.at), self._words, strict=True
        ):
            # This way round NaN is refused: it is in no range.
            if not low <= value < below:
                raise WireError(name, OUT_OF_RANGE if code == "q" else NOT_FINITE)
            found.append(value if make is None else make(value))
        frame.at += self._struct.size
        return found


class WordsWriter:
    """Adjacent attributes of an object that are a number each, written at once.

    Parameters
    ----------
    words
        For each the attribute, its name for errors, and how ``struct`` packs it.
    """

    __slots__ = ("_reals", "_struct", "_values")

    def __init__(self, words: Sequence[tuple[str, str, str | None]]) -> None:
        self._values = attrgetter(*[attribute for attribute, _, _ in words])
        self._struct = Struct("<" + "".join(code or "" for _, _, code in words))
        self._reals = [
            (place, name) for place, (_, name, code) in enumerate(words) if code == REAL_CODE
        ]

    def write(self, value: Any, chunks: Chunks) -> None:
        """Append the words of this object."""
        numbers = self._values(value)
        for place, name in self._reals:
            if not math.isfinite(numbers[place]):
                raise WireError(name, NOT_FINITE)
        chunks.append(self._struct.pack(*numbers))


class Reader:
    """A frame and the position in it. Every read checks the remaining length first."""

    __slots__ = ("at", "bounds", "end", "sender", "view")

    def __init__(
        self, view: memoryview, at: int, bounds: Bounds, sender: int, end: int | None = None
    ) -> None:
        self.view, self.at, self.end = view, at, len(view) if end is None else end
        self.bounds, self.sender = bounds, sender

    def whole(self, name: str, low: int, below: int) -> int:
        """A whole number, from ``low`` on."""
        # The end of this record, which is not that of the buffer.
        if self.at + 8 > self.end:
            raise WireError(name, CUT_SHORT)
        value: int = WORD.unpack_from(self.view, self.at)[0]
        if not low <= value < below:
            raise WireError(name, OUT_OF_RANGE)
        self.at += 8
        return value

    def wholes(self, name: str, count: int, below: int) -> list[int]:
        """This many whole numbers from 0 on, in strictly ascending order."""
        if not count:
            return []
        found = self._take(name, count, I8)
        # Ascending, so that each set has one encoding, and none has a client twice.
        if not (found[1:] > found[:-1]).all():
            raise WireError(name, "is not in ascending order")
        if not (found[0] >= 0 and found[-1] < below):
            raise WireError(name, OUT_OF_RANGE)
        listed: list[int] = found.tolist()
        return listed

    def array(self, name: str, shape: Shape, dtype: np.dtype[Any]) -> Numbers:
        """An array of exactly this shape and type."""
        # The whole header is compared at once; the cases below only choose the words of the error.
        head = description(dtype.itemsize, shape)
        found = self.view[self.at : min(self.at + len(head), self.end)]
        if found != head:
            if len(found) < len(head):
                raise WireError(name, CUT_SHORT)
            if found[:8] != head[:8]:
                raise WireError(name, "has another type of numbers than the plan says")
            raise WireError(name, "has another shape than the plan says")
        self.at += len(head)
        return self.numbers(name, math.prod(shape), dtype).reshape(shape)

    def array_up_to(self, name: str, most: int, dimensions: int, dtype: np.dtype[Any]) -> Numbers:
        """An array of at most this many numbers and dimensions."""
        self.whole(name, dtype.itemsize, dtype.itemsize + 1)
        count = self.whole(name, 1, dimensions + 1)
        shape = tuple(self.whole(name, 0, most + 1) for _ in range(count))
        # Each dimension may be within its limit, and their product far above it.
        if math.prod(shape) > most:
            raise WireError(name, "has more numbers than the plan allows")
        return self.numbers(name, math.prod(shape), dtype).reshape(shape)

    def octets(self, name: str, most: int) -> NDArray[np.uint8]:
        """A block of bytes, at most this many, with its length in front."""
        count = self.whole(name, 0, most + 1)
        return self._take(name, count, np.dtype(np.uint8)).copy()

    def numbers(self, name: str, count: int, dtype: np.dtype[Any] = F8) -> Numbers:
        """This many finite numbers in a writable array: a view of the frame if possible, a copy
        otherwise."""
        if not count:
            # ``frombuffer`` refuses to read nothing.
            return np.empty(0, dtype)
        found = self._take(name, count, dtype)
        if not is_finite(found):
            raise WireError(name, NOT_FINITE)
        # Frames arrive at an aligned address as a rule; journals and tests may have them elsewhere.
        if found.flags.writeable and found.flags.aligned:
            return found
        return found.copy()  # parties write to what arrives

    def _take(self, name: str, count: int, dtype: np.dtype[Any]) -> Numbers:
        size = count * dtype.itemsize
        end = self.at + size + -size % 8
        if end > self.end:
            raise WireError(name, CUT_SHORT)
        # there is one way to write an array, so that frames can be compared
        if end > self.at + size and any(self.view[self.at + size : end]):
            raise WireError(name, "is followed by something else than zeros")
        found = np.frombuffer(self.view, dtype, count, self.at)
        self.at = end
        return found


def is_finite(numbers: Numbers) -> bool:
    """Whether all numbers are finite. The sum of their squares decides in most cases, in a fraction
    of the time."""
    if numbers.nbytes < LARGE:
        return bool(np.isfinite(numbers).all())
    flat = numbers.reshape(-1)
    # Squares of large numbers overflow to infinity: only then are all of them looked at.
    with np.errstate(all="ignore"):
        return math.isfinite(flat.dot(flat)) or bool(np.isfinite(numbers).all())


def padded(size: int) -> int:
    """The bytes, filled up to whole words."""
    return -(-size // 8) * 8


@lru_cache(maxsize=1024)
def description(itemsize: int, shape: Shape) -> bytes:
    """The header of an array."""
    return b"".join(WORD.pack(word) for word in (itemsize, len(shape), *shape))


def put_numbers(name: str, value: Numbers, chunks: Chunks) -> None:
    """The numbers, without a header."""
    if not value.size:
        return
    if not is_finite(value):
        raise WireError(name, NOT_FINITE)
    chunks.append(
        # As bytes without a copy, where the order of bytes is already the wire's.
        np.ascontiguousarray(value, value.dtype.newbyteorder("<")).reshape(-1).view(np.uint8)
    )
    if value.nbytes % 8:
        chunks.append(bytes(-value.nbytes % 8))


def put_octets(value: NDArray[np.uint8], chunks: Chunks) -> None:
    """The length, and the bytes."""
    chunks.append(WORD.pack(value.size))
    chunks.append(np.ascontiguousarray(value))
    if value.size % 8:
        chunks.append(bytes(-value.size % 8))


def put_wholes(values: Collection[int], chunks: Chunks) -> None:
    """The count, and the sorted numbers."""
    chunks.append(WORD.pack(len(values)))
    if values:
        # Sorted: the reader refuses any other order.
        chunks.append(np.array(sorted(values), I8).view(np.uint8))
