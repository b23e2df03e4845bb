"""What the blocks of linear and additive models share: the columns of new samples, and the file
``block.npz``."""

from __future__ import annotations

import io
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from mtcd.core.arrays import Array
from mtcd.core.errors import DataError, MtcdError, listing
from mtcd.core.files import plain
from mtcd.data.checks import check_values
from mtcd.data.prepare import ColumnPreparation
from mtcd.federation.participant.table import PartyTable
from mtcd.models.glm.party.problem import prepared_values
from mtcd.models.predicted import Columns

B = TypeVar("B", bound="OwnBlock")
NPZ = "block.npz"
FORMAT = 1


class OwnBlock(ABC):
    """The trained block of one party, with the preparation of its columns."""

    party: str
    columns: tuple[str, ...]
    classes: tuple[str | float, ...]
    preparation: ColumnPreparation | None
    """What makes ``columns`` of the columns as given, if these are prepared."""

    @property
    @abstractmethod
    def finite(self) -> bool:
        """Whether all numbers are finite: if not, the training diverged."""

    @property
    @abstractmethod
    def outputs(self) -> int:
        """The width of a representation."""

    @abstractmethod
    def represent(self, table: PartyTable) -> Array:
        """h_k of new samples, in the order of their table."""

    @abstractmethod
    def columns_of(self, aggregate: Array) -> Columns:
        """The predictions for the sum of all parties' h_k, with the probabilities of classes or
        scores."""

    @abstractmethod
    def files(self) -> dict[str, bytes]:
        """The block as files, by name."""

    @property
    def width(self) -> int:
        """The numbers per sample in a sum over all parties."""
        return self.outputs

    def contribution(self, table: PartyTable) -> NDArray[Any]:
        """h_k of new samples, with a column for each output."""
        return self.represent(table).reshape(table.rows, self.width)

    def decided(self, sums: NDArray[np.float64]) -> Columns:
        """The predictions for the sum of all parts, with probabilities or scores."""
        return self.columns_of(by_sample(sums))

    @property
    def told_classes(self) -> tuple[str | float, ...]:
        """The classes of the labels, which a server does not know."""
        return self.classes

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns of a table, before preparation."""
        if self.preparation is None:
            return self.columns
        return self.preparation.inputs

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
        if self.preparation is not None:
            shared["preparation"] = self.preparation.to_json()
        content = io.BytesIO()
        written = np.array(json.dumps({**shared, **about}, default=plain))
        np.savez(content, about=written, **arrays)  # type: ignore[arg-type]
        return content.getvalue()


def by_sample(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sums as models take them: one number per sample where there is one output."""
    if sums.shape[1] == 1:
        return sums[:, 0]
    return sums


def read_npz(folder: Path, made: Callable[[dict[str, Any], dict[str, NDArray[Any]]], B]) -> B:
    """Read the block of a run folder.

    Parameters
    ----------
    folder
        The run folder.
    made
        The block from what it is about and from its arrays; raises ValueError, KeyError or
        TypeError if these do not belong together.
    """
    path = folder / NPZ
    try:
        # Read whole before it is decoded: NumPy's errors for a damaged zip depend on when it is
        # noticed.
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as stored:
            arrays = dict(stored)
        return made(json.loads(str(arrays["about"])), arrays)
    except FileNotFoundError:
        raise MtcdError(
            f"There is no {NPZ} in {folder}: the run has not ended, it diverged, or this is not "
            f"its folder (--run)."
        ) from None
    except (OSError, KeyError, TypeError, ValueError, EOFError, BadZipFile, MtcdError) as error:
        raise MtcdError(f"{path} is not a whole block ({type(error).__name__}: {error}).") from None


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
