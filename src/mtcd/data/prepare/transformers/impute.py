"""Fill in missing values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import polars as pl

from mtcd.core.errors import ConfigError
from mtcd.data.prepare.transformer import TRANSFORMERS, Fitted, Transformer
from mtcd.data.prepare.values import is_text, numbers, texts


@dataclass(frozen=True)
class Imputed(Fitted):
    """The value for missing ones: a number, or a text in a column of texts."""

    fill: float | str
    indicator: bool

    def apply(self, column: pl.Series) -> list[pl.Series]:
        # texts that are no numbers count as missing, too
        values = self._values(column)
        filled = [values.fill_null(self.fill)]
        if self.indicator:
            filled.append(values.is_null().cast(pl.Float64).alias(f"{column.name} (missing)"))
        return filled

    def unseen(self, column: pl.Series) -> pl.Series:
        return column.is_not_null() & self._values(column).is_null()

    def _values(self, column: pl.Series) -> pl.Series:
        if isinstance(self.fill, str):
            return texts(column)
        return numbers(column)


@TRANSFORMERS.register("impute")
@dataclass(frozen=True)
class Impute(Transformer):
    """Fill in the median, the mean, the most frequent value or a constant ``value`` for missing
    values.

    ``indicator`` adds a column that is 1 where the value was missing. A column without any value
    becomes 0.
    """

    fitted = Imputed
    strategy: Literal["median", "mean", "most-frequent", "constant"] = "median"
    value: float | str | None = None
    indicator: bool = False

    def __post_init__(self) -> None:
        if (self.value is None) == (self.strategy == "constant"):
            raise ConfigError(
                "prepare: impute: the strategy 'constant' needs a value, and others have none."
            )

    def fit(self, column: pl.Series) -> Imputed:
        return Imputed(self._fill(column), self.indicator)

    def _fill(self, column: pl.Series) -> float | str:
        if self.value is not None:
            return self.value
        if self.strategy == "most-frequent":
            return _most_frequent(column)

        found = numbers(column).mean()
        if self.strategy == "median":
            found = numbers(column).median()
        if found is None:
            return 0.0
        return float(found)  # type: ignore[arg-type]


def _most_frequent(column: pl.Series) -> float | str:
    values = numbers(column)
    if is_text(column):
        values = texts(column)

    # sorted: of several that are as frequent, every process takes the same
    modes = values.drop_nulls().mode().sort()
    if not len(modes):
        return 0.0
    most: float | str = modes[0]
    return most
