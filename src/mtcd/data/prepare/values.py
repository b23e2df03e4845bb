"""The values of a column as numbers, texts or times: null where there is none."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import polars as pl

from mtcd.core.errors import DataError
from mtcd.data.prepare.date_texts import Order, Stated, date_parts, moments

MISSING = frozenset(
    {
        "",
        "na",
        "n/a",
        "n.a.",
        "#n/a",
        "#na",
        "<na>",
        "nan",
        "nat",
        "null",
        "none",
        "?",
        "-",
        "--",
        "---",
        ".",
    }
    | {"\u2013", "\u2014", "#value!", "#ref!", "#div/0!", "#num!", "#name?", "#null!"}
)
"""Texts that stand for a missing number, date, yes or no."""
WORDS = frozenset(
    {"unknown", "missing", "nil", "not available", "not applicable", "not known", "k.a.", "n.v."}
)
"""Words that stand for a missing number or date, but may be an answer beside yes and no."""
LARGEST = 1e100  # the squares of larger numbers could overflow
YES = frozenset({"yes", "y", "true", "t", "on", "1"})
NO = frozenset({"no", "n", "false", "f", "off", "0"})
ISO = r"^\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?(?:[Zz]|[+-]\d{2}(?::?\d{2})?)?)?$"
"""Dates in the ISO format as nearly all are; others are left to datetime.fromisoformat."""
COMPACT = {
    "%Y%m%d": r"^\d{8}$",
    "%d%m%Y": r"^\d{8}$",
    "%m%d%Y": r"^\d{8}$",
    "%Y%m%d%H%M%S": r"^\d{14}$",
}
"""Formats of digits alone, which are read at once, with what their texts look like."""


def as_column(column: pl.Series) -> pl.Series:
    """A column as it is kept until it is prepared: NaN and empty texts are null, objects of mixed
    types are texts.

    A column of categories (Categorical, Enum) stays one.
    """
    if column.dtype.is_float():
        return column.fill_nan(None)
    if is_category(column):
        return texts(column).cast(pl.Categorical)
    if is_text(column):
        return texts(column)

    if column.dtype == pl.Object:
        return pl.Series(column.name, [_text(value) for value in column.to_list()], dtype=pl.String)

    if column.dtype.is_nested() or column.dtype == pl.Binary:
        raise DataError(
            f"Column {column.name!r} holds {column.dtype}, which no transformer takes: give "
            "numbers, texts or dates, or leave the column out."
        )
    return column


def as_columns(frame: pl.DataFrame) -> pl.DataFrame:
    """The columns of a frame as they are kept until they are prepared."""
    return pl.DataFrame([as_column(column) for column in frame.get_columns()])


def is_gap(column: pl.Series, words: bool = False) -> pl.Series:
    """Whether each value is missing, or a text that stands for a missing one; also one of the
    ``WORDS``, if asked."""
    if not is_text(column):
        return column.is_null()
    gaps = MISSING
    if words:
        gaps = MISSING | WORDS
    shown = column.cast(pl.String).str.strip_chars().str.to_lowercase()
    return shown.is_in(list(gaps)).fill_null(True)


def is_text(column: pl.Series) -> bool:
    """Whether a column holds texts."""
    return column.dtype in (pl.String, pl.Categorical, pl.Enum)


def is_category(column: pl.Series) -> bool:
    """Whether a column is one of categories by its type, whatever its values are."""
    return column.dtype in (pl.Categorical, pl.Enum)


def is_time(column: pl.Series) -> bool:
    """Whether a column holds dates, with or without a time of day."""
    return column.dtype == pl.Date or column.dtype == pl.Datetime


def numbers(column: pl.Series) -> pl.Series:
    """The values in double precision; null where one is missing, infinite, too large or no
    number."""
    if is_time(column):
        raise DataError(
            f"Column {column.name!r} holds dates, not numbers: prepare it with dates first."
        )
    # in seconds, as times of day are
    if column.dtype == pl.Duration:
        column = column.dt.total_microseconds() / 1e6
    elif column.dtype == pl.Time:
        column = column.cast(pl.Int64) / 1e9
    elif is_text(column):
        column = column.cast(pl.String).str.strip_chars()

    values = column.cast(pl.Float64, strict=False)
    too_large = ~(values.abs() <= LARGEST).fill_null(True)
    return values.set(too_large | values.is_nan().fill_null(False), None)


def texts(column: pl.Series) -> pl.Series:
    """The values as texts: whole numbers without a decimal point, whatever their type; null where
    one is empty."""
    if column.dtype.is_float():
        whole = column.cast(pl.Int64, strict=False)
        # a column of whole numbers becomes floats where one is missing: 7.0 is still the text '7'
        same = (whole.cast(pl.Float64) == column.cast(pl.Float64)).fill_null(False)
        shown = whole.cast(pl.String).zip_with(same, column.cast(pl.String))
    else:
        shown = column.cast(pl.String).str.strip_chars()
    return shown.set((shown == "").fill_null(False), None)


def booleans(column: pl.Series) -> pl.Series:
    """1 for yes, true, on; 0 for no, false, off; in any case; null for anything else."""
    words = texts(column).str.to_lowercase()
    yes = words.is_in(list(YES)).fill_null(False)
    no = words.is_in(list(NO)).fill_null(False)
    known = pl.Series(column.name, [None] * len(column), dtype=pl.Float64)
    return known.set(yes, 1.0).set(no, 0.0)


def times(
    column: pl.Series, zone: str | None, form: str | None, order: Order | Stated | None = None
) -> pl.Series:
    """Dates as local times in ``zone`` (UTC, where there is none but the values have one); null if
    unreadable.

    Texts are read in the ISO format, or as ``form`` says; with an ``order``, in all everyday
    formats.
    """
    if column.dtype == pl.Date:
        return column.cast(pl.Datetime("us"))
    if column.dtype == pl.Datetime:
        if column.dtype.time_zone is not None:  # type: ignore[attr-defined]
            column = column.dt.convert_time_zone(zone or "UTC").dt.replace_time_zone(None)
        return column.cast(pl.Datetime("us"))
    return in_zone(written_times(column, form, order), zone).alias(column.name)


def written_times(
    column: pl.Series, form: str | None, order: Order | Stated | None = None
) -> pl.DataFrame:
    """Texts of dates as ``moment``, as it is written, and ``offset``, the minutes of its zone
    before UTC, or null."""
    # each text once: a column of a million rows has a few thousand days
    shown = texts(column).rename("text")
    distinct = shown.drop_nulls().unique()
    if form is not None:
        read = _of_format(distinct, form)
    elif order is None:
        read = _of_iso(distinct)
    else:
        parts = date_parts(distinct)
        read = pl.DataFrame({"moment": moments(parts, order), "offset": parts["offset"]})
        others = read["moment"].is_null()
        if others.any():
            rest = _of_iso(distinct.filter(others))
            read = pl.concat([read.filter(~others), rest])
            distinct = pl.concat([distinct.filter(~others), distinct.filter(others)])

    places = pl.Series(range(len(distinct)), dtype=pl.Int64)
    # back from distinct texts to rows
    place = shown.replace_strict(distinct, places, default=None, return_dtype=pl.Int64)
    return pl.DataFrame([part.gather(place) for part in read.get_columns()])


def in_zone(written: pl.DataFrame, zone: str | None) -> pl.Series:
    """Moments as local times in ``zone``, or UTC; those without a zone as they are written."""
    moment = written["moment"]
    offset = written["offset"]
    if not offset.is_not_null().any():
        return moment

    in_utc = moment - (60_000_000 * offset).cast(pl.Duration("us"))
    if zone is not None and zone != "UTC":
        there = in_utc.dt.replace_time_zone("UTC").dt.convert_time_zone(zone)
        in_utc = there.dt.replace_time_zone(None)
    # else beyond the calendar, in another zone
    inside = in_utc.dt.year().is_between(1, 9999).fill_null(False)
    return in_utc.set(~inside, None).zip_with(offset.is_not_null(), moment)


def _of_format(distinct: pl.Series, form: str) -> pl.DataFrame:
    if form in COMPACT:
        widths = distinct.str.contains(COMPACT[form])
        read = distinct.set(~widths, None).str.to_datetime(form, strict=False, time_unit="us")
        no_offset = pl.Series([None] * len(read), dtype=pl.Int64)
        return pl.DataFrame({"moment": read, "offset": no_offset})
    return _one_by_one(distinct, lambda text: datetime.strptime(text, form))


def _of_iso(distinct: pl.Series) -> pl.DataFrame:
    """Texts in the ISO format: nearly all are read at once; what is left, such as 2024-W11, one by
    one."""
    # by the patterns of dates, which are much quicker than Python
    parts = date_parts(distinct.set(~distinct.str.contains(ISO), None))
    read = pl.DataFrame({"moment": moments(parts, "stated"), "offset": parts["offset"]})
    others = read["moment"].is_null() & distinct.str.contains("-", literal=True)
    if not others.any():
        return read

    rest = _one_by_one(distinct.filter(others), datetime.fromisoformat)

    # back into the order of the texts
    rows = pl.Series("row", range(len(distinct)), dtype=pl.Int64)
    both = [
        read.filter(~others).with_columns(rows.filter(~others)),
        rest.with_columns(rows.filter(others)),
    ]
    return pl.concat(both).sort("row").drop("row")


def _one_by_one(distinct: pl.Series, read: Callable[[str], datetime]) -> pl.DataFrame:
    """Moments that Python reads, as they are written, and the minutes of their zones."""
    local: list[datetime | None] = [None] * len(distinct)
    minutes: list[int | None] = [None] * len(distinct)
    for row, text in enumerate(distinct.to_list()):
        try:
            moment = read(text)
        except ValueError:  # it is no date in this format
            continue
        local[row] = moment.replace(tzinfo=None)
        offset = moment.utcoffset()
        if offset is not None:
            minutes[row] = round(offset.total_seconds() / 60)

    return pl.DataFrame(
        {
            "moment": pl.Series(local, dtype=pl.Datetime("us")),
            "offset": pl.Series(minutes, dtype=pl.Int64),
        }
    )


def _text(value: Any) -> str | None:
    if value is None or value != value:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    return str(value)
