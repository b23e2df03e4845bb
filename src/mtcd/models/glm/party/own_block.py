"""What the blocks of linear and additive models share: the columns of new samples, and the file
``block.npz``."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtcd.core.arrays import Array
from mtcd.core.errors import DataError, listing
from mtcd.core.files import plain
from mtcd.data.checks import check_values
from mtcd.data.prepare import ColumnPreparation
from mtcd.federation.participant.table import PartyTable
from mtcd.models.glm.party.problem import prepared_values

NPZ = "block.npz"
FORMAT = 1


class OwnBlock:
    """The trained block of one party, with the preparation of its columns."""

    party: str
    columns: tuple[str, ...]
    classes: tuple[str | float, ...]
    preparation: ColumnPreparation | None
    """What makes ``columns`` of the columns as given, if these are prepared."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns of a table, before preparation."""
        return self.columns if self.preparation is None else self.preparation.inputs

    def values(self, table: PartyTable) -> Array:
        """The values of new samples, prepared as those of the training were."""
        if table.columns != self.inputs:
            raise DataError(
                f"{table.path}: the block of {self.party!r} was trained on the columns "
                f"{listing(self.inputs)}, but "
                f"these are {listing(table.columns)}: read the new samples with the same columns, "
                f"in that order."
            )
        X = prepared_values(self.preparation, table)
        check_values(
            self.party,
            self.columns,
            X,
            self.preparation is not None and self.preparation.keeps_missing,
        )
        return X

    def npz(self, about: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
        """A file of these arrays, and of what the block is about."""
        shared = {
            "format": FORMAT,
            "party": self.party,
            "columns": self.columns,
            "classes": self.classes,
        }
        prepared = {} if self.preparation is None else {"preparation": self.preparation.to_json()}
        content = io.BytesIO()
        written = np.array(json.dumps({**shared, **about, **prepared}, default=plain))
        np.savez(content, about=written, **arrays)  # type: ignore[arg-type]
        return content.getvalue()


def check_format(about: Mapping[str, Any]) -> None:
    """Refuse a file of another format."""
    if about["format"] != FORMAT:
        raise ValueError(
            f"its format is {about['format']}, but this version of mtcd reads {FORMAT}"
        )


def preparation_of(about: Mapping[str, Any]) -> ColumnPreparation | None:
    """The preparation that a file describes. Raises ValueError if it is not of the block's
    columns."""
    if "preparation" not in about:
        return None
    preparation = ColumnPreparation.from_json(about["preparation"])
    if preparation.outputs != tuple(about["columns"]):
        raise ValueError("its parts do not belong together")
    return preparation
