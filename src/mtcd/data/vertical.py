"""Vertically split data: samples whose features are held by different clients."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mtcd.core.arrays import Array, Rows, is_sparse
from mtcd.core.errors import DataError, listing, warn_of_data
from mtcd.data.checks import check_blocks, check_clients, check_labels, check_weights
from mtcd.data.draws import drawn_holdout
from mtcd.data.prepare import Preparations, RawColumns

# a dense array or a csr_array: scipy ships no types, so the alias cannot say more
Block: TypeAlias = Any


@dataclass(frozen=True, eq=False)
class VerticalData:
    """N samples, K clients; client k holds the block X_k (N x d_k).

    Made by :func:`split` from a matrix, :func:`read_tables` from files, or :func:`synthetic`.

    Parameters
    ----------
    clients : tuple of str
        The names of the clients.
    columns : tuple of tuples of str
        The names of the columns of each client.
    blocks : tuple of arrays
        Dense (column-major views of one matrix where possible) or ``csr_array``.
    labels : array
        A label per sample, known to all parties.
    notes : tuple of str
        For the user, such as ids that did not match.
    positions : tuple of tuples of int
        Where each column stood originally; without it, clients are in that order.
    test : VerticalData, optional
        Further samples of the same clients and columns, which no party trains on: see ``holdout``.
    raw : RawColumns, optional
        The columns as given, where they were prepared.
    preparations : Preparations, optional
        What was fitted on these samples, where columns were prepared.
    weights : array, optional
        A number of 0 or more per sample, by which its loss counts; without it, all count the same.
    tables : tuple of Path
        The file of each client's columns, if they are from files.
    label_table : Path, optional
        The file of the labels, if they are from one.
    true_labels : array, optional
        The labels as they were, where ``labels`` had noise added: nothing but what stays with
        their holder may be computed from them.

    Examples
    --------
    >>> import mtcd
    >>> data = mtcd.synthetic("ridge", samples=10, features=4, clients=2)
    >>> data.clients, data.holdout(0.2).test.samples
    (('client_0', 'client_1'), 2)
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
    tables: tuple[Path, ...] = ()
    label_table: Path | None = None
    true_labels: NDArray[np.generic] | None = None

    _labels_may_be_equal: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not self.positions:
            object.__setattr__(self, "positions", in_order(self.columns))
        check_labels(self.labels, self._labels_may_be_equal)
        check_clients(self.clients, self.columns, self.blocks, len(self.labels))
        # before any training: afterwards a NaN would be in every party's model
        check_blocks(self.clients, self.columns, self.blocks, self.keeps_missing)
        if self.weights is not None:
            check_weights(np.asarray(self.weights), len(self.labels))
            object.__setattr__(self, "weights", np.asarray(self.weights, dtype=float))
        if self.test is not None:
            self._check_test(self.test)

    def __repr__(self) -> str:
        widths = zip(self.clients, map(len, self.columns), strict=True)
        held = listing([f"{name} ({width:,})" for name, width in widths], 4)
        test = ""
        if self.test is not None:
            test = f"; {self.test.samples:,} samples for the test"
        return f"VerticalData({self.samples:,} samples, {self.features:,} columns: {held}{test})"

    @property
    def samples(self) -> int:
        """N, the number of samples."""
        return len(self.labels)

    @property
    def features(self) -> int:
        """d, over all clients."""
        return sum(len(columns) for columns in self.columns)

    @property
    def keeps_missing(self) -> tuple[bool, ...]:
        """Client by client, whether values may be missing, which trees can take:
        ``prepare="trees"``."""
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
        """Refuse missing values and categories at these clients (all, unless given), for a model
        that takes none."""
        # trees split on missing values and categories; other models need numbers
        for client, kept in zip(self.clients, self.keeps_missing, strict=True):
            if kept and (clients is None or client in clients):
                raise DataError(
                    f"The columns of {client!r} are prepared for trees, with missing values and "
                    f"categories, which {model} does not take: prepare them with 'auto'."
                )

    @cached_property
    def fingerprint(self) -> str:
        """A digest of the features, labels and weights: equal data, equal fingerprint."""
        digest = hashlib.blake2b(digest_size=16)
        block: Any  # dense or sparse
        parts: tuple[Any, ...]
        for block in self.blocks:
            if is_sparse(block):
                parts = (block.data, block.indices, block.indptr)
            else:
                parts = (_row_hashes(block),)
            for part in (np.array(block.shape), *parts):
                digest.update(np.ascontiguousarray(part).data)

        labels = np.ascontiguousarray(self.labels)
        content = labels.tobytes()
        if labels.dtype.kind not in "biuf":
            # the bytes of texts are padded to the longest label, and those of objects are pointers
            content = repr(labels.tolist()).encode()
        digest.update(content)
        if self.weights is not None:
            # with a word in front: weights must not look like more labels
            digest.update(b"weights" + np.ascontiguousarray(self.weights).tobytes())
        return digest.hexdigest()

    def holdout(self, fraction: float, seed: int = 0) -> VerticalData:
        """The same data with a random part of the samples, drawn from the seed, set aside as the
        test set.

        The draw depends on the number of samples and the seed alone, and is the same for all
        clients. It is not stratified by class. Columns that are prepared are prepared anew, fitted
        on the samples that stay.
        """
        if self.test is not None:
            raise DataError("There is a test set already: nothing more can be held out.")
        rows, others, note = drawn_holdout(fraction, self.samples, seed)
        return self.parted(rows, others, note)

    def parted(self, rows: Rows, others: Rows, note: str) -> VerticalData:
        """These rows to train on, with the others as the test set, and a note about it."""
        training = self.take(rows)
        # fitted on training samples alone: the test set must teach nothing
        test = self.take(others, like=training)
        notes = [*training.notes, note]
        if training.preparations is not None and test.raw is not None:
            odd = training.preparations.notes_on_new(test.clients, test.raw.frames)
            notes += [f"In the test set: {said}" for said in odd]
        return replace(training, notes=tuple(notes), test=test)

    def take(self, rows: Rows, like: VerticalData | None = None) -> VerticalData:
        """These samples, in this order. Columns are prepared anew: fitted on these rows, or as
        ``like`` was.

        With ``like`` they are samples to test on, which have no weights.
        """
        labels = self.labels[rows]
        weights, true_labels = None, None
        if self.weights is not None:
            weights = self.weights[rows]
        if self.true_labels is not None:
            true_labels = self.true_labels[rows]

        if self.raw is not None and self.preparations is not None:
            raw = self.raw.take(rows)
            if like is not None:
                tested = prepared(raw, labels, (), like.preparations)
                return replace(tested, true_labels=true_labels)
            # what was said of the fit on all rows may not hold for these: they are fitted anew
            own = [note for note in self.notes if note not in self.preparations.notes]
            made = prepared(raw, labels, own, weights=weights, tables=self.tables)
            return replace(made, label_table=self.label_table, true_labels=true_labels)

        blocks = tuple(_rows_of(block, rows) for block in self.blocks)
        if like is not None:
            return HeldOut(
                self.clients,
                self.columns,
                blocks,
                labels,
                positions=self.positions,
                true_labels=true_labels,
            )
        return replace(self, blocks=blocks, labels=labels, weights=weights, true_labels=true_labels)

    def _check_test(self, test: VerticalData) -> None:
        if not isinstance(test, VerticalData) or test.test is not None:
            raise DataError("The test set must be VerticalData without a test set of its own.")
        if test.clients != self.clients or test.columns != self.columns:
            raise DataError(
                "The test set must have the same clients with the same columns, in the same order."
            )


class HeldOut(VerticalData):
    """Samples to test on: all labels may be equal there."""

    _labels_may_be_equal = True


def prepared(
    raw: RawColumns,
    labels: NDArray[np.generic],
    notes: Iterable[str] = (),
    fitted: Preparations | None = None,
    weights: Array | None = None,
    tables: tuple[Path, ...] = (),
) -> VerticalData:
    """Vertical data of columns that are prepared: fitted on these rows, or, to test on, ``fitted``
    on others."""
    check_labels(labels, may_be_equal=fitted is not None)
    check_clients(raw.clients, [frame.columns for frame in raw.frames], raw.frames, len(labels))

    kind: type[VerticalData]
    if fitted is not None:
        preparations, blocks, kind = fitted, fitted.apply(raw.frames), HeldOut
    else:
        preparations, blocks = raw.fit(labels)
        kind = VerticalData
        notes = (*notes, *preparations.notes)

    return kind(
        clients=raw.clients,
        columns=preparations.outputs,
        blocks=blocks,
        labels=labels,
        notes=tuple(notes),
        positions=preparations.places,
        raw=raw,
        preparations=preparations,
        weights=weights,
        tables=tables,
    )


def told(data: VerticalData) -> VerticalData:
    """The same data, after a warning of what its preparation guessed or could not read."""
    if data.preparations is not None and data.preparations.notes:
        warn_of_data(" ".join(data.preparations.notes))
    return data


def _rows_of(block: Block, rows: Rows) -> Block:
    """These rows of a block, column-major as before: columns are what clients compute with."""
    if is_sparse(block):
        return block[rows]
    return np.asfortranarray(block[rows])


def _row_hashes(block: NDArray[Any]) -> NDArray[np.uint64]:
    """A hash of each row: a sum of the bits of its numbers, weighted by random words; 30 times as
    quick as a digest."""
    # fixed words: the fingerprint is the same in every process
    words = hashlib.shake_128(b"columns").digest(8 * block.shape[1])
    hashes: NDArray[np.uint64] = np.einsum(
        "ij,j->i", block.view(f"u{block.itemsize}"), np.frombuffer(words, np.uint64)
    )
    return hashes


def in_order(columns: Sequence[Sequence[Any]]) -> tuple[tuple[int, ...], ...]:
    """The places of the columns if clients hold them one after the other."""
    places = itertools.count()
    return tuple(tuple(next(places) for _ in held) for held in columns)
