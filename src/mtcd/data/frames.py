"""Data frames as columns with names: of pandas or polars, Arrow tables, or a dict of columns. None
is imported here."""

from __future__ import annotations

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

from mtcd.core.arrays import Array
from mtcd.core.errors import DataError, did_you_mean, listing
from mtcd.data.checks import is_missing
from mtcd.data.sparse import is_sparse
from mtcd.protocol.codec.tensors import is_tensor, plain

if TYPE_CHECKING:
    import polars as pl


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
        return [
            ".".join(map(str, label)) if isinstance(label, tuple) else str(label)
            for label in self.labels
        ]

    def series(self, place: int) -> pl.Series:
        """One column, whatever it holds, as a series of polars; a missing value is null.

        Categories of pandas, polars or Arrow, of texts or of anything else, are a Categorical.
        """
        import polars as pl

        from mtcd.data.prepare.values import as_column, texts

        series = self._series(place)
        if is_category(self.table[self.labels[place]]):
            return texts(as_column(series)).cast(pl.Categorical)
        return series

    def categories(self) -> list[str]:
        """The names of the columns of categories."""
        return [
            name
            for name, label in zip(self.names, self.labels, strict=True)
            if is_category(self.table[label])
        ]

    def _series(self, place: int) -> pl.Series:
        import polars as pl

        name = self.names[place]
        column = self.table[self.labels[place]]
        if isinstance(column, pl.Series):
            if column.dtype.is_float():
                return column.fill_nan(None).alias(name)
            return column.alias(name)
        values = _one_dimensional(name, column)
        if values.dtype.kind in "iubf":
            return pl.Series(name, values, nan_to_null=True)
        if values.dtype.kind in "mM":  # in nanoseconds, the list would hold whole numbers
            return pl.Series(name, values.astype(f"{values.dtype.kind}8[us]"))
        known = [None if is_missing(value) else value for value in values.tolist()]
        try:
            return pl.Series(name, known)
        except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError):
            # of several types
            return pl.Series(name, known, dtype=pl.Object)

    def matrix(self, places: Sequence[int], advice: str = "turn them into numbers") -> Array:
        """These columns as one matrix, column-major; an error names all that do not hold numbers,
        with the advice."""
        columns = {
            self.names[j]: _one_dimensional(self.names[j], self.table[self.labels[j]])
            for j in places
        }
        lengths = {len(column) for column in columns.values()}
        if len(lengths) > 1:
            raise DataError(
                "The columns of the table are not equally long: give every sample a value in each."
            )
        matrix = np.empty((lengths.pop() if lengths else 0, len(columns)), order="F")
        texts = []
        categories = [self.names[j] for j in places if is_category(self.table[self.labels[j]])]
        for j, (name, column) in enumerate(columns.items()):
            numbers = as_numbers(column)
            if name in categories:
                texts.append(f"{name!r} (categories)")
            elif numbers is None:
                texts.append(f"{name!r} ({_kind(column)})")
            else:
                matrix[:, j] = numbers
        if texts:
            which = f"Column {texts[0]} does" if len(texts) == 1 else f"Columns {listing(texts)} do"
            raise DataError(f"{which} not hold numbers: {advice}.")
        return matrix


def as_frame(X: Any) -> AnyFrame | None:
    """The frame, if this is a table with named columns; None for a matrix and anything else."""
    if isinstance(X, Mapping):
        return AnyFrame(X, tuple(X))
    if isinstance(X, np.ndarray) and X.dtype.names:  # a structured array
        return AnyFrame(X, X.dtype.names)
    if hasattr(X, "collect") and not hasattr(X, "__len__"):
        raise DataError("A lazy frame has no values yet: give frame.collect().")
    if (
        is_sparse(X)
        or isinstance(X, np.ndarray)
        or not hasattr(X, "columns")
        or not hasattr(X, "__getitem__")
    ):
        return None
    # Arrow tables keep the names apart
    return AnyFrame(X, tuple(getattr(X, "column_names", X.columns)))


def is_category(column: Any) -> bool:
    """Whether a column is one of categories by its type, whatever its values are: of pandas, polars
    or Arrow."""
    kind = getattr(column, "dtype", None)
    if hasattr(kind, "categories") and hasattr(kind, "ordered"):  # of pandas
        return True
    if type(column).__module__.partition(".")[0] == "polars" and str(kind).startswith(
        ("Categorical", "Enum")
    ):
        return True
    return hasattr(getattr(column, "type", None), "index_type")  # a dictionary of Arrow


def as_numbers(values: NDArray[Any]) -> Array | None:
    """The values in double precision, NaN where one is missing; None if they are not numbers."""
    if values.dtype.kind in "biuf":
        return np.asarray(values, dtype=float)
    if values.dtype.kind != "O":
        return None
    known = [None if is_missing(value) else value for value in values]
    if not all(value is None or isinstance(value, Real | Decimal | np.bool_) for value in known):
        return None
    return np.array([np.nan if value is None else float(value) for value in known])


def check_distinct(names: Sequence[str]) -> None:
    """Reject two columns of one name."""
    if len(set(names)) < len(names):
        twice = next(name for name, count in Counter(names).items() if count > 1)
        raise DataError(f"Two columns are named {twice!r}: give each its own name.")


def check_row_order(X: Any, y: Any, what: str = "labels") -> None:
    """Refuse features and labels of pandas whose rows have the same index in another order: rows go
    by position."""
    rows: Any = getattr(X, "index", None)
    others: Any = getattr(y, "index", None)
    # lists have an index too, which is a method
    if not hasattr(rows, "equals") or not hasattr(others, "equals"):
        return
    if not rows.equals(others) and Counter(rows) == Counter(others):
        raise DataError(
            f"The {what} have the index of the features in another order: sort them with "
            "y.loc[X.index], or, if the rows match as they are, give y.to_numpy()."
        )


def _one_dimensional(name: str, column: Any) -> NDArray[Any]:
    try:
        values = np.atleast_1d(np.asarray(plain(column)))
    except (TypeError, ValueError) as error:
        raise DataError(f"Column {name!r} cannot be read as numbers: {error}.") from None
    if (
        values.ndim == 2
        and values.shape[1] == 1
        and (isinstance(column, np.ndarray | list) or is_tensor(column))
    ):
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
    odd = next(v for v in column if not (is_missing(v) or isinstance(v, Real | Decimal | np.bool_)))
    words = ((str, "text"), (date, "dates"), (timedelta, "durations"), (time, "times of day"))
    return next((word for kind, word in words if isinstance(odd, kind)), type(odd).__name__)


def check_has_columns(frame: AnyFrame, wanted: Sequence[str]) -> None:
    """Refuse a table that lacks a column that the model was trained on."""
    missing = [name for name in wanted if name not in frame.names]
    if missing:
        others = sorted(set(frame.names) - set(wanted))
        hint = f"; {did_you_mean(missing[0], others, 'they also have')}" if others else "."
        raise DataError(
            f"The new samples have no column {listing([repr(name) for name in missing])}, which "
            f"this model was trained on{hint}"
        )


def client_features(frame: AnyFrame, columns: Mapping[str, Sequence[str]]) -> dict[str, Array]:
    """The columns of each client, found by name; other columns are ignored."""
    place = {name: j for j, name in enumerate(frame.names)}
    check_has_columns(frame, [name for names in columns.values() for name in names])
    return {
        client: frame.matrix([place[name] for name in names]) for client, names in columns.items()
    }
