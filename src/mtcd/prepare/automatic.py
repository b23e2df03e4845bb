"""The automatic choice of steps for a column, by its type and its training values."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from mtcd.prepare.transformer import Transformer, make_transformer
from mtcd.prepare.values import booleans, is_gap, is_text, is_time, numbers, texts, times

MOST_CATEGORIES = 40
"""Texts with more distinct values are hashed."""


def automatic_steps(column: pl.Series, keep_missing: bool = False) -> tuple[Transformer, ...]:
    """Numbers: impute the median, standardise. Dates: the same for their parts. Texts: by their values.

    With ``keep_missing``, for trees: numbers as they are, texts as categories; nothing is imputed.
    """
    number, dated, yes_no = _steps_of_kinds(keep_missing)
    if is_time(column):
        return dated
    if column.dtype == pl.Boolean:
        return yes_no
    if not is_text(column):
        return number
    known = texts(column).drop_nulls().unique()
    without_gaps = known.filter(~is_gap(known))
    if _all_read(numbers, without_gaps):
        return number
    if _all_read(booleans, without_gaps):
        return yes_no
    if _all_read(lambda values: times(values, None, None), without_gaps):
        return dated
    if keep_missing:
        return (make_transformer("categories", {}),)
    if len(known) <= MOST_CATEGORIES:
        return (make_transformer("one-hot", {}),)
    return (make_transformer("hash", {}),)


def _steps_of_kinds(keep_missing: bool) -> list[tuple[Transformer, ...]]:
    """The steps of numbers, of dates, and of yes and no."""
    date, boolean = make_transformer("dates", {}), make_transformer("boolean", {})
    if keep_missing:
        return [(make_transformer("keep", {}),), (date,), (boolean,)]
    number = (make_transformer("impute", {}), make_transformer("standardise", {}))
    return [number, (date, *number), (boolean, make_transformer("impute", {"strategy": "most-frequent"}))]


def _all_read(read: Callable[[pl.Series], pl.Series], values: pl.Series) -> bool:
    """Whether all values, the first few of them first, can be read in this way."""
    return not read(values.head(20)).null_count() and not read(values).null_count()
