"""The values of a column as numbers, texts or times: null where there is none."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import polars as pl

from mtcd.errors import DataError

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?", "-", "."})
"""Texts that stand for a missing number, date, yes or no."""
LARGEST = 1e100  # the squares of larger numbers could overflow
YES = frozenset({"yes", "y", "true", "t", "on", "1"})
NO = frozenset({"no", "n", "false", "f", "off", "0"})


def as_column(column: pl.Series) -> pl.Series:
    """A column as it is kept until it is prepared: NaN and empty texts are null, objects of mixed types are texts."""
    if column.dtype.is_float():
        return column.fill_nan(None)
    if is_text(column):
        return texts(column)
    if column.dtype == pl.Object:
        return pl.Series(column.name, [_text(value) for value in column.to_list()], dtype=pl.String)
    if column.dtype.is_nested() or column.dtype == pl.Binary:
        raise DataError(
            f"Column {column.name!r} holds {column.dtype}, which no transformer takes: give numbers, texts or dates, "
            "or leave the column out."
        )
    return column


def as_columns(frame: pl.DataFrame) -> pl.DataFrame:
    """The columns of a frame as they are kept until they are prepared."""
    return pl.DataFrame([as_column(column) for column in frame.get_columns()])


def is_gap(column: pl.Series) -> pl.Series:
    """Whether each value is missing, or a text that stands for a missing one."""
    if not is_text(column):
        return column.is_null()
    words = column.cast(pl.String).str.strip_chars().str.to_lowercase()
    return words.is_in(list(MISSING)).fill_null(True)


def is_text(column: pl.Series) -> bool:
    """Whether a column holds texts."""
    return column.dtype in (pl.String, pl.Categorical, pl.Enum)


def is_time(column: pl.Series) -> bool:
    """Whether a column holds dates, with or without a time of day."""
    return column.dtype == pl.Date or column.dtype == pl.Datetime


def numbers(column: pl.Series) -> pl.Series:
    """The values in double precision; null where one is missing, infinite, too large or no number."""
    if is_time(column):
        raise DataError(f"Column {column.name!r} holds dates, not numbers: prepare it with dates first.")
    if column.dtype == pl.Duration:
        column = column.dt.total_microseconds() / 1e6
    elif column.dtype == pl.Time:
        column = column.cast(pl.Int64) / 1e9
    elif is_text(column):
        column = column.cast(pl.String).str.strip_chars()
    values = column.cast(pl.Float64, strict=False)
    return values.set(~(values.abs() <= LARGEST).fill_null(True) | values.is_nan().fill_null(False), None)


def texts(column: pl.Series) -> pl.Series:
    """The values as texts: whole numbers without a decimal point, whatever their type; null where one is empty."""
    if column.dtype.is_float():
        whole = column.cast(pl.Int64, strict=False)
        same = (whole.cast(pl.Float64) == column.cast(pl.Float64)).fill_null(False)
        shown = whole.cast(pl.String).zip_with(same, column.cast(pl.String))
    else:
        shown = column.cast(pl.String).str.strip_chars()
    return shown.set((shown == "").fill_null(False), None)


def booleans(column: pl.Series) -> pl.Series:
    """1 for yes, true, on; 0 for no, false, off; in any case; null for anything else."""
    words = texts(column).str.to_lowercase()
    known = pl.Series(column.name, [None] * len(column), dtype=pl.Float64)
    return known.set(words.is_in(list(YES)).fill_null(False), 1.0).set(words.is_in(list(NO)).fill_null(False), 0.0)


def times(column: pl.Series, zone: str | None, form: str | None) -> pl.Series:
    """Dates as local times in ``zone`` (UTC, where there is none but the values have one); null if unreadable.

    Texts are read in the ISO format, or as ``form`` says.
    """
    if column.dtype == pl.Date:
        return column.cast(pl.Datetime("us"))
    if column.dtype == pl.Datetime:
        if column.dtype.time_zone is not None:  # type: ignore[attr-defined]
            column = column.dt.convert_time_zone(zone or "UTC").dt.replace_time_zone(None)
        return column.cast(pl.Datetime("us"))
    shown = texts(column)
    distinct = shown.drop_nulls().unique()
    read = [_local(_time(text, form), zone) for text in distinct.to_list()]
    return shown.replace_strict(distinct, pl.Series(read, dtype=pl.Datetime("us")), default=None).alias(column.name)


def has_zone(column: pl.Series, form: str | None) -> bool:
    """Whether a value says its time zone."""
    if column.dtype == pl.Datetime:
        return column.dtype.time_zone is not None  # type: ignore[attr-defined]
    if column.dtype == pl.Date:
        return False
    read = (_time(text, form) for text in texts(column).drop_nulls().unique().to_list())
    return any(value is not None and value.tzinfo is not None for value in read)


def _time(text: str, form: str | None) -> datetime | None:
    try:
        if form is not None:
            return datetime.strptime(text, form)
        return datetime.fromisoformat(text) if "-" in text else None
    except ValueError:
        return None


def _local(value: datetime | None, zone: str | None) -> datetime | None:
    if value is None or value.tzinfo is None:
        return value
    return value.astimezone(UTC if zone is None else ZoneInfo(zone)).replace(tzinfo=None)


def _text(value: Any) -> str | None:
    if value is None or value != value:
        return None
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)
