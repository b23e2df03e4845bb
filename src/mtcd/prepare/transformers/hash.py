"""Categories hashed into a fixed number of columns."""

from __future__ import annotations

from dataclasses import dataclass
from zlib import crc32

import numpy as np
import polars as pl

from mtcd.errors import ConfigError
from mtcd.prepare.transformer import TRANSFORMERS, Stateless
from mtcd.prepare.values import texts

MOST_COLUMNS = 65_536


@TRANSFORMERS.register("hash")
@dataclass(frozen=True)
class Hash(Stateless):
    """1 in one of ``columns`` columns, chosen by a checksum (CRC-32) of the category; a missing value gives 0 in all.

    Categories may share a column. None has to be known before, so that none is unseen.
    """

    columns: int = 32

    def __post_init__(self) -> None:
        if not 2 <= self.columns <= MOST_COLUMNS:
            raise ConfigError(f"prepare: hash: columns must be from 2 to {MOST_COLUMNS}, but is {self.columns}.")

    def apply(self, column: pl.Series) -> list[pl.Series]:
        values = texts(column)
        distinct = values.drop_nulls().unique()
        places = pl.Series([crc32(text.encode()) % self.columns for text in distinct.to_list()], dtype=pl.Int64)
        found = values.replace_strict(distinct, places, default=-1, return_dtype=pl.Int64).to_numpy()
        flags = np.zeros((self.columns, len(values)))
        known = np.flatnonzero(found >= 0)
        flags[found[known], known] = 1.0
        return [pl.Series(f"{column.name}#{i}", row) for i, row in enumerate(flags)]
