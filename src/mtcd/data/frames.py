"""Data frames as columns with names: of pandas or polars, Arrow tables, or a dict of columns. None
is imported here."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from functools import cached_property
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mtcd.core.arrays import Array, is_sparse, is_tensor, plain
from mtcd.core.errors import DataError, did_you_mean, listing
from mtcd.core.mappings import positions
from mtcd.data.checks import is_missing

if TYPE_CHECKING:
    import polars as pl


UNEQUAL = "The columns of the table are not equally long: give every sample a value in each."


@dataclass(frozen=True, eq=False)
class AnyFrame:
    """A table that gives a column for a label. ``labels`` may be of any type; ``names`` are the
    same as text."""

    table: Any
    labels: tuple[Any, ...]

    def __post_init__(self) -> None:
        check_distinct(self.names)

    @cached_property
    def names(self) -> list[str]:
        """The names of the columns; of a label with several parts, as in a MultiIndex of pandas,
        ``a.b``."""
        return [_name(label) for label in self.labels]

    def series(self, place: int) -> pl.Series:
        """One column, whatever it holds, as a series of polars; a missing value is null.

        Categories of pandas, polars or Arrow, of texts or of anything else, are a Categorical.
        """
        import polars as pl

        from mtcd.data.prepare.values import as_column, texts

        series = self._series(place)
        if self._is_category(place):
            return texts(as_column(series)).cast(pl.Categorical)
        return series

    def categories(self) -> list[str]:
        """The names of the columns of categories."""
        return [name for place, name in enumerate(self.names) if self._is_category(place)]

    def _is_category(self, place: int) -> bool:
        return is_category(self.table[self.labels[place]])

    def _series(self, place: int) -> pl.Series:
        import polars as pl

        name = self.names[place]
        column = self.table[self.labels[place]]
        # of polars: taken as it is, without a way through numpy
        if isinstance(column, pl.Series):
            if column.dtype.is_float():
                return column.fill_nan(None).alias(name)
            return column.alias(name)

        values = _one_dimensional(name, column)
        # NaN is how numpy and pandas say that a number is missing
        if values.dtype.kind in "iubf":
            return pl.Series(name, values, nan_to_null=True)
        if values.dtype.kind in "mM":  # in nanoseconds, the list would hold whole numbers
            return pl.Series(name, values.astype(f"{values.dtype.kind}8[us]"))

        known = with_none(values.tolist())
        try:
            return pl.Series(name, known)
        except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError):
            # of several types
            return pl.Series(name, known, dtype=pl.Object)

    def matrix(self, places: Sequence[int], advice: str = "turn them into numbers") -> Array:
        """These columns as one matrix, column-major; an error names all that do not hold numbers,
        with the advice."""
        columns: list[NDArray[Any]] = []
        for place in places:
            columns.append(_one_dimensional(self.names[place], self.table[self.labels[place]]))

        lengths = {len(column) for column in columns} or {0}
        if len(lengths) > 1:
            raise DataError(UNEQUAL)

        matrix = np.empty((lengths.pop(), len(columns)), order="F")
        odd = []
        for j, (place, column) in enumerate(zip(places, columns, strict=True)):
            numbers = as_numbers(column)
            if self._is_category(place):
                # also of numbers: they are names there, and 2 is not twice 1
                odd.append(f"{self.names[place]!r} (categories)")
            elif numbers is None:
                odd.append(f"{self.names[place]!r} ({_kind(column)})")
            else:
                matrix[:, j] = numbers

        if len(odd) == 1:
            raise DataError(f"Column {odd[0]} does not hold numbers: {advice}.")
        if odd:
            raise DataError(f"Columns {listing(odd)} do not hold numbers: {advice}.")
        return matrix


def as_frame(X: Any) -> AnyFrame | None:
    """The frame, if this is a table with named columns; None for a matrix and anything else."""
    if isinstance(X, Mapping):
        return AnyFrame(X, tuple(X))
    if isinstance(X, np.ndarray) and X.dtype.names:  # a structured array
        return AnyFrame(X, X.dtype.names)
    if hasattr(X, "collect") and not hasattr(X, "__len__"):
        raise DataError("A lazy frame has no values yet: give frame.collect().")
    if is_sparse(X) or isinstance(X, np.ndarray):
        return None

    # by what it can do: no library of frames has to be installed for the others
    if not (hasattr(X, "columns") and hasattr(X, "__getitem__")):
        return None
    # Arrow tables keep the names apart
    return AnyFrame(X, tuple(getattr(X, "column_names", X.columns)))


def is_category(column: Any) -> bool:
    """Whether a column is one of categories by its type, whatever its values are: of pandas, polars
    or Arrow."""
    # by what it has: neither pandas nor Arrow has to be installed
    kind = getattr(column, "dtype", None)
    if hasattr(kind, "categories") and hasattr(kind, "ordered"):  # of pandas
        return True
    library = type(column).__module__.partition(".")[0]
    if library == "polars" and str(kind).startswith(("Categorical", "Enum")):
        return True
    return hasattr(getattr(column, "type", None), "index_type")  # a dictionary of Arrow


def as_numbers(values: NDArray[Any]) -> Array | None:
    """The values in double precision, NaN where one is missing; None if they are not numbers."""
    if values.dtype.kind in "biuf":
        return np.asarray(values, dtype=float)
    if values.dtype.kind != "O":
        return None
    # objects: how data frames keep numbers of which some may be missing

    numbers = np.full(len(values), np.nan)
    for row, value in enumerate(values):
        if is_missing(value):
            continue
        if not _is_number(value):
            return None
        numbers[row] = float(value)
    return numbers


def with_none(values: Sequence[Any]) -> list[Any]:
    """The values, with None for every kind of missing value."""
    known = list(values)
    for row, value in enumerate(known):
        if is_missing(value):
            known[row] = None
    return known


def _is_number(value: object) -> bool:
    return isinstance(value, Real | Decimal | np.bool_)


def _name(label: Any) -> str:
    if isinstance(label, tuple):  # of a MultiIndex
        return ".".join(map(str, label))
    return str(label)


def check_distinct(names: Sequence[str]) -> None:
    """Reject two columns of one name."""
    if len(set(names)) < len(names):
        twice = next(name for name, count in Counter(names).items() if count > 1)
        raise DataError(f"Two columns are named {twice!r}: give each its own name.")


def check_row_order(X: Any, y: Any, what: str = "labels") -> None:
    """Refuse features and labels of pandas whose rows have the same index in another order: rows go
    by position."""
    # only of pandas: other frames have no names of rows
    rows: Any = getattr(X, "index", None)
    others: Any = getattr(y, "index", None)
    # lists have an index too, which is a method
    if not hasattr(rows, "equals") or not hasattr(others, "equals"):
        return
    # other rows altogether may be meant to go by position; the same ones in another order are not
    if not rows.equals(others) and Counter(rows) == Counter(others):
        raise DataError(
            f"The {what} have the index of the features in another order: sort them with "
            "y.loc[X.index], or, if the rows match as they are, give y.to_numpy()."
        )


def _one_dimensional(name: str, column: Any) -> NDArray[Any]:
    try:
        # one value is a column of one sample
        values = np.atleast_1d(np.asarray(plain(column)))
    except (TypeError, ValueError) as error:
        raise DataError(f"Column {name!r} cannot be read as numbers: {error}.") from None
    # in a dict of columns: a matrix of one column is a column
    plain_array = isinstance(column, np.ndarray | list) or is_tensor(column)
    if plain_array and values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise DataError(
            f"Column {name!r} has the shape {values.shape}: give one number per sample."
        )
    return values


def _kind(column: NDArray[Any]) -> str:
    """A word for the content of a column that is not numeric."""
    kinds = {"U": "text", "S": "bytes", "M": "dates", "m": "durations", "c": "complex numbers"}
    if column.dtype.kind != "O":
        return kinds.get(column.dtype.kind, str(column.dtype))

    # the first that is no number says what the column holds
    odd = next(value for value in column if not (is_missing(value) or _is_number(value)))
    words = ((str, "text"), (date, "dates"), (timedelta, "durations"), (time, "times of day"))
    for kind, word in words:
        if isinstance(odd, kind):
            return word
    return type(odd).__name__


def check_has_columns(frame: AnyFrame, wanted: Sequence[str]) -> None:
    """Refuse a table that lacks a column that the model was trained on."""
    missing = [name for name in wanted if name not in frame.names]
    if missing:
        # a column that was renamed is among those that the model does not know
        others = sorted(set(frame.names) - set(wanted))
        hint = "."
        if others:
            hint = f"; {did_you_mean(missing[0], others, 'they also have')}"
        raise DataError(
            f"The new samples have no column {listing([repr(name) for name in missing])}, which "
            f"this model was trained on{hint}"
        )


def client_features(frame: AnyFrame, columns: Mapping[str, Sequence[str]]) -> dict[str, Array]:
    """The columns of each client, found by name; other columns are ignored."""
    check_has_columns(frame, list(itertools.chain.from_iterable(columns.values())))
    place = positions(frame.names)
    features = {}
    for client, names in columns.items():
        features[client] = frame.matrix([place[name] for name in names])
    return features
