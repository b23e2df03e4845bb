"""Labels and weights of samples as arrays, whatever they are given in."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mtcd.core.arrays import Array, plain
from mtcd.core.errors import DataError, listing
from mtcd.data.frames import as_frame, as_numbers, check_row_order


def as_labels(y: ArrayLike, what: str = "labels") -> NDArray[np.generic]:
    """Labels (or ``what``) as an array, of whatever kind they are; also those in a frame of one
    column."""
    if isinstance(y, str):
        # the name of a column, as seaborn and others take it
        raise DataError(
            f"The {what} are the text {y!r}: give the {what} themselves, frame[{y!r}], and the "
            "features without them."
        )

    column = _only_column(y, what)
    try:
        labels = np.asarray(plain(column))
    except ValueError as error:
        raise DataError(f"The {what} are not one number (or class) per sample: {error}.") from None
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.dtype.kind == "O" and labels.ndim == 1:
        return _of_objects(labels)
    return labels


def _only_column(y: Any, what: str) -> Any:
    """The column of a frame of one; anything else as it is."""
    frame = as_frame(y)
    if frame is None:
        return y
    if len(frame.labels) != 1:
        names = listing([repr(name) for name in frame.names])
        raise DataError(
            f"The {what} are a table of {len(frame.labels)} columns ({names}): give one of them."
        )
    return frame.table[frame.labels[0]]


def _of_objects(labels: NDArray[Any]) -> NDArray[np.generic]:
    """Labels of a plainer type, if they have one: data frames keep texts as objects, and numbers of
    which some may be missing."""
    if all(isinstance(label, str) for label in labels):
        return labels.astype(str)

    numbers = as_numbers(labels)
    if numbers is None:
        return labels
    # left as they are: check_labels names the row
    if np.isnan(numbers).any():
        return numbers
    return np.array(labels.tolist())  # whole numbers stay whole


def as_weights(X: Any, weights: ArrayLike) -> Array:
    """The weights of samples as an array of numbers."""
    # weights in another order than the rows would be wrong without any sign of it
    check_row_order(X, weights, "weights")
    numbers = as_numbers(as_labels(weights, "weights"))
    if numbers is None:
        raise DataError("The weights are not numbers: give a number of 0 or more per sample.")
    return numbers
