"""Reads pickles that hold arrays of bytes, without running the code that they name.

A pickle names functions to call. Here these names stand for small substitutes that can only put an
array of bytes together; any other name is refused before anything is called.
"""

from __future__ import annotations

import io
import pickle
from typing import Any

import numpy as np
from numpy.typing import NDArray


class PickledBytes:
    """A substitute for an array; ``values`` is set while the pickle is read."""

    values: NDArray[np.uint8]

    def __init__(self, *_: Any) -> None:
        pass

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, kind, by_column, values = state
        if not isinstance(kind, PickledType) or kind.code not in ("u1", b"u1"):
            raise pickle.UnpicklingError("it holds an array that is not of bytes")
        order = np.frombuffer(values, dtype=np.uint8)
        self.values = order.reshape(shape, order="F" if by_column else "C")


class PickledType:
    """Takes the place of the type of an array's values."""

    def __init__(self, code: str | bytes, *_: Any) -> None:
        self.code = code

    def __setstate__(self, state: Any) -> None:
        """The order of bytes, which single bytes do not have."""


def _latin(text: str, encoding: str | bytes) -> bytes:
    """How Python 3 writes bytes in the old protocols."""
    if encoding not in ("latin1", b"latin1"):
        raise pickle.UnpicklingError(f"it holds text in the encoding {encoding!r}")
    return text.encode("latin1")


ALLOWED: dict[tuple[str, str], Any] = {
    ("numpy.core.multiarray", "_reconstruct"): PickledBytes,
    ("numpy._core.multiarray", "_reconstruct"): PickledBytes,
    ("numpy", "ndarray"): PickledBytes,
    ("numpy", "dtype"): PickledType,
    ("_codecs", "encode"): _latin,
}


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in ALLOWED:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which no picture needs")
        return ALLOWED[module, name]


def load(pickled: bytes) -> Any:
    """The content of a pickle of Python 2 or 3: plain values, and :class:`PickledBytes` for
    arrays."""
    return _Reader(io.BytesIO(pickled), encoding="bytes").load()
