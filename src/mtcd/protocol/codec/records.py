"""Encoding of the state of a party: numbers, texts, arrays, lists, dicts and the payloads of the
protocol.

No pickle: only the classes listed here come back, and each from its fields. What is there twice, an
array or an envelope, is written once: so it comes back as one.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any, NamedTuple

import msgpack
import numpy as np
from numpy.typing import NDArray

from mtcd.core.arrays import is_tensor
from mtcd.core.errors import MtcdError
from mtcd.protocol.codec.envelopes import Envelope
from mtcd.protocol.codec.stored import DESCRIBED, described, is_described, made, stored
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

    __slots__ = ("_arrays", "_known", "_packer")

    def __init__(self) -> None:
        # Strict, so that subclasses (named tuples, bools of NumPy) come to ``_told`` and keep their
        # class.
        self._packer = msgpack.Packer(default=self._told, strict_types=True)

    def parts(self, value: Any) -> Parts:
        """The value in pieces, so that large arrays are not copied."""
        self._arrays: list[Numbers] = []
        self._known: dict[int, int] = {}
        """The numbers of what is written once, by identity."""
        text = self._packer.pack(value)

        # Large ones apart: they go to the disk from where they lie, without a copy.
        small: list[Any] = []
        large: list[Numbers] = []
        for array in self._arrays:
            # as is_large, without a call for each array of every commit
            behind = array.nbytes >= LARGE and array.nbytes % 8 == 0
            if behind:
                large.append(array)
            else:
                small.append(array)
        data = b"".join(small)
        return Parts(SIZES.pack(len(text), len(data)) + text + data, large)

    def _told(self, value: Any) -> dict[None, list[Any]]:
        """An object that MessagePack does not know, as its name and its parts."""
        known = self._known
        number = known.get(id(value))
        if number is not None:
            return {TAG: ["again", number]}

        kind = type(value)
        if kind is np.ndarray and value.dtype in DTYPES:
            number = known[id(value)] = len(known)
            self._arrays.append(np.ascontiguousarray(value))
            return {TAG: ["array", number, DTYPES[value.dtype], *value.shape]}
        if kind is Envelope:
            number = known[id(value)] = len(known)
            return {TAG: ["Envelope", number, *value]}

        found = DESCRIBED.get(kind) or described(kind)
        if found is None:
            return {TAG: self._foreign(value)}
        return {TAG: [found.name, *found.parts(value)]}

    def _foreign(self, value: Any) -> list[Any]:
        """A number of NumPy or a tensor."""
        if isinstance(value, np.generic):
            return ["plain", value.item()]
        if is_tensor(value):
            kind, shape, data = tensor_bytes(value)
            number = self._known[id(value)] = len(self._known)
            self._arrays.append(data)
            return ["tensor", number, kind, data.nbytes, *shape]
        if isinstance(value, np.ndarray):
            raise MtcdError(f"An array of {value.dtype.str} cannot be kept.")
        raise MtcdError(f"A {type(value).__name__} cannot be kept.")


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


class _Reading:
    """Rebuilds values in the order in which they were written, so that the offsets of arrays are
    known."""

    def __init__(self, data: bytes, small: int, large: int) -> None:
        self.data, self.small, self.large = data, small, large
        self.known: dict[int, Any] = {}

    def value(self, stored: dict[Any, Any]) -> Any:
        """The value that a dict encodes; the dict itself if it has no tag."""
        # The text of a journal is trusted as far as its checksum goes, but no class is made that is
        # not declared: there is no way from a record to other code.
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
            case [str(name), *parts] if is_described(name):
                return made(name, parts)
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


TENSOR_DTYPES = (
    "float32",
    "float64",
    "float16",
    "bfloat16",
    "int64",
    "int32",
    "int16",
    "int8",
    "uint8",
    "bool",
)


def tensor_bytes(value: Any) -> tuple[str, list[int], NDArray[np.uint8]]:
    """Its kind of numbers, its shape, and its bytes in the order of the places, however these lie
    in memory."""
    import torch

    dtype = str(value.dtype).removeprefix("torch.")
    if dtype not in TENSOR_DTYPES:
        raise MtcdError(f"A tensor of {dtype} cannot be kept.")
    # In the order of the places: a transposed tensor lies otherwise, and comes back plain.
    flat = value.detach().cpu().contiguous().reshape(-1)
    bytes_of: NDArray[np.uint8] = flat.view(torch.uint8).numpy()
    return dtype, list(value.shape), bytes_of


def tensor_of(dtype: str, shape: Sequence[int], data: bytes | memoryview) -> Any:
    """Rebuild a tensor, in its own memory."""
    import torch

    if dtype not in TENSOR_DTYPES:
        raise MtcdError(
            f"The journal holds a tensor of {dtype}, which is unknown: it is of another version."
        )
    kind = getattr(torch, dtype)
    if not data:
        return torch.empty(tuple(shape), dtype=kind)
    # a copy, as sums may be rounded otherwise where numbers lie as they lie in the bytes
    return torch.frombuffer(bytearray(data), dtype=kind).reshape(tuple(shape)).clone()
