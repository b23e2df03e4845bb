"""New samples for a trained model: from a table, a matrix or vertical data to the blocks of the
clients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self, cast

import numpy as np
import polars as pl
import scipy
from numpy.typing import ArrayLike, NDArray

from mtcd.core.arrays import Array, is_sparse, plain
from mtcd.core.errors import DataError, warn_of_data
from mtcd.core.mappings import positions
from mtcd.data.frames import UNEQUAL, AnyFrame, as_frame, check_has_columns
from mtcd.data.prepare import Preparations
from mtcd.data.prepare.values import as_columns
from mtcd.data.vertical import Block, VerticalData


def prepared_blocks(
    preparations: Preparations, clients: Sequence[str], X: Any
) -> tuple[Array, ...]:
    """The blocks of new samples: a table, one table per client, vertical data, or a matrix of
    numbers."""
    # The same preparations have made these blocks: applying them once more would be wrong.
    if isinstance(X, VerticalData) and X.preparations is preparations:
        return X.blocks
    frames = raw_frames(preparations, clients, X)
    # Blocks of different heights would fail only when they are multiplied, far from here.
    if len({frame.height for frame in frames}) > 1:
        raise DataError(
            "The new samples of the clients are not equally many: give every sample a value in "
            "each column."
        )
    columns = [as_columns(frame) for frame in frames]
    blocks = preparations.apply(columns)
    if odd := preparations.notes_on_new(clients, columns):
        warn_of_data(f"New samples are not all as the training rows were. {' '.join(odd)}")
    return blocks


def raw_frames(
    preparations: Preparations, clients: Sequence[str], X: Any
) -> Sequence[pl.DataFrame]:
    """The columns of each client as given."""
    inputs = preparations.inputs
    if isinstance(X, VerticalData):
        return _of_vertical(inputs, clients, X)
    if isinstance(X, Mapping) and set(clients) <= set(X):
        tables = [as_frame(X[client]) for client in clients]
        if all(tables):
            frames = []
            for table, names in zip(tables, inputs, strict=True):
                if table:
                    frames.append(_columns(table, names))
            return frames
    frame = as_frame(X)
    if frame is not None:
        check_unambiguous(inputs)
        check_has_columns(frame, [name for names in inputs for name in names])
        return [_columns(frame, names) for names in inputs]
    return _of_matrix(preparations, X)


def check_unambiguous(columns: Sequence[Sequence[str]]) -> None:
    """Refuse one table for all clients, if two of them have a column of one name."""
    wanted = [name for held in columns for name in held]
    if len(set(wanted)) < len(wanted):
        twice = next(name for i, name in enumerate(wanted) if name in wanted[:i])
        raise DataError(
            f"Two clients have a column {twice!r}, which are ambiguous in one table: give vertical "
            f"data or a matrix."
        )


def _columns(frame: AnyFrame, names: Sequence[str]) -> pl.DataFrame:
    check_has_columns(frame, names)
    place = positions(frame.names)
    columns = [frame.series(place[name]) for name in names]
    if len({len(column) for column in columns}) > 1:
        raise DataError(UNEQUAL)
    return pl.DataFrame(columns)


def _of_vertical(
    inputs: Sequence[Sequence[str]], clients: Sequence[str], X: VerticalData
) -> Sequence[pl.DataFrame]:
    frames: Sequence[pl.DataFrame]
    if X.raw is not None:
        columns = tuple(tuple(frame.columns) for frame in X.raw.frames)
        frames = X.raw.frames
    else:
        columns = X.columns
        made = []
        for names, block in zip(columns, X.blocks, strict=True):
            made.append(pl.DataFrame(dict(zip(names, block.T, strict=True))))
        frames = made
    if X.clients != tuple(clients) or columns != tuple(tuple(names) for names in inputs):
        raise DataError(
            "The new samples are split differently from those this model was trained on: give them "
            "the same clients "
            "with the same columns, as they were before they were prepared, or give a table."
        )
    return frames


def _of_matrix(preparations: Preparations, X: Any) -> list[pl.DataFrame]:
    places = preparations.positions
    # A permutation sorted twice by argsort gives ranks: a matrix has all columns side by side,
    # while positions may skip those that no client holds.
    order = np.argsort(np.argsort(np.concatenate([np.asarray(own, dtype=int) for own in places])))
    try:
        matrix = np.asarray(X.toarray() if is_sparse(X) else plain(X), dtype=float)
    except (TypeError, ValueError):
        raise DataError(
            "The new samples are not a table with named columns, a matrix of numbers or vertical "
            "data."
        ) from None
    if matrix.ndim != 2 or matrix.shape[1] != len(order):
        raise DataError(
            f"This model wants a table with the {len(order)} columns that the clients hold, or a "
            f"matrix of them, but got one of shape {matrix.shape}."
        )
    bounds = np.cumsum([len(own) for own in places])[:-1]
    frames = []
    for names, own in zip(preparations.inputs, np.split(order, bounds), strict=True):
        columns = {name: matrix[:, j] for name, j in zip(names, own, strict=True)}
        frames.append(pl.DataFrame(columns))
    return frames


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
        place = positions(frame.names)
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
