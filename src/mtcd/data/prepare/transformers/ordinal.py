"""A number for every category."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from mtcd.core.errors import ConfigError
from mtcd.data.prepare.transformer import TRANSFORMERS, Fitted, Transformer
from mtcd.data.prepare.values import texts


@dataclass(frozen=True)
class Ordered(Fitted):
    """The categories in their order."""

    categories: tuple[str, ...]
    knows_categories = True
    reads = "the categories of its order"
    unread = "not in its order"

    def apply(self, column: pl.Series) -> list[pl.Series]:
        places = pl.Series([float(i) for i in range(len(self.categories))], dtype=pl.Float64)
        order = pl.Series(list(self.categories), dtype=pl.String)
        return [
            texts(column)
            .replace_strict(order, places, default=None, return_dtype=pl.Float64)
            .alias(column.name)
        ]

    def unseen(self, column: pl.Series) -> pl.Series:
        return ~texts(column).is_in(list(self.categories)).fill_null(True)


@TRANSFORMERS.register("ordinal")
@dataclass(frozen=True)
class Ordinal(Transformer):
    """0, 1, 2, ... for the categories, in the ``order`` given or sorted; any other category counts
    as missing."""

    fitted = Ordered
    order: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.order is not None and len(set(self.order)) < len(self.order):
            raise ConfigError("prepare: ordinal: a category is in order twice.")

    def fit(self, column: pl.Series) -> Ordered:
        if self.order is not None:
            return Ordered(self.order)
        return Ordered(tuple(texts(column).drop_nulls().unique().sort().to_list()))
