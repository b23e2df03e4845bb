"""Checks of a data set before training; errors name the client, column and row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy  # its parts are loaded when they are used
from numpy.typing import NDArray

from mtcd.core.arrays import is_sparse
from mtcd.core.errors import DataError, listing

# the square of anything larger, summed over samples, could overflow
LARGEST = 1e100


def check_clients(
    clients: Sequence[str], columns: Sequence[Sequence[str]], blocks: Sequence[Any], samples: int
) -> None:
    """Clients differ in name, and each brings as many rows as there are labels."""
    if not clients:
        raise DataError("There is no client: give at least one client at least one column.")
    if len(set(clients)) < len(clients):
        raise DataError(f"Client names must differ: {listing(sorted(clients))}.")

    for name, held, block in zip(clients, columns, blocks, strict=True):
        if not held:
            raise DataError(f"Client {name!r} holds no column: give it one, or leave it out.")
        # both at once: what is wrong shows in the two shapes
        if block.shape != (samples, len(held)):
            raise DataError(
                f"Client {name!r} brings {block.shape[0]} rows and {block.shape[1]} columns, "
                f"but there are {samples} labels and it names {len(held)} columns."
            )


def check_labels(labels: NDArray[np.generic], may_be_equal: bool = False) -> None:
    """One number or text per sample, none missing, and not all the same, unless they
    ``may_be_equal``."""
    if labels.ndim != 1:
        raise DataError(
            f"The labels must be one number (or class) per sample, but have {labels.ndim} "
            "dimensions."
        )

    if len(labels) == 0:
        raise DataError("There are no samples.")

    _check_kind_of_labels(labels)
    if labels.dtype.kind == "f":
        # in double precision: LARGEST would be infinite in single, and nothing too large
        bad = np.flatnonzero(~(np.abs(labels.astype(np.float64)) <= LARGEST))
        if bad.size:
            row = int(bad[0])
            raise DataError(
                f"The label of row {row + 1} is {_what(labels[row])}: remove or mend that row."
            )

    if not may_be_equal and (labels == labels[0]).all():
        raise DataError(
            f"All {len(labels)} labels are {labels[0]}: there is nothing to learn from a constant "
            "label."
        )


def _check_kind_of_labels(labels: NDArray[np.generic]) -> None:
    """Labels are numbers or texts. A data frame in which some are missing keeps them as objects:
    then the row is named, and not the type."""
    if labels.dtype.kind in "biufU":
        return
    if labels.dtype.kind == "O":
        for row, label in enumerate(labels):
            if is_missing(label):
                raise DataError(f"The label of row {row + 1} is missing: remove or mend that row.")
    raise DataError(
        f"The labels are of type {labels.dtype}: use numbers, or texts that name classes."
    )


def check_blocks(
    clients: Sequence[str],
    columns: Sequence[Sequence[str]],
    blocks: Sequence[Any],
    may_miss: Sequence[bool] = (),
) -> None:
    """Every feature of every client is a number of reasonable size; missing ones are told all at
    once.

    ``may_miss``: whether values of a client may be missing.
    """
    if all(_fine(block) for block in blocks):
        return  # which needs no copy of a block, as what follows does
    if not any(may_miss):
        _check_missing(clients, columns, blocks)

    may_miss = may_miss or [False] * len(clients)
    for client, names, block, missing in zip(clients, columns, blocks, may_miss, strict=True):
        check_values(client, names, block, missing)


def _check_missing(
    clients: Sequence[str], columns: Sequence[Sequence[str]], blocks: Sequence[Any]
) -> None:
    """Name all columns with missing values in one error. A single missing value is left to
    ``check_values``, which names its row."""
    lost: dict[str, int] = {}
    for client, names, block in zip(clients, columns, blocks, strict=True):
        where = scipy.sparse.coo_array(block)
        # entries by column, of dense and sparse blocks alike
        counts = np.bincount(where.col[np.isnan(where.data)], minlength=len(names))
        for name, count in zip(names, counts.tolist(), strict=True):
            if count:
                lost[f"{name} of {client}"] = count

    if sum(lost.values()) > 1:
        how = 'prepare="auto"; "trees" keeps them, for trees'
        raise DataError(missing_values("", lost, blocks[0].shape[0], how))


def missing_values(
    where: str, counts: Mapping[str, int], rows: int, how: str, way_out: str = ""
) -> str:
    """A sentence on many missing values: how many, in which columns, and how to have them filled
    in."""
    shown = listing([f"{name} ({count:,})" for name, count in counts.items()])
    return (
        f"{sum(counts.values()):,} values{where} are missing, in {len(counts):,} column(s) of "
        f"{rows:,} rows: {shown}. "
        f"Have them filled in ({how}), or remove those rows or columns{way_out}."
    )


def check_weights(weights: NDArray[Any], samples: int) -> None:
    """A finite number of 0 or more per sample, not all 0."""
    if weights.ndim != 1 or weights.dtype.kind not in "biuf":
        raise DataError("The weights must be one number per sample.")
    if len(weights) != samples:
        raise DataError(
            f"There are {len(weights)} weights for {samples} samples: give each sample one."
        )

    fine = (weights >= 0) & (weights <= LARGEST)
    if not fine.all():
        row = int(np.flatnonzero(~fine)[0])
        what = "negative"
        if not weights[row] < 0:
            what = _what(weights[row])
        raise DataError(
            f"The weight of row {row + 1} is {what}: give numbers of 0 or more (0 leaves a sample "
            "out)."
        )
    # their sum divides: all 0 would make every mean NaN
    if not weights.any():
        raise DataError("All weights are 0: give some sample more.")


def check_values(client: str, columns: Sequence[str], block: Any, may_miss: bool = False) -> None:
    """Every feature is a number of reasonable size, or, if it ``may_miss``, missing."""
    if _fine(block):
        return

    # the entries of dense and sparse blocks alike, with their rows and columns
    where = scipy.sparse.coo_array(block)
    fine = np.abs(where.data) <= LARGEST
    if may_miss:
        fine |= np.isnan(where.data)
    if fine.all():
        return

    bad = np.flatnonzero(~fine)[0]
    row, column = int(where.row[bad]), int(where.col[bad])
    raise DataError(
        f"Column {columns[column]!r} of client {client!r} is {_what(where.data[bad])} in row "
        f"{row + 1}: remove the row, mend the value, or leave the column out."
    )


def _fine(block: Any) -> bool:
    """Whether all values are, by the least and the greatest of them: no copy is made."""
    values = block
    if is_sparse(block):
        values = block.data
    return bool(values.size == 0 or max(-values.min(), values.max()) <= LARGEST)  # false for NaN


def is_missing(value: Any) -> bool:
    """Whether this is None, NaN, or a missing value of a data frame."""
    try:
        return value is None or bool(value != value)
    except TypeError:  # pandas.NA is neither equal nor unequal to anything
        return True
    except ValueError:  # several values, in a column of lists
        return False


def _what(value: Any) -> str:
    """A short description of an invalid value."""
    if np.isnan(value):
        return "missing"
    if np.isinf(value):
        return "infinite"
    return f"too large ({value:g})"
