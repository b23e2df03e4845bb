"""Rows of a table by the names of their columns: a list of dicts that becomes a data frame or a CSV
file."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

from mtcd.core.optional import find

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


class Rows(list[dict[str, Any]]):
    """A list of rows. A row may lack a column that others have; its value is then missing."""

    @property
    def columns(self) -> list[str]:
        """The names of all columns."""
        return list(dict.fromkeys(name for row in self for name in row))

    def to_polars(self) -> pl.DataFrame:
        """A data frame of polars; missing values are null."""
        import polars as pl

        made = [
            pl.Series(name, [row.get(name) for row in self], strict=False) for name in self.columns
        ]
        return pl.DataFrame([one.cast(pl.Float64) if one.dtype == pl.Null else one for one in made])

    def to_pandas(self) -> pd.DataFrame:
        """A data frame of pandas; missing numbers are NaN."""
        made: pd.DataFrame = find("pandas").DataFrame(
            {one.name: one.to_numpy() for one in self.to_polars()}
        )
        return made

    def to_csv(self) -> str:
        """The text of a CSV file; numbers are written so that they read back exactly."""
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, fieldnames=self.columns)
        writer.writeheader()
        writer.writerows(self)
        return text.getvalue()
