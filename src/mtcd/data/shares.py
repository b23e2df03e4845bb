"""The assignment of columns to clients."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any, TypeVar

import numpy as np

from mtcd.core.errors import DataError, did_you_mean, listing

Column = TypeVar("Column")


def even_shares(columns: Sequence[Column], clients: int | Sequence[str]) -> dict[str, list[Column]]:
    """Columns split evenly, in order, over clients: so many, named client_0, client_1, ..., or with
    these names.

    >>> even_shares(["a", "b", "c"], 2)
    {'client_0': ['a', 'b'], 'client_1': ['c']}
    """
    if isinstance(clients, int | np.integer) and not isinstance(clients, bool) and clients >= 1:
        clients = [f"client_{k}" for k in range(clients)]
    elif isinstance(clients, str) or not isinstance(clients, Sequence):
        raise DataError(
            f"The number of clients must be a whole number, 1 or more, but is {clients!r}."
        )
    if not columns:
        raise DataError("There is no feature column: nothing is left for the clients to hold.")
    if len(clients) > len(columns):
        raise DataError(
            f"{len(clients)} clients cannot share {len(columns)} columns: each needs at least one. "
            f"Ask for {len(columns)} clients or fewer."
        )
    size, extra = divmod(len(columns), len(clients))
    bounds = [k * size + min(k, extra) for k in range(len(clients) + 1)]
    return {name: list(columns[bounds[k] : bounds[k + 1]]) for k, name in enumerate(clients)}


def assigned(names: Sequence[str], labels: Sequence[Any], clients: Any) -> dict[str, list[int]]:
    """The positions of the columns that each client holds; ``clients`` as in :func:`mtcd.split`.

    ``labels`` are the names of the columns before these were turned into text.
    """
    if not isinstance(clients, Mapping | Iterable) or isinstance(clients, str):
        return even_shares(range(len(names)), clients)
    if not isinstance(clients, Mapping):
        clients = list(clients)
        if clients and all(isinstance(client, str) for client in clients):
            return even_shares(range(len(names)), _client_names(names, clients))
        clients = {f"client_{k}": held for k, held in enumerate(clients)}
    find = _finder(names, labels)
    owned: dict[str, list[int]] = {}
    for client, held in clients.items():
        if isinstance(held, slice):
            owned[client] = _sliced(client, held, len(names))
            continue
        if isinstance(held, str) or not isinstance(held, Iterable):
            raise DataError(f"Client {client!r} must be given a list of columns, but got {held!r}.")
        owned[client] = [find(client, column) for column in held]
    check_owned_once({client: [names[j] for j in places] for client, places in owned.items()})
    return owned


def _client_names(columns: Sequence[str], clients: list[str]) -> list[str]:
    if set(clients) <= set(columns):
        raise DataError(
            f"clients lists names of columns ({listing(clients, 3)}): give one list of columns per "
            "client, or a mapping from each client to its columns."
        )
    if len(set(clients)) < len(clients):
        raise DataError(f"Client names must differ: {listing(sorted(clients))}.")
    return clients


def _finder(names: Sequence[str], labels: Sequence[Any]) -> Callable[[str, Any], int]:
    """Finds the position of a column that a client asks for, by label, by name or by position.

    A whole number is a label where there are such labels, and a position otherwise.
    """
    numbered = any(_is_whole(label) for label in labels)
    places: dict[Any, int] = {name: j for j, name in enumerate(names)}
    places |= {label: j for j, label in enumerate(labels)}

    def find(client: str, column: Any) -> int:
        if _is_whole(column) and not numbered:
            place = int(column) if 0 <= column < len(names) else None
        else:
            try:
                place = None if isinstance(column, bool) else places.get(column)
            except TypeError:  # not hashable
                place = None
        if place is None:
            hint = f"; {did_you_mean(column, names)}" if isinstance(column, str) else "."
            if isinstance(column, bool | np.bool_):
                hint = ": give its name or position (of a mask, numpy.flatnonzero(mask))."
            raise DataError(
                f"Client {client!r} asks for column {column!r}, which the data does not have{hint}"
            )
        return place

    return find


def _sliced(client: str, held: slice, width: int) -> list[int]:
    try:
        return list(range(width))[held]
    except (TypeError, ValueError):
        raise DataError(
            f"Client {client!r} is given {held!r}: a slice goes by position, so its ends must be "
            f"whole numbers."
        ) from None


def _is_whole(label: object) -> bool:
    return isinstance(label, Integral) and not isinstance(label, bool)


def check_owned_once(owned: Mapping[str, Iterable[str]]) -> None:
    """Reject a column that is assigned twice."""
    holder: dict[str, str] = {}
    for client, held in owned.items():
        for column in held:
            if column in holder:
                if holder[column] != client:
                    both = f"to both {holder[column]!r} and {client!r}"
                else:
                    both = f"twice to {client!r}"
                raise DataError(f"Column {column!r} is given {both}: it can be held once.")
            holder[column] = client
