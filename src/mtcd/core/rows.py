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
    """A list of rows. A row may lack a column that others have; its value is then missing.

    Examples
    --------
    >>> rows = Rows([{"hop": 0, "objective": 0.69}, {"hop": 8, "objective": 0.31, "auc": 0.9}])
    >>> rows.columns
    ['hop', 'objective', 'auc']
    >>> rows.to_csv().splitlines()
    ['hop,objective,auc', '0,0.69,', '8,0.31,0.9']
    """

    @property
    def columns(self) -> list[str]:
        """The names of all columns."""
        # A dict, not a set: columns stand in the order in which they first occur.
        return list(dict.fromkeys(name for row in self for name in row))

    def to_polars(self) -> pl.DataFrame:
        """A data frame of polars; missing values are null."""
        import polars as pl

        series = []
        for name in self.columns:
            # Not strict: a column may hold whole numbers in one row and reals in another.
            values = pl.Series(name, [row.get(name) for row in self], strict=False)
            if values.dtype == pl.Null:  # nothing is known of this column: numbers, as of others
                values = values.cast(pl.Float64)
            series.append(values)

        return pl.DataFrame(series)

    def to_pandas(self) -> pd.DataFrame:
        """A data frame of pandas; missing numbers are NaN."""
        columns = {values.name: values.to_numpy() for values in self.to_polars()}
        frame: pd.DataFrame = find("pandas").DataFrame(columns)
        return frame

    def to_csv(self) -> str:
        """The text of a CSV file; numbers are written so that they read back exactly."""
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, fieldnames=self.columns)
        writer.writeheader()
        writer.writerows(self)
        return text.getvalue()
