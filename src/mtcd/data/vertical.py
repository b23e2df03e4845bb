"""Vertically split data: samples whose features are held by different clients."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, TypeAlias

import numpy as np
import polars as pl
import scipy  # its parts are loaded when they are used
from numpy.typing import ArrayLike, NDArray

from mtcd.arrays import Array, Rows
from mtcd.data.checks import check_blocks, check_clients, check_labels, check_weights
from mtcd.data.draws import drawn_holdout
from mtcd.data.frames import as_frame, as_numbers, check_distinct, check_row_order
from mtcd.data.shares import assigned
from mtcd.data.sparse import is_sparse
from mtcd.data.tensors import plain
from mtcd.errors import DataError, listing
from mtcd.prepare import Preparations, RawColumns

# a dense array or a csr_array: scipy ships no types, so the alias cannot say more
Block: TypeAlias = Any


@dataclass(frozen=True, eq=False)
class VerticalData:
    """N samples, K clients; client k holds the block X_k (N x d_k).

    Blocks are dense (column-major views of one matrix where possible) or ``csr_array``; labels are
    known to all parties. ``notes`` are for the user, such as ids that did not match.
    ``positions`` tells where each column stood originally; without it, clients are in that order.
    ``weights`` holds a number of 0 or more per sample, by which its loss counts; without it, all count the same.
    ``test`` holds further samples of the same clients and columns, which no party trains on: see ``holdout``.
    Where columns were prepared, ``raw`` has them as given, and ``preparations`` what was fitted on these samples.
    Made by :func:`split` from a matrix, :func:`read_tables` from files, or :func:`synthetic`.
    """

    clients: tuple[str, ...]
    columns: tuple[tuple[str, ...], ...]
    blocks: tuple[Block, ...]
    labels: NDArray[np.generic]
    notes: tuple[str, ...] = ()
    positions: tuple[tuple[int, ...], ...] = ()
    test: VerticalData | None = None
    raw: RawColumns | None = None
    preparations: Preparations | None = None
    weights: Array | None = None

    _labels_may_be_equal: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not self.positions:
            object.__setattr__(self, "positions", _in_order(self.columns))
        check_labels(self.labels, self._labels_may_be_equal)
        check_clients(self.clients, self.columns, self.blocks, len(self.labels))
        check_blocks(self.clients, self.columns, self.blocks, self.keeps_missing)
        if self.weights is not None:
            check_weights(np.asarray(self.weights), len(self.labels))
            object.__setattr__(self, "weights", np.asarray(self.weights, dtype=float))
        if self.test is not None:
            self._check_test(self.test)

    def __repr__(self) -> str:
        held = [f"{name} ({len(columns):,})" for name, columns in zip(self.clients, self.columns, strict=True)]
        test = "" if self.test is None else f"; {self.test.samples:,} samples for the test"
        return f"VerticalData({self.samples:,} samples, {self.features:,} columns: {listing(held, 4)}{test})"

    @property
    def samples(self) -> int:
        """N."""
        return len(self.labels)

    @property
    def features(self) -> int:
        """d, over all clients."""
        return sum(len(columns) for columns in self.columns)

    @property
    def keeps_missing(self) -> tuple[bool, ...]:
        """Client by client, whether values may be missing, which trees can take: ``prepare="trees"``."""
        if self.preparations is None:
            return (False,) * len(self.clients)
        return tuple(part.keeps_missing for part in self.preparations.parts)

    @property
    def categorical(self) -> tuple[tuple[int, ...], ...]:
        """Client by client, the columns of the block that hold the numbers of categories."""
        if self.preparations is None:
            return ((),) * len(self.clients)
        return tuple(part.categorical for part in self.preparations.parts)

    def check_complete(self, model: str, clients: Iterable[str] | None = None) -> None:
        """Refuse missing values and categories at these clients (all, unless given), for a model that takes none."""
        for client, kept in zip(self.clients, self.keeps_missing, strict=True):
            if kept and (clients is None or client in clients):
                raise DataError(
                    f"The columns of {client!r} are prepared for trees, with missing values and categories, which "
                    f"{model} does not take: prepare them with 'auto'."
                )

    @cached_property
    def fingerprint(self) -> str:
        """A digest of the features, labels and weights: equal data, equal fingerprint."""
        digest = hashlib.blake2b(digest_size=16)
        block: Any  # dense or sparse
        for block in self.blocks:
            parts = (block.data, block.indices, block.indptr) if is_sparse(block) else (_row_hashes(block),)
            for part in (np.array(block.shape), *parts):
                digest.update(np.ascontiguousarray(part).data)
        labels = np.ascontiguousarray(self.labels)
        digest.update(repr(labels.tolist()).encode() if labels.dtype.kind not in "biuf" else labels.tobytes())
        if self.weights is not None:
            digest.update(b"weights" + np.ascontiguousarray(self.weights).tobytes())
        return digest.hexdigest()

    def holdout(self, fraction: float, seed: int = 0) -> VerticalData:
        """The same data with a random part of the samples, drawn from the seed, set aside as the test set.

        The draw depends on the number of samples and the seed alone, and is the same for all clients. It is not
        stratified by class. Columns that are prepared are prepared anew, fitted on the samples that stay.
        """
        if self.test is not None:
            raise DataError("There is a test set already: nothing more can be held out.")
        rows, others, note = drawn_holdout(fraction, self.samples, seed)
        return self.parted(rows, others, note)

    def parted(self, rows: Rows, others: Rows, note: str) -> VerticalData:
        """These rows to train on, with the others as the test set, and a note about it."""
        training = self.take(rows)
        return replace(training, notes=(*training.notes, note), test=self.take(others, like=training))

    def take(self, rows: Rows, like: VerticalData | None = None) -> VerticalData:
        """These samples, in this order. Columns are prepared anew: fitted on these rows, or as ``like`` was.

        With ``like`` they are samples to test on, which have no weights.
        """
        labels = self.labels[rows]
        weights = None if self.weights is None else self.weights[rows]
        if self.raw is not None and self.preparations is not None:
            own = [note for note in self.notes if note not in self.preparations.notes]
            if like is not None:
                return prepared(self.raw.take(rows), labels, (), like.preparations)
            return prepared(self.raw.take(rows), labels, own, weights=weights)
        taken = (block[rows] for block in self.blocks)
        blocks = tuple(X if is_sparse(X) else np.asfortranarray(X) for X in taken)
        if like is not None:
            return HeldOut(self.clients, self.columns, blocks, labels, positions=self.positions)
        return replace(self, blocks=blocks, labels=labels, weights=weights)

    def _check_test(self, test: VerticalData) -> None:
        if not isinstance(test, VerticalData) or test.test is not None:
            raise DataError("The test set must be VerticalData without a test set of its own.")
        if test.clients != self.clients or test.columns != self.columns:
            raise DataError("The test set must have the same clients with the same columns, in the same order.")


class HeldOut(VerticalData):
    """Samples to test on: all labels may be equal there."""

    _labels_may_be_equal = True


def prepared(
    raw: RawColumns,
    labels: NDArray[np.generic],
    notes: Iterable[str] = (),
    fitted: Preparations | None = None,
    weights: Array | None = None,
) -> VerticalData:
    """Vertical data of columns that are prepared: fitted on these rows, or, to test on, ``fitted`` on others."""
    check_labels(labels, may_be_equal=fitted is not None)
    check_clients(raw.clients, [frame.columns for frame in raw.frames], raw.frames, len(labels))
    preparations, blocks = raw.fit(labels) if fitted is None else (fitted, fitted.apply(raw.frames))
    return (VerticalData if fitted is None else HeldOut)(
        clients=raw.clients,
        columns=preparations.outputs,
        blocks=blocks,
        labels=labels,
        notes=(*notes, *(() if fitted else preparations.notes)),
        positions=preparations.places,
        raw=raw,
        preparations=preparations,
        weights=weights,
    )


def _row_hashes(block: NDArray[Any]) -> NDArray[np.uint64]:
    """A hash of each row: a sum of the bits of its numbers, weighted by random words; 30 times as quick as a digest."""
    words = hashlib.shake_128(b"columns").digest(8 * block.shape[1])
    hashes: NDArray[np.uint64] = np.einsum("ij,j->i", block.view(f"u{block.itemsize}"), np.frombuffer(words, np.uint64))
    return hashes


def split(
    X: Any,
    y: ArrayLike,
    clients: int | Mapping[str, Iterable[Any] | slice] | Sequence[str] | Sequence[Iterable[Any] | slice],
    columns: Sequence[str] | None = None,
    prepare: Any = None,
    weights: ArrayLike | None = None,
) -> VerticalData:
    """Split the columns of a matrix or data frame over clients.

    ``X`` is a matrix, dense or sparse (which stays sparse), or a tensor, or a table with named columns: a data frame
    of pandas or polars, an Arrow table, a dict of columns. ``columns`` names the columns of a matrix, or renames those
    of a table. ``y`` holds a label per row: an array, a series, or a frame of one column. ``weights`` may hold a number
    of 0 or more per row, by which its loss counts.

    ``clients`` is their number or a list of their names (columns are split evenly, in order), a list with the columns
    of each client, or a mapping from names to columns. Columns are given by name or position, or as a slice of
    positions; in a table that has whole numbers for names, a whole number is a name. Columns that nobody holds need
    not be numeric.

    ``prepare`` turns texts, dates and missing values into numbers: ``"auto"``, a mapping as under ``data.prepare`` in
    a config, or a mapping from clients to these or to transformers of scikit-learn. It is fitted on the samples that
    are trained on, and kept with the model (docs/prepare.md).

    >>> data = split({"age": [41, 52, 33], "dose": [1, 2, 2], "stay": [3, 9, 4]}, [0, 1, 0], clients=2)
    >>> data.clients, data.columns, data.blocks[1].shape
    (('client_0', 'client_1'), (('age', 'dose'), ('stay',)), (3, 1))
    """
    frame = as_frame(X)
    if prepare is not None and is_sparse(X):
        raise DataError("prepare is for tables and dense matrices, but X is sparse: prepare it yourself.")
    matrix: Any = None if frame else scipy.sparse.csc_array(X, dtype=float) if is_sparse(X) else _dense(X)
    width = len(frame.labels) if frame else matrix.shape[1]
    names = [str(c) for c in columns] if columns is not None else frame.names if frame else _default_names(width)
    if len(names) != width:
        raise DataError(f"The data has {width} columns, but {len(names)} column names were given.")
    check_distinct(names)
    check_row_order(X, y)
    owned = assigned(names, frame.labels if frame and columns is None else (), clients)
    positions = tuple(tuple(places) for places in owned.values())
    weighing = None if weights is None else as_weights(X, weights)
    if prepare is not None:
        held_by = {client: [names[j] for j in places] for client, places in owned.items()}
        by_name = {names[j]: frame.series(j) if frame else matrix[:, j] for places in positions for j in places}
        raw = RawColumns.of(list(owned), _frames(by_name, held_by), positions, prepare)
        return prepared(raw, as_labels(y), weights=weighing)
    if frame:  # only what is held
        held = [j for places in positions for j in places]
        matrix = frame.matrix(held, 'turn them into numbers (prepare="auto"), or give the clients other columns')
    return VerticalData(
        clients=tuple(owned),
        columns=tuple(tuple(names[j] for j in places) for places in positions),
        blocks=tuple(_columns(matrix, list(places)) for places in (_in_order(positions) if frame else positions)),
        labels=as_labels(y),
        positions=positions,
        weights=weighing,
    )


def _frames(columns: Mapping[str, Any], held: Mapping[str, Sequence[str]]) -> list[pl.DataFrame]:
    """The columns of each client as a frame."""
    if len({len(column) for column in columns.values()}) > 1:
        raise DataError("The columns of the table are not equally long: give every sample a value in each.")
    return [pl.DataFrame({name: columns[name] for name in names}) for names in held.values()]


def as_weights(X: Any, weights: ArrayLike) -> Array:
    """The weights of samples as an array of numbers."""
    check_row_order(X, weights, "weights")
    numbers = as_numbers(as_labels(weights, "weights"))
    if numbers is None:
        raise DataError("The weights are not numbers: give a number of 0 or more per sample.")
    return numbers


def _default_names(width: int) -> list[str]:
    return [f"x{j}" for j in range(width)]


def _in_order(columns: Sequence[Sequence[Any]]) -> tuple[tuple[int, ...], ...]:
    places = itertools.count()
    return tuple(tuple(next(places) for _ in held) for held in columns)


def _dense(X: ArrayLike | scipy.sparse.sparray) -> Array:
    if isinstance(X, np.ndarray) and (np.ma.isMaskedArray(X) or np.iscomplexobj(X)):
        raise DataError("The features must be plain real numbers, neither masked nor complex: convert them first.")
    try:
        given = np.asarray(plain(X))
        if given.dtype.kind in "mM":
            raise DataError("The features are dates or durations: turn them into numbers, say days since the first.")
        matrix = np.asfortranarray(given, dtype=float)
    except (TypeError, ValueError) as error:
        raise DataError(f"The features are not a matrix of numbers: {error}.") from None
    if matrix.ndim != 2:
        raise DataError(f"The features must be a matrix (samples x columns), but have {matrix.ndim} dimension(s).")
    return matrix


def as_labels(y: ArrayLike, what: str = "labels") -> NDArray[np.generic]:
    """Labels (or ``what``) as an array, of whatever kind they are; also those in a frame of one column."""
    if isinstance(y, str):
        raise DataError(
            f"The {what} are the text {y!r}: give the {what} themselves, frame[{y!r}], and the features without them."
        )
    frame = as_frame(y)
    if frame is not None:
        if len(frame.labels) != 1:
            names = listing([repr(name) for name in frame.names])
            raise DataError(f"The {what} are a table of {len(frame.labels)} columns ({names}): give one of them.")
        y = frame.table[frame.labels[0]]
    try:
        labels = np.asarray(plain(y))
    except ValueError as error:
        raise DataError(f"The {what} are not one number (or class) per sample: {error}.") from None
    labels = labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels
    if labels.dtype.kind == "O" and labels.ndim == 1:  # as data frames keep texts, and numbers of which some may lack
        if all(isinstance(label, str) for label in labels):
            return labels.astype(str)
        numbers = as_numbers(labels)
        return labels if numbers is None else numbers if np.isnan(numbers).any() else np.array(labels.tolist())
    return labels


def _columns(matrix: Array, positions: list[int]) -> Block:
    """These columns: a view where they are neighbours and dense, a copy (once) otherwise."""
    start, stop = (positions[0], positions[-1] + 1) if positions else (0, 0)
    picked = matrix[:, start:stop] if positions == list(range(start, stop)) else matrix[:, positions]
    return scipy.sparse.csr_array(picked) if is_sparse(picked) else np.asfortranarray(picked)
