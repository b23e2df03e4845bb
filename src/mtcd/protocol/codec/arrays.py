"""Fields that are arrays: aggregates, representations, parameters. Where a model computes with
tensors, they arrive as such."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from mtcd.core.errors import WireError
from mtcd.core.optional import find
from mtcd.protocol.codec.fields import Field
from mtcd.protocol.codec.limits import F8, Bounds, Shape
from mtcd.protocol.codec.reading import (
    WORD,
    Chunks,
    Numbers,
    Reader,
    description,
    padded,
    put_numbers,
)

CODES = {np.dtype(np.float64): 8, np.dtype(np.float32): 4}
MOST_DIMENSIONS = 8
NO_ARRAY = "is no array of float64 or float32"


class ArrayField(Field):
    """An array or a tensor, with its header."""

    def write(self, value: Any, chunks: Chunks) -> None:
        if not isinstance(value, np.ndarray):
            value = _of_tensor(self.name, value)
        if value.dtype not in CODES or value.ndim > MOST_DIMENSIONS:
            raise WireError(self.name, NO_ARRAY)
        chunks.append(description(CODES[value.dtype], value.shape))
        put_numbers(self.name, value, chunks)


class AggregateField(ArrayField):
    """An aggregate, or an array of the same type and shape."""

    def read(self, frame: Reader) -> Any:
        bounds = frame.bounds
        numbers = frame.array(self.name, bounds.shape, bounds.dtype)
        if bounds.tensors is None:
            return numbers
        return tensor_of(numbers, bounds)

    def most(self, bounds: Bounds) -> int:
        return array_bytes(bounds.shape, bounds.dtype.itemsize)


class RepresentationField(AggregateField):
    """h_k of the sender, which is never larger than the aggregate."""

    def read(self, frame: Reader) -> Any:
        bounds = frame.bounds
        numbers = frame.array(self.name, bounds.representation(frame.sender), bounds.dtype)
        if bounds.tensors is None:
            return numbers
        return tensor_of(numbers, bounds)


class ParametersField(ArrayField):
    """The parameters of a client; other parties only know an upper bound of their number."""

    def read(self, frame: Reader) -> Any:
        # Two dimensions at most: theta_k is a vector, or one column per class.
        return frame.array_up_to(self.name, frame.bounds.parameters, 2, F8)

    def most(self, bounds: Bounds) -> int:
        return array_bytes((1, bounds.parameters), 8)


class SharedField(ArrayField):
    """The parameters that all parties share, array by array."""

    def write(self, value: Sequence[Any], chunks: Chunks) -> None:
        chunks.append(WORD.pack(len(value)))
        for one in value:
            super().write(one, chunks)

    def read(self, frame: Reader) -> list[Any]:
        bounds = frame.bounds
        # Exactly as many arrays as the plan says: the loop below must not read into the next field.
        frame.whole(self.name, len(bounds.shared), len(bounds.shared) + 1)
        arrays = [frame.array(self.name, shape, bounds.dtype) for shape in bounds.shared]
        if bounds.tensors is None:
            return arrays
        return [tensor_of(numbers, bounds) for numbers in arrays]

    def most(self, bounds: Bounds) -> int:
        return 8 + sum(array_bytes(shape, bounds.dtype.itemsize) for shape in bounds.shared)


def array_bytes(shape: Shape, itemsize: int) -> int:
    """The bytes of an array with its description."""
    return 8 * (2 + len(shape)) + padded(itemsize * math.prod(shape))


def tensor_of(numbers: Numbers, bounds: Bounds) -> Any:
    """The numbers as a tensor on the device on which the model uses them."""
    # Copied to its device here, once, so that no visit has to ask where an aggregate is.
    return _torch().from_numpy(numbers).to(bounds.device)


def _of_tensor(name: str, value: Any) -> Numbers:
    """The array of a tensor, without importing its library."""
    try:
        found = value.detach().cpu().numpy()
    except (AttributeError, TypeError, RuntimeError):
        raise WireError(name, NO_ARRAY) from None
    return np.asarray(found)


@cache
def _torch() -> Any:
    return find("torch")
