"""New samples for a trained model: from a table, a matrix or vertical data to the blocks of the
clients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self, cast

import numpy as np
import scipy  # its parts are loaded when they are used
from numpy.typing import ArrayLike, NDArray

from mtcd.core.arrays import Array, is_sparse, plain
from mtcd.core.errors import DataError
from mtcd.data.frames import AnyFrame, as_frame, check_has_columns
from mtcd.data.prepare import Preparations
from mtcd.data.vertical import Block, VerticalData
from mtcd.models.inputs import check_unambiguous, prepared_blocks

Samples = VerticalData | Mapping[str, ArrayLike] | ArrayLike


class TakesSamples:
    """A trained model of clients with columns. ``positions[k]`` tells where these stood in the
    original order."""

    clients: tuple[str, ...]
    columns: tuple[tuple[str, ...], ...]
    positions: tuple[tuple[int, ...], ...]
    preparations: Preparations | None

    def prepared_by(self, preparations: Preparations) -> Self:
        """The model with the preparations of its columns. Raises ValueError if they are of another
        model."""
        if preparations.outputs != self.columns:
            raise ValueError("the preparation is of another model")
        return cast(Self, replace(cast(Any, self), preparations=preparations))

    # The inverse of the positions: stacked parameters are put back with it in one step.
    def order(self) -> NDArray[np.intp]:
        """The position of each original column in the clients' stacked columns."""
        return np.argsort(
            np.concatenate([np.asarray(places, dtype=int) for places in self.positions])
        )

    def blocks_of(self, X: Any) -> tuple[Block, ...]:
        if self.preparations is not None:
            return prepared_blocks(self.preparations, self.clients, X)
        if isinstance(X, VerticalData):
            return self._matching(X)
        frame = as_frame(X)
        if frame is not None:
            return self._frame_blocks(frame)
        try:
            return self._matrix_blocks(
                scipy.sparse.csc_array(X) if is_sparse(X) else np.asarray(plain(X), dtype=float)
            )
        except (TypeError, ValueError):
            raise DataError(
                "The new samples are not a matrix of numbers, a table or vertical data."
            ) from None

    def _matching(self, X: VerticalData) -> tuple[Block, ...]:
        if X.clients != self.clients or X.columns != self.columns:
            raise DataError(
                "The new samples are split differently from those this model was trained on: "
                "give them the same clients with the same columns, or give a matrix."
            )
        return X.blocks

    def _frame_blocks(self, frame: AnyFrame) -> tuple[Block, ...]:
        """The columns of each client, by name, in any order; other columns are ignored."""
        wanted = [name for held in self.columns for name in held]
        check_unambiguous(self.columns)
        check_has_columns(frame, wanted)
        # By name and in any order: a table of new samples need not be written by the same program.
        place = {name: j for j, name in enumerate(frame.names)}
        matrix = frame.matrix([place[name] for name in wanted])
        return tuple(np.split(matrix, self._bounds(), axis=1))

    def _matrix_blocks(self, X: Array) -> tuple[Block, ...]:
        width = sum(len(names) for names in self.columns)
        if X.ndim != 2 or X.shape[1] != width:
            raise DataError(
                f"This model wants a matrix of the {width} columns that the clients hold, "
                f"but got one of shape {X.shape}."
            )
        # The inverse of `order`: where in the matrix each stacked column stands.
        place = np.empty(width, dtype=int)
        place[self.order()] = np.arange(width)
        return tuple(X[:, own] for own in np.split(place, self._bounds()))

    def _bounds(self) -> NDArray[np.intp]:
        """Where the columns of one client end and those of the next begin, client after client."""
        return np.cumsum([len(names) for names in self.columns])[:-1]
