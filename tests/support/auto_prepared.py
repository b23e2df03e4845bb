"""One column prepared as a table with it would be."""

import json
from typing import Any

import numpy as np
import polars as pl

from mtcd.data.prepare import ColumnPreparation, read_recipe
from mtcd.data.prepare.preparation import fit_columns
from mtcd.data.prepare.values import as_column


def prepared(values: Any, prepare: Any = "auto") -> tuple[ColumnPreparation, np.ndarray, str]:
    frame = pl.DataFrame([as_column(pl.Series("x", values))])
    preparation, block, notes = fit_columns("k", frame, read_recipe(prepare))
    return preparation, block, " ".join(notes)


def new(preparation: ColumnPreparation, values: Any) -> np.ndarray:
    """As in a prediction, after the preparation was kept."""
    again = ColumnPreparation.from_json(json.loads(json.dumps(preparation.to_json())))
    assert again == preparation
    return again.apply(pl.DataFrame([as_column(pl.Series("x", values))]))
