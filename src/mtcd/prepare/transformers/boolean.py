"""Yes and no as 1 and 0."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from mtcd.prepare.transformer import TRANSFORMERS, Fitted, Transformer
from mtcd.prepare.values import booleans


@dataclass(frozen=True)
class BooleanRead(Fitted):
    """Nothing has to be known."""

    def apply(self, column: pl.Series) -> list[pl.Series]:
        return [booleans(column)]


@TRANSFORMERS.register("boolean")
@dataclass(frozen=True)
class Boolean(Transformer):
    """1 for yes, y, true, t, on and 1; 0 for no, n, false, f, off and 0; anything else is missing."""

    fitted = BooleanRead

    def fit(self, column: pl.Series) -> BooleanRead:
        return BooleanRead()
