"""A column of 0 and 1 for every category."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from mtcd.core.errors import ConfigError
from mtcd.data.prepare.transformer import NEW_CATEGORY, TRANSFORMERS, Fitted, Transformer
from mtcd.data.prepare.values import texts


@dataclass(frozen=True)
class OneHotted(Fitted):
    """The categories with a column of their own, the rare ones, and whether missing values have a
    column."""

    categories: tuple[str, ...]
    rare: tuple[str, ...]
    missing: bool
    knows_categories = True
    unread, instead = NEW_CATEGORY, "count as other"

    def apply(self, column: pl.Series) -> list[pl.Series]:
        values = texts(column)
        known = values.is_in(list(self.categories)).fill_null(self.missing)
        found = {f"{column.name}={category}": values == category for category in self.categories}
        if self.missing:
            found[f"{column.name} (missing)"] = values.is_null()
        other = "other" if "other" not in self.categories else "(other)"
        # new samples may be of a category that nobody has seen
        found[f"{column.name}={other}"] = ~known
        return [
            flags.fill_null(False).cast(pl.Float64).alias(name) for name, flags in found.items()
        ]

    def unseen(self, column: pl.Series) -> pl.Series:
        return ~texts(column).is_in([*self.categories, *self.rare]).fill_null(True)


@TRANSFORMERS.register("one-hot")
@dataclass(frozen=True)
class OneHot(Transformer):
    """A column of 0 and 1 for every category, in sorted order, and one for all others.

    Others are categories with fewer than ``min_count`` training rows, those beyond the
    ``max_categories`` most frequent ones, and those that no training row has. Missing values have a
    column of their own where a training row misses its value, and are others elsewhere.
    """

    fitted = OneHotted
    min_count: int = 1
    max_categories: int | None = None

    def __post_init__(self) -> None:
        if self.min_count < 1 or (self.max_categories is not None and self.max_categories < 1):
            raise ConfigError("prepare: one-hot: min_count and max_categories must be 1 or more.")

    def fit(self, column: pl.Series) -> OneHotted:
        values = texts(column)
        counts = dict(values.drop_nulls().value_counts().iter_rows())
        # equal counts by name: every process makes the same columns
        ranked = sorted(counts, key=lambda category: (-counts[category], category))
        own = [
            category
            for category in ranked[: self.max_categories]
            if counts[category] >= self.min_count
        ]
        return OneHotted(
            tuple(sorted(own)), tuple(sorted(set(counts) - set(own))), bool(values.null_count())
        )
