"""split(): the columns of a matrix or data frame, split over clients."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
import scipy  # its parts are loaded when they are used
from numpy.typing import ArrayLike

from mtcd.core.arrays import Array
from mtcd.core.errors import DataError
from mtcd.data.frames import as_frame, check_distinct, check_row_order
from mtcd.data.labels import as_labels, as_weights
from mtcd.data.prepare import RawColumns
from mtcd.data.shares import assigned
from mtcd.data.sparse import is_sparse
from mtcd.data.vertical import Block, VerticalData, in_order, prepared, told
from mtcd.protocol.codec.tensors import plain


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
    frame = as_frame(X)
    if prepare is not None and is_sparse(X):
        raise DataError(
            "prepare is for tables and dense matrices, but X is sparse: prepare it yourself."
        )
    matrix: Any
    if frame:
        matrix = None
    elif is_sparse(X):
        matrix = scipy.sparse.csc_array(X, dtype=float)
    else:
        matrix = _dense(X)
    width = len(frame.labels) if frame else matrix.shape[1]
    if columns is not None:
        names = [str(c) for c in columns]
    elif frame:
        names = frame.names
    else:
        names = _default_names(width)
    if len(names) != width:
        raise DataError(f"The data has {width} columns, but {len(names)} column names were given.")
    check_distinct(names)
    check_row_order(X, y)
    owned = assigned(names, frame.labels if frame and columns is None else (), clients)
    positions = tuple(tuple(places) for places in owned.values())
    weighing = None if weights is None else as_weights(X, weights)
    if prepare is not None:
        held_by = {client: [names[j] for j in places] for client, places in owned.items()}
        by_name = {
            names[j]: frame.series(j) if frame else matrix[:, j]
            for places in positions
            for j in places
        }
        raw = RawColumns.of(list(owned), _frames(by_name, held_by), positions, prepare)
        return told(prepared(raw, as_labels(y), weights=weighing))
    if frame:  # only what is held
        held = [j for places in positions for j in places]
        matrix = frame.matrix(
            held, 'turn them into numbers (prepare="auto"), or give the clients other columns'
        )
    return VerticalData(
        clients=tuple(owned),
        columns=tuple(tuple(names[j] for j in places) for places in positions),
        blocks=tuple(
            _columns(matrix, list(places))
            for places in (in_order(positions) if frame else positions)
        ),
        labels=as_labels(y),
        positions=positions,
        weights=weighing,
    )


def _frames(columns: Mapping[str, Any], held: Mapping[str, Sequence[str]]) -> list[pl.DataFrame]:
    """The columns of each client as a frame."""
    if len({len(column) for column in columns.values()}) > 1:
        raise DataError(
            "The columns of the table are not equally long: give every sample a value in each."
        )
    return [pl.DataFrame({name: columns[name] for name in names}) for names in held.values()]


def _default_names(width: int) -> list[str]:
    return [f"x{j}" for j in range(width)]


def _dense(X: ArrayLike | scipy.sparse.sparray) -> Array:
    if isinstance(X, np.ndarray) and (np.ma.isMaskedArray(X) or np.iscomplexobj(X)):
        raise DataError(
            "The features must be plain real numbers, neither masked nor complex: convert them "
            "first."
        )
    try:
        given = np.asarray(plain(X))
        if given.dtype.kind in "mM":
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
    start, stop = (positions[0], positions[-1] + 1) if positions else (0, 0)
    if positions == list(range(start, stop)):
        picked = matrix[:, start:stop]
    else:
        picked = matrix[:, positions]
    return scipy.sparse.csr_array(picked) if is_sparse(picked) else np.asfortranarray(picked)
