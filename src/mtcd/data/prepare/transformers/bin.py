"""Numbers in bins between quantiles."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from mtcd.core.errors import ConfigError
from mtcd.data.prepare.transformer import TRANSFORMERS, Fitted, Transformer
from mtcd.data.prepare.values import numbers


@dataclass(frozen=True)
class Binned(Fitted):
    """The inner edges of the bins: bin i holds edges[i-1] <= x < edges[i]."""

    edges: tuple[float, ...]
    one_hot: bool

    def apply(self, column: pl.Series) -> list[pl.Series]:
        values = numbers(column)
        places = np.searchsorted(self.edges, values.fill_null(0.0).to_numpy(), side="right").astype(
            float
        )
        found = pl.Series(column.name, places).set(values.is_null(), None)
        if not self.one_hot:
            return [found]
        return [
            (found == i).cast(pl.Float64).alias(name)
            for i, name in enumerate(self._names(column.name))
        ]

    def _names(self, name: str) -> list[str]:
        if not self.edges:
            return [f"{name} (all)"]
        edges = [f"{edge:.6g}" for edge in self.edges]
        # six digits may not tell close edges apart, and names of columns must differ
        if len(set(edges)) < len(edges):
            edges = [repr(edge) for edge in self.edges]
        middle = [f"{name} [{a}, {b})" for a, b in itertools.pairwise(edges)]
        return [f"{name} < {edges[0]}", *middle, f"{name} >= {edges[-1]}"]


@TRANSFORMERS.register("bin")
@dataclass(frozen=True)
class Bin(Transformer):
    """``bins`` intervals between quantiles of the training rows, fewer where these coincide.

    One column of 0 and 1 for each (``encode: one-hot``), or the number of the bin (``encode:
    ordinal``).
    """

    fitted = Binned
    bins: int = 5
    encode: Literal["one-hot", "ordinal"] = "one-hot"

    def __post_init__(self) -> None:
        if self.bins < 2:
            raise ConfigError(f"prepare: bin: bins must be 2 or more, but is {self.bins}.")

    def fit(self, column: pl.Series) -> Binned:
        values = numbers(column).drop_nulls().to_numpy()
        if len(values):
            # a value that many rows have is several quantiles at once: it is one edge
            edges = np.unique(np.quantile(values, np.linspace(0, 1, self.bins + 1)))
        else:
            edges = np.zeros(0)
        return Binned(tuple(edges[1:-1].tolist()), self.encode == "one-hot")
