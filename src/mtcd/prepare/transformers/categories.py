"""A number for every category, as a name: its size means nothing. For trees."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from mtcd.prepare.transformer import TRANSFORMERS, Transformer
from mtcd.prepare.transformers.ordinal import Ordered
from mtcd.prepare.values import texts


@dataclass(frozen=True)
class Named(Ordered):
    """The categories, by their numbers."""

    categorical = True
    reads, unread = "categories", "of no category in the training rows"


@TRANSFORMERS.register("categories")
@dataclass(frozen=True)
class Categories(Transformer):
    """0, 1, 2, ... for the categories, which trees split into any two sets; any other category counts as missing."""

    fitted = Named

    def fit(self, column: pl.Series) -> Named:
        return Named(tuple(texts(column).drop_nulls().unique().sort().to_list()))
