"""Samples whose features are held by different clients: what every party brings to the training."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any, TypeAlias

import numpy as np
import scipy  # its parts are loaded when they are used
from numpy.typing import ArrayLike, NDArray

from mtcd.data.checks import check_clients, check_labels, check_values
from mtcd.data.sparse import is_sparse
from mtcd.errors import DataError

Array = NDArray[np.float64]
# a dense array or a csr_array: scipy ships no types, so the alias cannot say more
Block: TypeAlias = Any


@dataclass(frozen=True, eq=False)
class VerticalData:
    """N samples, K clients; client k holds the block X_k (N x d_k).

    Blocks are dense (column-major views of one matrix where possible) or ``csr_array``; labels are
    known to all parties. ``notes`` are things a user should hear of, such as ids that did not match.
    ``positions`` tells where each column stood originally; without it, clients are in that order.
    Made by :func:`split` from a matrix, :func:`read_tables` from files, or :func:`synthetic`.
    """

    clients: tuple[str, ...]
    columns: tuple[tuple[str, ...], ...]
    blocks: tuple[Block, ...]
    labels: NDArray[np.generic]
    notes: tuple[str, ...] = ()
    positions: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        if not self.positions:
            object.__setattr__(self, "positions", _in_order(self.columns))
        check_labels(self.labels)
        check_clients(self.clients, self.columns, self.blocks, len(self.labels))
        for name, columns, block in zip(self.clients, self.columns, self.blocks, strict=True):
            check_values(name, columns, block)

    @property
    def samples(self) -> int:
        """N."""
        return len(self.labels)

    @property
    def features(self) -> int:
        """d, over all clients."""
        return sum(len(columns) for columns in self.columns)

    @cached_property
    def fingerprint(self) -> str:
        """A digest of the features and labels: equal data, equal fingerprint."""
        digest = hashlib.blake2b(digest_size=16)
        block: Any  # dense or sparse
        for block in self.blocks:
            parts = (block.data, block.indices, block.indptr) if is_sparse(block) else (block.T,)
            for part in (np.array(block.shape), *parts):
                digest.update(np.ascontiguousarray(part).data)
        digest.update(repr(self.labels.tolist()).encode())
        return digest.hexdigest()


def split(
    X: ArrayLike | scipy.sparse.sparray,
    y: ArrayLike,
    clients: int | Mapping[str, Sequence[str | int]],
    columns: Sequence[str] | None = None,
) -> VerticalData:
    """Split the columns of a matrix over clients.

    ``clients`` is their number (columns are split evenly, in order) or a mapping from names to the
    columns (names or positions) that each holds. Sparse matrices stay sparse.

    >>> data = split(np.eye(4), [0, 1, 0, 1], clients=2)
    >>> data.clients, data.blocks[1].shape
    (('client_0', 'client_1'), (4, 2))
    """
    matrix = scipy.sparse.csc_array(X, dtype=float) if is_sparse(X) else _dense(X)
    names = [f"x{j}" for j in range(matrix.shape[1])] if columns is None else [str(c) for c in columns]
    if len(names) != matrix.shape[1]:
        raise DataError(f"The matrix has {matrix.shape[1]} columns, but {len(names)} column names were given.")
    if len(set(names)) < len(names):
        twice = next(name for j, name in enumerate(names) if name in names[:j])
        raise DataError(f"Two columns are named {twice!r}: give each its own name.")
    owned = _by_name(names, clients) if isinstance(clients, Mapping) else even_shares(names, clients)
    position = {name: j for j, name in enumerate(names)}
    positions = [[position[c] for c in held] for held in owned.values()]
    return VerticalData(
        clients=tuple(owned),
        columns=tuple(tuple(held) for held in owned.values()),
        blocks=tuple(_columns(matrix, places) for places in positions),
        labels=as_labels(y),
        positions=tuple(tuple(places) for places in positions),
    )


def _in_order(columns: Sequence[Sequence[str]]) -> tuple[tuple[int, ...], ...]:
    places = itertools.count()
    return tuple(tuple(next(places) for _ in held) for held in columns)


def even_shares(columns: Sequence[str], clients: int) -> dict[str, list[str]]:
    """Columns split evenly, in order, over ``clients`` clients named client_0, client_1, ...

    >>> even_shares(["a", "b", "c"], 2)
    {'client_0': ['a', 'b'], 'client_1': ['c']}
    """
    if isinstance(clients, bool) or not isinstance(clients, int | np.integer) or clients < 1:
        raise DataError(f"The number of clients must be a whole number, 1 or more, but is {clients!r}.")
    if not columns:
        raise DataError("There is no feature column: nothing is left for the clients to hold.")
    if clients > len(columns):
        raise DataError(
            f"{clients} clients cannot share {len(columns)} columns: each needs at least one. "
            f"Ask for {len(columns)} clients or fewer."
        )
    size, extra = divmod(len(columns), clients)
    bounds = [k * size + min(k, extra) for k in range(clients + 1)]
    return {f"client_{k}": list(columns[bounds[k] : bounds[k + 1]]) for k in range(clients)}


def _by_name(names: Sequence[str], clients: Mapping[str, Sequence[str | int]]) -> dict[str, list[str]]:
    known_names = set(names)
    owned: dict[str, list[str]] = {}
    for client, held in clients.items():
        owned[client] = []
        for column in held:
            place = isinstance(column, Integral) and not isinstance(column, bool)
            if not (0 <= int(column) < len(names) if place else column in known_names):
                raise DataError(f"Client {client!r} asks for column {column!r}, which the data does not have.")
            owned[client].append(names[int(column)] if place else str(column))
    check_owned_once(owned)
    return owned


def check_owned_once(owned: Mapping[str, Iterable[str]]) -> None:
    """Refuse a column that two clients (or one client twice) would hold."""
    holder: dict[str, str] = {}
    for client, held in owned.items():
        for column in held:
            if column in holder:
                both = (
                    f"to both {holder[column]!r} and {client!r}" if holder[column] != client else f"twice to {client!r}"
                )
                raise DataError(f"Column {column!r} is given {both}: it can be held once.")
            holder[column] = client


def _dense(X: ArrayLike | scipy.sparse.sparray) -> Array:
    if isinstance(X, np.ndarray) and (np.ma.isMaskedArray(X) or np.iscomplexobj(X)):
        raise DataError("The features must be plain real numbers, neither masked nor complex: convert them first.")
    try:
        matrix = np.asfortranarray(X, dtype=float)
    except (TypeError, ValueError) as error:
        raise DataError(f"The features are not a matrix of numbers: {error}.") from None
    if matrix.ndim != 2:
        raise DataError(f"The features must be a matrix (samples x columns), but have {matrix.ndim} dimension(s).")
    return matrix


def as_labels(y: ArrayLike) -> NDArray[np.generic]:
    """Labels as an array, of whatever kind they are."""
    try:
        labels = np.asarray(y)
        if labels.dtype.kind == "O" and all(isinstance(label, str) for label in labels.ravel()):
            labels = labels.astype(str)  # as data frames keep texts
        return labels
    except ValueError as error:
        raise DataError(f"The labels are not one number (or class) per sample: {error}.") from None


def _columns(matrix: Array, positions: list[int]) -> Block:
    """These columns: a view where they are neighbours and dense, a copy (once) otherwise."""
    start, stop = (positions[0], positions[-1] + 1) if positions else (0, 0)
    picked = matrix[:, start:stop] if positions == list(range(start, stop)) else matrix[:, positions]
    return scipy.sparse.csr_array(picked) if is_sparse(picked) else np.asfortranarray(picked)
