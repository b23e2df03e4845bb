"""Zero mean and unit variance."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from mtcd.data.prepare.transformer import TRANSFORMERS, Fitted, Transformer
from mtcd.data.prepare.values import numbers


@dataclass(frozen=True)
class Standardised(Fitted):
    """The mean to subtract, and the deviation to divide by."""

    mean: float
    scale: float

    def apply(self, column: pl.Series) -> list[pl.Series]:
        return [(numbers(column) - self.mean) / self.scale]


@TRANSFORMERS.register("standardise")
@dataclass(frozen=True)
class Standardise(Transformer):
    """Zero mean and unit variance over the training rows; a constant column becomes 0."""

    fitted = Standardised

    def fit(self, column: pl.Series) -> Standardised:
        values = numbers(column).drop_nulls().to_numpy()
        if not len(values):
            return Standardised(0.0, 1.0)
        # by the values: rounding can leave a constant column a tiny variance
        if values.min() == values.max():
            return Standardised(float(values[0]), 1.0)
        return Standardised(float(values.mean()), float(values.std()))
