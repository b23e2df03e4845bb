"""Categories hashed into a fixed number of columns."""

from __future__ import annotations

from dataclasses import dataclass
from zlib import crc32

import numpy as np
import polars as pl

from mtcd.core.errors import ConfigError
from mtcd.data.prepare.transformer import NEW_CATEGORY, TRANSFORMERS, Fitted, Transformer
from mtcd.data.prepare.values import texts

MOST_COLUMNS = 65_536
MOST_KNOWN = 10_000
"""Of more categories in the training rows, it is not kept which these are."""


@dataclass(frozen=True)
class Hashed(Fitted):
    """The number of columns, and the checksums of the categories of the training rows, if these are
    not too many."""

    columns: int
    known: tuple[int, ...] | None = None
    reads = "texts"
    unread = NEW_CATEGORY
    instead = "take the columns of others"

    def __post_init__(self) -> None:
        check_columns(self.columns)

    def apply(self, column: pl.Series) -> list[pl.Series]:
        sums = _checksums(column)
        found = (sums % self.columns).fill_null(-1).to_numpy()
        flags = np.zeros((self.columns, len(column)))
        known = np.flatnonzero(found >= 0)
        flags[found[known], known] = 1.0
        return [pl.Series(f"{column.name}#{i}", row) for i, row in enumerate(flags)]

    def news(self, column: pl.Series) -> pl.Series:
        if self.known is None:
            return self.unseen(column)
        return ~_checksums(column).is_in(list(self.known)).fill_null(True)


@TRANSFORMERS.register("hash")
@dataclass(frozen=True)
class Hash(Transformer):
    """1 in one of ``columns`` columns, chosen by a checksum (CRC-32) of the category; a missing
    value gives 0 in all.

    Categories may share a column. None has to be known before, so that none is refused.
    """

    fitted = Hashed
    columns: int = 32

    def __post_init__(self) -> None:
        check_columns(self.columns)

    def fit(self, column: pl.Series) -> Hashed:
        distinct = _checksums(column).drop_nulls().unique().sort()
        return Hashed(
            self.columns, tuple(distinct.to_list()) if len(distinct) <= MOST_KNOWN else None
        )


def check_columns(columns: int) -> None:
    """Refuse fewer than 2 columns, and more than anyone needs."""
    if not 2 <= columns <= MOST_COLUMNS:
        raise ConfigError(
            f"prepare: hash: columns must be from 2 to {MOST_COLUMNS}, but is {columns}."
        )


def _checksums(column: pl.Series) -> pl.Series:
    """A checksum of each text; null of a missing one."""
    values = texts(column)
    distinct = values.drop_nulls().unique()
    # not hash(), which Python salts anew in every process
    sums = pl.Series([crc32(text.encode()) for text in distinct.to_list()], dtype=pl.Int64)
    return values.replace_strict(distinct, sums, default=None, return_dtype=pl.Int64)
