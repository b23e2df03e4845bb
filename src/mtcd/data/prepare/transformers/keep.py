"""Numbers as they are."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from mtcd.data.prepare.transformer import TRANSFORMERS, Stateless
from mtcd.data.prepare.values import numbers


@TRANSFORMERS.register("keep")
@dataclass(frozen=True)
class Keep(Stateless):
    """Numbers as they are."""

    def apply(self, column: pl.Series) -> list[pl.Series]:
        return [numbers(column)]
