"""The automatic choice of steps for a column, by its type and its training values."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from mtcd.prepare.transformer import Transformer, make_transformer
from mtcd.prepare.values import booleans, is_gap, is_text, is_time, numbers, texts, times

MOST_CATEGORIES = 40
"""Texts with more distinct values are hashed."""


def automatic_steps(column: pl.Series) -> tuple[Transformer, ...]:
    """Numbers: impute the median, standardise. Dates: the same for their parts. Texts: by their values."""
    number = (make_transformer("impute", {}), make_transformer("standardise", {}))
    dated = (make_transformer("dates", {}), *number)
    yes_no = (make_transformer("boolean", {}), make_transformer("impute", {"strategy": "most-frequent"}))
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
    if len(known) <= MOST_CATEGORIES:
        return (make_transformer("one-hot", {}),)
    return (make_transformer("hash", {}),)


def _all_read(read: Callable[[pl.Series], pl.Series], values: pl.Series) -> bool:
    """Whether all values, the first few of them first, can be read in this way."""
    return not read(values.head(20)).null_count() and not read(values).null_count()
