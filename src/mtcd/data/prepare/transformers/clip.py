"""Numbers cut off at quantiles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from mtcd.core.errors import ConfigError
from mtcd.data.prepare.transformer import TRANSFORMERS, Fitted, Transformer
from mtcd.data.prepare.values import numbers


@dataclass(frozen=True)
class Clipped(Fitted):
    """The least and the largest value."""

    least: float
    largest: float

    def apply(self, column: pl.Series) -> list[pl.Series]:
        return [numbers(column).clip(self.least, self.largest)]


@TRANSFORMERS.register("clip")
@dataclass(frozen=True)
class Clip(Transformer):
    """Values below the quantile ``lower`` or above the quantile ``upper`` of the training rows
    become these."""

    fitted = Clipped
    lower: float = 0.01
    upper: float = 0.99

    def __post_init__(self) -> None:
        if not 0 <= self.lower < self.upper <= 1:
            raise ConfigError(
                "prepare: clip: lower and upper are quantiles, 0 <= lower < upper <= 1, not "
                f"{self.lower} and {self.upper}."
            )

    def fit(self, column: pl.Series) -> Clipped:
        values = numbers(column).drop_nulls().to_numpy()
        if not len(values):
            return Clipped(0.0, 0.0)
        least, largest = np.quantile(values, [self.lower, self.upper])
        return Clipped(float(least), float(largest))
