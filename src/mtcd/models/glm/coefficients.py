"""The coefficients of a linear model as rows: by client and column, on the columns as given and as
trained."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mtcd.core.arrays import Array
from mtcd.models.predicted import class_name

INTERCEPT = "(intercept)"


def coefficient_row(
    client: str | None, column: str, given: Any, trained: Any, classes: Sequence[str | float]
) -> dict[str, Any]:
    """One row: the coefficient on the column as given, and on the scaled column; one of each per
    class, if several.

    >>> coefficient_row("lab", "age", 0.5, 2.0, ())
    {'client': 'lab', 'column': 'age', 'coefficient': 0.5, 'scaled_coefficient': 2.0}
    """
    row: dict[str, Any] = {"client": client, "column": column}
    for title, values in (("coefficient", given), ("scaled_coefficient", trained)):
        numbers = np.atleast_1d(values).tolist()
        # One number per class, or a plain number: then no class is named.
        ends = [""] if np.ndim(values) == 0 else [f"_{class_name(one)}" for one in classes]
        row |= {f"{title}{end}": number for end, number in zip(ends, numbers, strict=True)}
    return row


def unscaled(theta: Array, scales: Array) -> Array:
    """theta of the columns as given: each row, which has one entry or one per class, divided by its
    scale."""
    return np.asarray((theta.T / scales).T)


def shift_of(theta: Array, means: Array, scales: Array) -> Array:
    """The intercept of scaled columns minus that of the columns as given."""
    return np.asarray((means / scales) @ theta)
