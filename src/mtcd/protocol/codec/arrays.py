"""Fields that are arrays: aggregates, representations, parameters. Where a model computes with
tensors, they arrive as such."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

from mtcd.core.optional import find
from mtcd.protocol.codec.fields import Field
from mtcd.protocol.codec.limits import F8, Bounds, Shape
from mtcd.protocol.codec.reading import WORD, Chunks, Reader, padded, put_array


class AggregateField(Field):
    """An aggregate, or an array of the same type and shape."""

    def shape(self, frame: Reader) -> Shape:
        """The shape that the array must have."""
        # The shape is the run's, not the sender's: a frame cannot make its reader take memory.
        return frame.bounds.shape

    def write(self, value: Any, chunks: Chunks) -> None:
        put_array(self.name, value, chunks)

    def read(self, frame: Reader) -> Any:
        return received(frame.array(self.name, self.shape(frame), frame.bounds.dtype), frame.bounds)

    def most(self, bounds: Bounds) -> int:
        return array_bytes(bounds.shape, bounds.dtype.itemsize)


class RepresentationField(AggregateField):
    """h_k of the sender, which is never larger than the aggregate."""

    def shape(self, frame: Reader) -> Shape:
        return frame.bounds.representation(frame.sender)


class ParametersField(Field):
    """The parameters of a client; other parties only know an upper bound of their number."""

    def write(self, value: Any, chunks: Chunks) -> None:
        put_array(self.name, value, chunks)

    def read(self, frame: Reader) -> Any:
        # Two dimensions at most: theta_k is a vector, or one column per class.
        return frame.array_up_to(self.name, frame.bounds.parameters, 2, F8)

    def most(self, bounds: Bounds) -> int:
        return array_bytes((1, bounds.parameters), 8)


class SharedField(Field):
    """The parameters that all parties share, array by array."""

    def write(self, value: Sequence[Any], chunks: Chunks) -> None:
        chunks.append(WORD.pack(len(value)))
        for one in value:
            put_array(self.name, one, chunks)

    def read(self, frame: Reader) -> list[Any]:
        bounds = frame.bounds
        # Exactly as many arrays as the plan says: the loop below must not read into the next field.
        frame.whole(self.name, len(bounds.shared), len(bounds.shared) + 1)
        return [
            received(frame.array(self.name, shape, bounds.dtype), bounds) for shape in bounds.shared
        ]

    def most(self, bounds: Bounds) -> int:
        return 8 + sum(array_bytes(shape, bounds.dtype.itemsize) for shape in bounds.shared)


def array_bytes(shape: Shape, itemsize: int) -> int:
    """The bytes of an array with its description."""
    return 8 * (2 + len(shape)) + padded(itemsize * math.prod(shape))


def received(numbers: Any, bounds: Bounds) -> Any:
    """The array itself, or a tensor on the device on which the model uses it."""
    if bounds.tensors is None:
        # Copied to its device here, once, so that no visit has to ask where an aggregate is.
        return numbers
    return _torch().from_numpy(numbers).to(bounds.device)


@cache
def _torch() -> Any:
    return find("torch")
