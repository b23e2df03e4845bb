"""The values of a table's columns, as numbers or classes; errors name the row."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mtcd.core.arrays import Array
from mtcd.core.errors import DataError, listing
from mtcd.data.checks import missing_values

MOST_TO_LIST = 30  # columns in a key that is to be copied


def parsed(text: pl.Series) -> pl.Series:
    """The texts as numbers, null where they are none."""
    # spaces around a number are no reason to call it a text
    return text.str.strip_chars().cast(pl.Float64, strict=False)


def check_features(
    path: Path, columns: Sequence[pl.Series], how: str, way_out: str | None = ""
) -> None:
    """Tell all columns of texts at once, and all columns with missing values; a single one is left
    to ``feature``.

    ``how`` says how to have them prepared, ``way_out`` how to leave them out.
    """
    texts = []
    counts: dict[str, int] = {}
    for column in columns:
        if not _is_numeric(column):
            texts.append(column)
        elif _missing(column):
            counts[column.name] = _missing(column)

    if len(texts) > 1:
        raise _not_numeric(path, texts, how, way_out)
    if sum(counts.values()) > 1:
        aside = ""
        if way_out == "":
            way_out = _ignored(list(counts))
        if way_out:
            aside = f" ({way_out})"
        raise DataError(missing_values(f" of {path}", counts, len(columns[0]), how, aside))


def _not_numeric(
    path: Path, columns: Sequence[pl.Series], how: str, way_out: str | None
) -> DataError:
    """The error for several columns of texts, with the first text of each."""
    shown = []
    for column in columns:
        row, value = _first_text(column)
        shown.append(f"{column.name} (row {row} holds {value!r})")
    if way_out == "":
        way_out = _ignored([column.name for column in columns])
    return DataError(
        f"{len(columns)} columns of {path} are not numeric: {listing(shown)}. Have them prepared "
        f"({how}){_or('leave them out', way_out)}."
    )


def _or(leave: str, way_out: str | None) -> str:
    """The end of a sentence that says how to leave columns out; nothing where that is not
    possible."""
    if way_out is None:
        return ""
    return f", or {leave} ({way_out})"


def _ignored(names: Sequence[str]) -> str:
    """The key of a config that leaves columns out, to copy, unless they are too many to list."""
    if len(names) > MOST_TO_LIST:
        return "data.ignore"
    return f"ignore: [{', '.join(names)}]"


def _missing(column: pl.Series) -> int:
    """NaN counts as null: files say 'missing' in both ways."""
    missing = column.null_count()
    if column.dtype.is_float():
        missing += int(column.is_nan().sum())
    return missing


def feature(path: Path, column: pl.Series, way_out: str | None = "") -> Array:
    """A column of numbers; anything else in it is an error that names the row, and how to leave the
    column out.

    ``way_out`` is None where it cannot be left out.
    """
    where = f"Column {column.name!r} of {path}"
    if way_out == "":
        way_out = _ignored([column.name])
    if not _is_numeric(column):
        row, value = _first_text(column)
        raise DataError(
            f"{where} is not numeric: row {row} holds {value!r}. Turn it into numbers"
            f"{_or('leave it out', way_out)}."
        )
    return _numbers(where, column, _or("leave the column out", way_out))


def _is_numeric(column: pl.Series) -> bool:
    return column.dtype in (pl.Boolean, pl.Null) or column.dtype.is_numeric()


def _numbers(where: str, column: pl.Series, way_out: str = "") -> Array:
    # null becomes NaN here, and is found with the infinite ones
    values: Array = column.cast(pl.Float64).to_numpy()
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        what = "infinite"
        if np.isnan(values[bad[0]]):
            what = "missing"
        raise DataError(
            f"{where} is {what} in row {bad[0] + 1}: mend the value or remove the row{way_out}."
        )
    return values


def _first_text(column: pl.Series) -> tuple[int, object]:
    """The first value (and its row) that is no number: in a column of numbers, the culprit."""

    odd = column.is_not_null()
    if column.dtype == pl.String:
        odd &= parsed(column).is_null()

    row = 0  # of a column without any value, whose type alone is odd
    if odd.any():
        row = int(odd.arg_true()[0])
    return row + 1, column[row]


def labels_of(
    path: Path, column: pl.Series, may_be_equal: bool = False
) -> tuple[NDArray[np.generic], list[str]]:
    """The labels: numbers, or texts that name classes (with a note where texts and numbers mix)."""
    where = f"The label (column {column.name!r} of {path})"
    labels: NDArray[np.generic]
    notes: list[str] = []
    if column.dtype in (pl.String, pl.Categorical, pl.Enum):
        labels, notes = _classes(where, column.cast(pl.String))
    elif _is_numeric(column):
        labels = _numbers(where, column)  # checks for missing ones
        if column.dtype == pl.Boolean:
            labels = labels.astype(np.int64)  # so that classes are named 0 and 1, not 0.0 and 1.0
        elif column.dtype.is_integer():
            labels = column.to_numpy()  # exactly: a float cannot hold every large integer
    else:
        raise DataError(f"{where} holds {column.dtype}: use numbers, or texts that name classes.")

    if not may_be_equal and (labels == labels[0]).all():
        raise DataError(f"{where} is {labels[0]} in every row: there is nothing to learn from it.")
    return labels, notes


def _classes(where: str, column: pl.Series) -> tuple[NDArray[np.str_], list[str]]:
    missing = (column.is_null() | (column == "")).arg_true()
    if len(missing):
        raise DataError(
            f"{where} is missing in row {missing[0] + 1}: mend the value or remove the row."
        )

    # numbers with a slip among them become classes, which only a note can tell the user
    notes = []
    if 0 < parsed(column).null_count() < len(column):
        row, value = _first_text(column)
        notes = [
            f"{where} mixes numbers with texts such as {value!r} in row {row}: all count as "
            "classes."
        ]
    return np.array(column.to_list(), dtype=np.str_), notes
