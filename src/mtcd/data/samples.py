"""The features of one client for split networks: an array, a tensor, or a data set with samples by
number.

Nothing here imports torch (see ``core/arrays.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtcd.core.arrays import Rows, is_sparse, is_tensor
from mtcd.core.errors import DataError, listing
from mtcd.data.frames import as_frame


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
    """The features of a client as they are stored: tensors (without gradients) and data sets as
    they are, all else as an array.
    """
    # made dense in silence, a table of words would fill the memory
    if is_sparse(given):
        raise DataError(f"The features of client {client!r} are sparse: give .toarray() of them.")
    if is_tensor(given):
        # its gradients belong to somebody else's graph
        return given.detach()
    if not (isinstance(given, np.ndarray | list | tuple) or hasattr(given, "__array__")):
        return given  # a data set: its samples are read when they are used

    frame = as_frame(given)
    if frame is not None:
        advice = f"client {client!r} can only train on numbers"
        values = frame.matrix(range(len(frame.labels)), advice)
        check_finite(client, values, frame.names)  # here, where the columns have names
        return values

    try:
        values = np.asarray(given)
    except (TypeError, ValueError) as error:
        raise DataError(f"The features of client {client!r} are no array: {error}.") from None

    # the values behind a mask would be trained on
    if np.ma.isMaskedArray(given) or values.dtype.kind not in "biuf":
        raise DataError(
            f"The features of client {client!r} are of type {values.dtype}, not plain real numbers."
        )
    return values


def check_samples(
    client: str, values: Any, samples: int, columns: Sequence[str] | None = None
) -> None:
    """One sample per label; in arrays and tensors every value is a number that single precision can
    hold.

    ``columns`` names the features, for errors.
    """
    if not (hasattr(values, "__len__") and hasattr(values, "__getitem__")):
        raise DataError(
            f"Client {client!r} brings a {type(values).__name__}: give an array, a tensor, "
            "or a data set that has a length and gives its samples by number."
        )
    shape: tuple[int, ...] | None = None
    if is_array(values):
        shape = tuple(values.shape)

    if shape == ():
        raise DataError(f"Client {client!r} brings a single number: give one row per sample.")
    if len(values) != samples:
        raise DataError(
            f"Client {client!r} brings {len(values)} samples, but there are {samples} labels."
        )
    if shape is None:
        return
    if 0 in shape:
        raise DataError(f"Client {client!r} holds no feature: its array has the shape {shape}.")
    check_finite(client, values, columns)


def check_finite(
    client: str,
    values: Any,
    columns: Sequence[str] | None = None,
    rows: Sequence[int] | None = None,
) -> None:
    """Refuse values that single precision cannot hold, and missing ones, which a network would turn
    into NaN.

    ``rows`` are the numbers of the samples, where they are not all from the first on.
    """
    fine = _finite(values)
    if fine is None:
        return

    bad = np.flatnonzero(~fine.reshape(len(fine), -1).all(axis=1))
    if rows is not None:
        bad = np.asarray(rows)[bad]
    raise DataError(
        f"Features of client {client!r} are missing, infinite or too large for single precision in "
        f"{len(bad):,} row(s): {listing((bad + 1).tolist())}{_in_columns(fine, columns)}. Remove "
        "these rows, mend the values, or have the columns of a table prepared "
        '(prepare="auto").'
    )


def _in_columns(fine: NDArray[np.bool_], columns: Sequence[str] | None) -> str:
    """The columns of a table with such values, and how many each has; nothing of pictures."""
    if fine.ndim != 2:
        return ""

    counts = (~fine).sum(axis=0)
    lost = []
    for j in np.flatnonzero(counts).tolist():
        name = f"column {j + 1}"
        if columns is not None:
            name = repr(columns[j])
        lost.append(f"{name} ({counts[j]:,})")
    return f"; by column: {listing(lost)}"


def sample_shape(client: str, values: Any) -> tuple[int, ...]:
    """The shape of one sample, without the batch."""
    if is_array(values):
        return tuple(values.shape[1:])
    try:
        return tuple(map(int, np.shape(values[0])))
    except Exception as error:  # whatever the code of the data set may raise
        raise DataError(
            f"Sample 0 of client {client!r} cannot be read as one array or tensor: {error}."
        ) from error


def take(values: Any, rows: Rows) -> Any:
    """These samples, in this order."""
    if not is_array(values):
        return Subset(values, rows)
    return values[rows]


def _finite(values: Any) -> NDArray[np.bool_] | None:
    """Whether training in single precision could use each value; None if it can use all."""
    if is_tensor(values):
        if not values.is_floating_point():
            return None
        fine = values.detach().float().isfinite()
        if bool(fine.all()):  # found on the device: the common case copies nothing
            return None
        return np.asarray(fine.cpu())

    if values.dtype.kind != "f":
        return None
    # too large for single precision becomes infinite, which is what is looked for
    with np.errstate(over="ignore"):
        known: NDArray[np.bool_] = np.isfinite(values.astype(np.float32, copy=False))
    if known.all():
        return None
    return known
