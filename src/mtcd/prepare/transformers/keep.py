"""Numbers as they are."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from mtcd.prepare.transformer import TRANSFORMERS, Fitted, Transformer
from mtcd.prepare.values import numbers


@dataclass(frozen=True)
class Kept(Fitted):
    """Nothing has to be known."""

    def apply(self, column: pl.Series) -> list[pl.Series]:
        return [numbers(column)]


@TRANSFORMERS.register("keep")
@dataclass(frozen=True)
class Keep(Transformer):
    """Numbers as they are."""

    fitted = Kept

    def fit(self, column: pl.Series) -> Kept:
        return Kept()
