"""split(): the columns of a matrix or data frame, split over clients."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
import polars as pl
import scipy  # its parts are loaded when they are used
from numpy.typing import ArrayLike

from mtcd.core.arrays import Array, is_sparse, plain
from mtcd.core.errors import DataError
from mtcd.data.frames import UNEQUAL, AnyFrame, as_frame, check_distinct, check_row_order
from mtcd.data.labels import as_labels, as_weights
from mtcd.data.prepare import RawColumns
from mtcd.data.shares import assigned
from mtcd.data.vertical import Block, VerticalData, in_order, prepared, told


def split(
    X: Any,
    y: ArrayLike,
    clients: int
    | Mapping[str, Iterable[Any] | slice]
    | Sequence[str]
    | Sequence[Iterable[Any] | slice],
    columns: Sequence[str] | None = None,
    prepare: Any = None,
    weights: ArrayLike | None = None,
) -> VerticalData:
    """Split the columns of a matrix or data frame over clients.

    What ``prepare`` guesses or cannot read is in the ``notes`` of the data, and a
    :class:`mtcd.DataWarning`. Columns that nobody holds need not be numeric.

    Parameters
    ----------
    X : matrix, tensor or table
        A matrix, dense or sparse (which stays sparse), or a tensor, or a table with named columns:
        a data frame of pandas or polars, an Arrow table, a dict of columns.
    y : array, series or frame of one column
        A label per row.
    clients : int, sequence or mapping
        Their number or a list of their names (columns are split evenly, in order), a list with the
        columns of each client, or a mapping from names to columns. Columns are given by name or
        position, or as a slice of positions; in a table that has whole numbers for names, a whole
        number is a name.
    columns : sequence of str, optional
        Names for the columns of a matrix, or new names for those of a table.
    prepare : 'auto' or mapping, optional
        Turns texts, dates and missing values into numbers: 'auto', a mapping as under
        ``data.prepare`` in a config, or a mapping from clients to these or to transformers of
        scikit-learn. It is fitted on the samples that are trained on, and kept with the model
        (docs/prepare.md).
    weights : array, optional
        A number of 0 or more per row, by which its loss counts.

    Returns
    -------
    VerticalData
        The samples, split over the clients.

    Raises
    ------
    MtcdError
        If a column does not exist, is held twice, or has values that are not finite numbers.

    Examples
    --------
    >>> data = split({"age": [41, 52, 33], "dose": [1, 2, 2], "stay": [3, 9, 4]}, [0, 1, 0], clients=2)
    >>> data.clients, data.columns, data.blocks[1].shape
    (('client_0', 'client_1'), (('age', 'dose'), ('stay',)), (3, 1))
    """
    if prepare is not None and is_sparse(X):
        raise DataError(
            "prepare is for tables and dense matrices, but X is sparse: prepare it yourself."
        )

    given = _given(X)
    names, labels = given.names, given.labels
    if columns is not None:
        names, labels = [str(column) for column in columns], ()
    if len(names) != given.width:
        raise DataError(
            f"The data has {given.width} columns, but {len(names)} column names were given."
        )
    # two columns of one name could not be told apart by whoever holds them
    check_distinct(names)
    # features of one person with the label of another would train without an error
    check_row_order(X, y)

    owned = assigned(names, labels, clients)
    positions = tuple(tuple(places) for places in owned.values())
    held = tuple(tuple(names[j] for j in places) for places in positions)
    weighing = None
    if weights is not None:
        weighing = as_weights(X, weights)

    if prepare is not None:
        frames = _frames(given, names, positions)
        raw = RawColumns.of(list(owned), frames, positions, prepare)
        return told(prepared(raw, as_labels(y), weights=weighing))
    return VerticalData(
        clients=tuple(owned),
        columns=held,
        blocks=given.blocks(positions),
        labels=as_labels(y),
        positions=positions,
        weights=weighing,
    )


Places: TypeAlias = Sequence[Sequence[int]]
"""The positions of the columns of each client."""


class _Given(Protocol):
    """What was given as X."""

    width: int
    names: list[str]
    labels: tuple[Any, ...]
    """The names of columns before they were made texts; empty where there were none."""

    def column(self, place: int) -> Any:
        """One column as it is, whatever it holds."""

    def blocks(self, positions: Places) -> tuple[Block, ...]:
        """A block of numbers for each client."""


class _GivenFrame:
    """A table with named columns."""

    def __init__(self, frame: AnyFrame) -> None:
        self.column = frame.series
        self.width, self.names, self.labels = len(frame.labels), frame.names, frame.labels
        self._frame = frame

    def blocks(self, positions: Places) -> tuple[Block, ...]:
        # only what is held: other columns need not be numbers
        matrix = self._frame.matrix(
            list(itertools.chain.from_iterable(positions)),
            'turn them into numbers (prepare="auto"), or give the clients other columns',
        )
        # the matrix has held columns only, client by client
        return tuple(_columns(matrix, list(places)) for places in in_order(positions))


class _GivenMatrix:
    """A matrix, dense or sparse, whose columns are numbered."""

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix
        self.width = matrix.shape[1]
        self.names = [f"x{j}" for j in range(self.width)]
        self.labels: tuple[Any, ...] = ()

    def column(self, place: int) -> Any:
        return self.matrix[:, place]

    def blocks(self, positions: Places) -> tuple[Block, ...]:
        return tuple(_columns(self.matrix, list(places)) for places in positions)


def _given(X: Any) -> _Given:
    frame = as_frame(X)
    if frame is not None:
        return _GivenFrame(frame)
    if is_sparse(X):
        return _GivenMatrix(scipy.sparse.csc_array(X, dtype=float))
    return _GivenMatrix(_dense(X))


def _frames(given: _Given, names: Sequence[str], positions: Places) -> list[pl.DataFrame]:
    """The columns of each client as a frame."""
    frames = []
    lengths = set()
    for places in positions:
        columns = {names[j]: given.column(j) for j in places}
        lengths |= {len(column) for column in columns.values()}
        if len(lengths) > 1:
            raise DataError(UNEQUAL)
        frames.append(pl.DataFrame(columns))
    return frames


def _dense(X: ArrayLike | scipy.sparse.sparray) -> Array:
    if isinstance(X, np.ndarray) and (np.ma.isMaskedArray(X) or np.iscomplexobj(X)):
        raise DataError(
            "The features must be plain real numbers, neither masked nor complex: convert them "
            "first."
        )
    try:
        given = np.asarray(plain(X))
        if given.dtype.kind in "mM":
            # as floats they would be nanoseconds, whose squares leave no digits for anything else
            raise DataError(
                "The features are dates or durations: turn them into numbers, say days since the "
                "first."
            )
        matrix = np.asfortranarray(given, dtype=float)
    except (TypeError, ValueError) as error:
        raise DataError(f"The features are not a matrix of numbers: {error}.") from None
    if matrix.ndim != 2:
        raise DataError(
            f"The features must be a matrix (samples x columns), but have {matrix.ndim} "
            f"dimension(s)."
        )
    return matrix


def _columns(matrix: Array, positions: list[int]) -> Block:
    """These columns: a view where they are neighbours and dense, a copy (once) otherwise."""
    start, stop = 0, 0
    if positions:
        start, stop = positions[0], positions[-1] + 1
    picked = matrix[:, positions]
    if positions == list(range(start, stop)):
        picked = matrix[:, start:stop]

    if is_sparse(picked):
        return scipy.sparse.csr_array(picked)
    return np.asfortranarray(picked)
