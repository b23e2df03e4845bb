"""Numbers in an everyday format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import polars as pl

from mtcd.core.errors import ConfigError
from mtcd.data.prepare.number_texts import read_numbers, zero_needs_no
from mtcd.data.prepare.transformer import TRANSFORMERS, Stateless
from mtcd.data.prepare.units import canonical
from mtcd.data.prepare.values import is_text, numbers, texts


@TRANSFORMERS.register("number")
@dataclass(frozen=True)
class Number(Stateless):
    """Numbers such as 1.234,5 or $1,234.50 or (12): with this ``decimal`` mark and ``unit``.

    Thousands may be separated; a minus may be a trailing one or parentheses. Values of another unit
    count as missing, and those without one where ``bare`` is false. A bound such as <0.5 counts as
    missing, or as its number (``limits: value``).
    """

    decimal: Literal[".", ","] = "."
    unit: str = ""
    limits: Literal["missing", "value"] = "missing"
    bare: bool = True

    def __post_init__(self) -> None:
        if self.unit != self.unit.strip():
            raise ConfigError(f"prepare: number: unit is {self.unit!r}: leave out its spaces.")

    def apply(self, column: pl.Series) -> list[pl.Series]:
        if not is_text(column):
            values = numbers(column)
            return [values if not self.unit or self.bare else self._without_unit(values)]
        unit = canonical(self.unit) or self.unit.lower()
        return [read_numbers(texts(column), self.decimal, unit, self.bare, self.limits == "value")]

    def _without_unit(self, values: pl.Series) -> pl.Series:
        """Numbers that have no unit, where they should: only 0 is known."""
        known = (values == 0.0).fill_null(False) & zero_needs_no(canonical(self.unit) or self.unit)
        return values.set(~known, None)
