"""A number for every category, as a name: its size means nothing. For trees."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from mtcd.core.errors import ConfigError
from mtcd.data.prepare.transformer import NEW_CATEGORY, TRANSFORMERS, Transformer
from mtcd.data.prepare.transformers.ordinal import Ordered
from mtcd.data.prepare.values import texts


@dataclass(frozen=True)
class Named(Ordered):
    """The categories, by their numbers."""

    categorical = True
    reads, unread = "categories", NEW_CATEGORY


@TRANSFORMERS.register("categories")
@dataclass(frozen=True)
class Categories(Transformer):
    """0, 1, 2, ... for the categories, which trees split into any two sets, in the ``order`` given
    or sorted.

    Any other category counts as missing.
    """

    fitted = Named
    order: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.order is not None and len(set(self.order)) < len(self.order):
            raise ConfigError("prepare: categories: a category is in order twice.")

    def fit(self, column: pl.Series) -> Named:
        if self.order is not None:
            return Named(self.order)
        return Named(tuple(texts(column).drop_nulls().unique().sort().to_list()))
