"""Encoding of the state of a party: numbers, texts, arrays, lists, dicts and the payloads of the
protocol.

No pickle: only the classes listed here come back, and each from its fields. What is there twice, an
array or an envelope, is written once: so it comes back as one.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any, NamedTuple, cast

import msgpack
import numpy as np
from numpy.typing import NDArray

from mtcd.core.errors import MtcdError
from mtcd.protocol.codec.envelopes import Envelope
from mtcd.protocol.codec.payloads import SEQUENCES, STORED, parts_of, stored
from mtcd.protocol.codec.record_tensors import tensor_bytes, tensor_of
from mtcd.protocol.codec.tensors import is_tensor
from mtcd.protocol.ledger.ledger import Ledger

stored(Ledger)
DTYPES = {np.dtype(name): name for name in ("<f8", "<f4", "<i8", "<i4", "|u1")}
LARGE = 4096
"""Bytes from which an array stands behind all others, and has a quicker checksum in journals."""

BYTE = np.dtype(np.uint8)
SIZES = Struct("<QQ")  # of the text, and of all small arrays
TAG = None
"""The only key of a map that stands for something that MessagePack does not know; no dict that is
kept has it."""
Numbers = NDArray[Any]


class Parts(NamedTuple):
    """A record in pieces: text with small arrays, then large ones, which are not copied."""

    head: bytes
    large: list[Numbers]


class StateWriter:
    """Turns values into bytes: MessagePack with the shape of the whole, then the bytes of the
    arrays.

    This runs at every commit, so it does not waste calls.
    """

    __slots__ = ("_known", "_large", "_packer", "_small")

    def __init__(self) -> None:
        # Strict, so that subclasses (named tuples, bools of NumPy) come to ``_told`` and keep their
        # class.
        self._packer = msgpack.Packer(default=self._told, strict_types=True)

    def parts(self, value: Any) -> Parts:
        """The value in pieces, so that large arrays are not copied."""
        self._small: list[Numbers] = []
        self._large: list[Numbers] = []
        # By identity, not by value: two arrays with the same numbers may be changed apart later.
        self._known: dict[int, int] = {}
        """The numbers of what is written once, by identity."""
        text = self._packer.pack(value)
        small = b"".join(cast(list[Any], self._small))
        return Parts(SIZES.pack(len(text), len(small)) + text + small, self._large)

    def _told(self, value: Any) -> dict[None, list[Any]]:
        """Encode an object that MessagePack does not know as its name and its parts."""
        known = self._known
        number = known.get(id(value))
        if number is not None:
            return {TAG: ["again", number]}

        kind = type(value)
        if kind is np.ndarray:
            name = DTYPES.get(value.dtype)
            if name is None:
                raise MtcdError(f"An array of {value.dtype.str} cannot be kept.")
            # as is_large, without a call for each array of every commit
            behind = value.nbytes >= LARGE and value.nbytes % 8 == 0
            arrays = self._large if behind else self._small
            # The order of rows is kept in the shape; what lies in columns is copied to rows.
            arrays.append(np.ascontiguousarray(value))
            number = known[id(value)] = len(known)
            return {TAG: ["array", number, name, *value.shape]}

        found = PARTS_OF.get(kind) or _learn(kind)
        # An envelope is in several queues at once, and must come back as one.
        if kind is Envelope:
            number = known[id(value)] = len(known)
            return {TAG: ["Envelope", number, *value]}
        if found is not None:
            tag, parts = found
            return {TAG: [tag, *parts(value)]}
        if isinstance(value, np.generic):
            return {TAG: ["plain", value.item()]}
        if is_tensor(value):
            return {TAG: self._tensor(value)}
        raise MtcdError(f"A {kind.__name__} cannot be kept.")

    def _tensor(self, value: Any) -> list[Any]:
        kind, shape, data = tensor_bytes(value)
        arrays = self._small
        if is_large(data.nbytes):
            arrays = self._large
        arrays.append(data)
        number = self._known[id(value)] = len(self._known)
        return ["tensor", number, kind, data.nbytes, *shape]


def pack(value: Any) -> bytes:
    """A value as bytes."""
    head, large = StateWriter().parts(value)
    chunks: list[Any] = [head, *large]
    return b"".join(chunks)


def unpack(data: bytes) -> Any:
    """Decode what ``pack`` encoded."""
    text, small = SIZES.unpack_from(data)
    start = SIZES.size + text
    reading = _Reading(data, start, start + small)
    return msgpack.unpackb(
        data[SIZES.size : start], object_hook=reading.value, strict_map_key=False
    )


def is_large(size: int) -> bool:
    """Whether an array of so many bytes stands behind the others."""
    return size >= LARGE and size % 8 == 0


PARTS_OF: dict[type, tuple[str, Callable[[Any], Any]]] = {
    tuple: ("tuple", iter),
    set: ("set", sorted),
    frozenset: ("frozenset", sorted),
}
"""By class: its name, and a function that returns its parts. Classes that are declared as stored
are added on use."""


def _learn(kind: type) -> tuple[str, Callable[[Any], Any]] | None:
    # The class itself, not one of the same name that somebody else made.
    if STORED.get(kind.__name__) is not kind:
        return None
    known = PARTS_OF[kind] = kind.__name__, parts_of(kind)
    return known


class _Reading:
    """Rebuilds values in the order in which they were written, so that the offsets of arrays are
    known."""

    def __init__(self, data: bytes, small: int, large: int) -> None:
        self.data, self.small, self.large = data, small, large
        self.known: dict[int, Any] = {}

    def value(self, stored: dict[Any, Any]) -> Any:
        """The value that a dict encodes; the dict itself if it has no tag."""
        match stored.get(TAG):
            case None:
                return stored
            case ["array", int(number), dtype, *shape] if dtype in DTYPES.values():
                self.known[number] = self._array(np.dtype(dtype), shape)
                return self.known[number]
            case ["tensor", int(number), str(kind), int(length), *shape]:
                self.known[number] = tensor_of(kind, shape, self._array(BYTE, [length]).data)
                return self.known[number]
            case ["Envelope", int(number), *parts]:
                self.known[number] = Envelope(*parts)
                return self.known[number]
            case ["again", int(number)]:
                return self.known[number]
            case ["plain", value]:
                return value
            case [name, *parts] if name in SEQUENCES:
                return SEQUENCES[name](parts)
            case [name, *parts] if name in STORED:
                return STORED[name](*parts)
        raise MtcdError("The journal has an unknown record: use the version of mtcd that wrote it.")

    def _array(self, dtype: np.dtype[Any], shape: list[int]) -> Numbers:
        count = int(np.prod(shape, dtype=np.int64))
        # small arrays stand before the large ones, which can be aligned to words
        at = self.small
        if is_large(count * dtype.itemsize):
            at = self.large
        # A copy: the state is written to, and the bytes of a journal are shared.
        values = np.frombuffer(self.data, dtype, count, at).reshape(shape).copy()
        if is_large(values.nbytes):
            self.large += values.nbytes
        else:
            self.small += values.nbytes
        return values
