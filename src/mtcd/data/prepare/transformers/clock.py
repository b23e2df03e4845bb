"""Times of day and durations as seconds."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from mtcd.data.prepare.clock_texts import clock_seconds
from mtcd.data.prepare.transformer import TRANSFORMERS, Stateless
from mtcd.data.prepare.values import is_text, numbers, texts


@TRANSFORMERS.register("clock")
@dataclass(frozen=True)
class Clock(Stateless):
    """The seconds of times of day and of durations: 14:30, 2:30 PM, 01:02:03, 2h 5m; anything else
    is missing."""

    reads, unread = "times of day", "no times of day"

    def apply(self, column: pl.Series) -> list[pl.Series]:
        if not is_text(column):
            return [numbers(column)]
        values = texts(column)
        distinct = values.drop_nulls().unique()
        return [
            values.replace_strict(
                distinct, clock_seconds(distinct), default=None, return_dtype=pl.Float64
            ).alias(column.name)
        ]
