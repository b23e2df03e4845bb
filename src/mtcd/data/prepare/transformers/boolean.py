"""Yes and no as 1 and 0."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from mtcd.data.prepare.transformer import TRANSFORMERS, Stateless
from mtcd.data.prepare.values import booleans


@TRANSFORMERS.register("boolean")
@dataclass(frozen=True)
class Boolean(Stateless):
    """1 for yes, y, true, t, on and 1; 0 for no, n, false, f, off and 0; anything else is
    missing."""

    reads, unread = "yes and no", "neither yes nor no"

    def apply(self, column: pl.Series) -> list[pl.Series]:
        return [booleans(column)]
