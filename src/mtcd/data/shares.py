"""The assignment of columns to clients."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from numbers import Integral
from typing import Any, TypeVar

import numpy as np

from mtcd.core.errors import DataError, did_you_mean, listing
from mtcd.core.mappings import positions

Column = TypeVar("Column")


def even_shares(columns: Sequence[Column], clients: int | Sequence[str]) -> dict[str, list[Column]]:
    """Columns split evenly, in order, over clients: so many, named client_0, client_1, ..., or with
    these names.

    >>> even_shares(["a", "b", "c"], 2)
    {'client_0': ['a', 'b'], 'client_1': ['c']}
    """
    names = _names_of(clients)
    if not columns:
        raise DataError("There is no feature column: nothing is left for the clients to hold.")
    # a client without columns has nothing to train
    if len(names) > len(columns):
        raise DataError(
            f"{len(names)} clients cannot share {len(columns)} columns: each needs at least one. "
            f"Ask for {len(columns)} clients or fewer."
        )

    # the first ``extra`` clients have one column more than the others
    size, extra = divmod(len(columns), len(names))
    shares: dict[str, list[Column]] = {}
    end = 0
    for k, name in enumerate(names):
        start, end = end, end + size + (k < extra)
        shares[name] = list(columns[start:end])
    return shares


def _names_of(clients: int | Sequence[str]) -> Sequence[str]:
    """The names of clients, of whom the number may be given."""
    if isinstance(clients, int | np.integer):
        # True is a number to Python: nobody asks for 'True' clients on purpose
        if not isinstance(clients, bool) and clients >= 1:
            return [f"client_{k}" for k in range(clients)]
    elif isinstance(clients, Sequence) and not isinstance(clients, str):
        return clients
    raise DataError(f"The number of clients must be a whole number, 1 or more, but is {clients!r}.")


def assigned(names: Sequence[str], labels: Sequence[Any], clients: Any) -> dict[str, list[int]]:
    """The positions of the columns that each client holds; ``clients`` as in :func:`mtcd.split`.

    ``labels`` are the names of the columns before these were turned into text.
    """
    if not isinstance(clients, Mapping | Iterable) or isinstance(clients, str):
        return even_shares(range(len(names)), clients)
    if not isinstance(clients, Mapping):
        clients = list(clients)
        # texts are names of clients; to hold single columns, clients are given lists of one
        if clients and all(isinstance(client, str) for client in clients):
            return even_shares(range(len(names)), _client_names(names, clients))
        clients = {f"client_{k}": held for k, held in enumerate(clients)}

    find = _finder(names, labels)

    owned: dict[str, list[int]] = {}
    for client, held in clients.items():
        # by position, as Python slices are: a name such as 'a':'c' is refused
        if isinstance(held, slice):
            owned[client] = _sliced(client, held, len(names))
            continue
        if isinstance(held, str) or not isinstance(held, Iterable):
            raise DataError(f"Client {client!r} must be given a list of columns, but got {held!r}.")
        owned[client] = [find(client, column) for column in held]

    held_names = {client: [names[j] for j in places] for client, places in owned.items()}
    check_owned_once(held_names)
    return owned


def _client_names(columns: Sequence[str], clients: list[str]) -> list[str]:
    # names of columns, most likely, where a list of lists was meant
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
    # a table of pandas whose columns are named 0, 1, 2 in another order: then 0 is a name
    numbered = any(_is_whole(label) for label in labels)
    places: dict[Any, int] = positions(names)
    places |= positions(labels)

    def find(client: str, column: Any) -> int:
        if _is_whole(column) and not numbered:
            if column in range(len(names)):
                return int(column)
        elif not isinstance(column, bool):  # True equals 1, and would be found as that label
            with suppress(TypeError):  # of what has no hash, such as a list
                if column in places:
                    return places[column]
        raise _no_such_column(client, column, names)

    return find


def _no_such_column(client: str, column: Any, names: Sequence[str]) -> DataError:
    hint = "."
    if isinstance(column, str):
        hint = f"; {did_you_mean(column, names)}"
    elif isinstance(column, bool | np.bool_):
        hint = ": give its name or position (of a mask, numpy.flatnonzero(mask))."
    return DataError(
        f"Client {client!r} asks for column {column!r}, which the data does not have{hint}"
    )


def _sliced(client: str, held: slice, width: int) -> list[int]:
    try:
        return list(range(width))[held]
    except (TypeError, ValueError):
        raise DataError(
            f"Client {client!r} is given {held!r}: a slice goes by position, so its ends must be "
            "whole numbers."
        ) from None


def _is_whole(label: object) -> bool:
    return isinstance(label, Integral) and not isinstance(label, bool)


def check_owned_once(owned: Mapping[str, Iterable[str]]) -> None:
    """Reject a column that is assigned twice."""
    holder: dict[str, str] = {}
    for client, held in owned.items():
        for column in held:
            if column in holder:
                raise _held_twice(column, holder[column], client)
            holder[column] = client


def _held_twice(column: str, first: str, second: str) -> DataError:
    both = f"to both {first!r} and {second!r}"
    if first == second:
        both = f"twice to {second!r}"
    return DataError(f"Column {column!r} is given {both}: it can be held once.")
