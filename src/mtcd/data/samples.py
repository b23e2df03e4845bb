"""The features of one client for split networks: an array, a tensor, or a data set with samples by number.

Nothing here imports torch (see ``tensors.py``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mtcd.arrays import Rows
from mtcd.data.frames import as_frame
from mtcd.data.sparse import is_sparse
from mtcd.data.tensors import is_tensor
from mtcd.errors import DataError


@dataclass(frozen=True, eq=False)
class Subset:
    """Some samples of a data set that is read one by one."""

    samples: Any
    rows: Rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, place: int) -> Any:
        return self.samples[int(self.rows[place])]


def is_array(values: Any) -> bool:
    """Whether many samples can be taken out at once."""
    return isinstance(values, np.ndarray) or is_tensor(values)


def as_samples(client: str, given: Any) -> Any:
    """The features of a client as they are stored: tensors (without gradients) and data sets as they are, all else
    as an array.
    """
    if is_sparse(given):
        raise DataError(f"The features of client {client!r} are sparse: give .toarray() of them.")
    if is_tensor(given):
        return given.detach()
    if not (isinstance(given, np.ndarray | list | tuple) or hasattr(given, "__array__")):
        return given
    if (frame := as_frame(given)) is not None:
        return frame.matrix(range(len(frame.labels)), f"client {client!r} can only train on numbers")
    try:
        values = np.asarray(given)
    except (TypeError, ValueError) as error:
        raise DataError(f"The features of client {client!r} are no array: {error}.") from None
    if np.ma.isMaskedArray(given) or values.dtype.kind not in "biuf":
        raise DataError(f"The features of client {client!r} are of type {values.dtype}, not plain real numbers.")
    return values


def check_samples(client: str, values: Any, samples: int) -> None:
    """One sample per label; in arrays and tensors every value is a number that single precision can hold."""
    if not (hasattr(values, "__len__") and hasattr(values, "__getitem__")):
        raise DataError(
            f"Client {client!r} brings a {type(values).__name__}: give an array, a tensor, "
            "or a data set that has a length and gives its samples by number."
        )
    if is_array(values) and len(values.shape) == 0:
        raise DataError(f"Client {client!r} brings a single number: give one row per sample.")
    if len(values) != samples:
        raise DataError(f"Client {client!r} brings {len(values)} samples, but there are {samples} labels.")
    if is_array(values) and 0 in tuple(values.shape):
        raise DataError(f"Client {client!r} holds no feature: its array has the shape {tuple(values.shape)}.")
    if is_array(values) and (bad := _first_bad(values)) is not None:
        raise DataError(
            f"A feature of client {client!r} is missing, infinite or too large in sample {bad} (counted from 0): "
            "remove the sample or mend the value."
        )


def sample_shape(client: str, values: Any) -> tuple[int, ...]:
    """The shape of one sample, without the batch."""
    if is_array(values):
        return tuple(values.shape[1:])
    try:
        first = values[0]
        return tuple(int(side) for side in (first.shape if is_array(first) else np.shape(first)))
    except Exception as error:  # whatever the code of the data set may raise
        raise DataError(f"Sample 0 of client {client!r} cannot be read as one array or tensor: {error}.") from error


def take(values: Any, rows: Rows) -> Any:
    """These samples, in this order."""
    return values[rows] if is_array(values) else Subset(values, rows)


def _first_bad(values: Any) -> int | None:
    """The first sample with a value that training in single precision could not use."""
    if is_tensor(values):
        if not values.is_floating_point():
            return None
        fine = values.detach().float().isfinite()
    elif values.dtype.kind == "f":
        with np.errstate(over="ignore"):
            fine = np.isfinite(values.astype(np.float32, copy=False))
    else:
        return None
    if bool(fine.all()):
        return None
    usable: list[bool] = fine.reshape(len(values), -1).all(1).tolist()
    return usable.index(False)
