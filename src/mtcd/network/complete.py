"""The neighbours of a large complete network, which are not stored: K (K - 1) numbers, 800 MB for
10,000 clients."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, overload


class Others(Sequence[int]):
    """All clients 0..K-1 but one, in order.

    >>> list(Others(1, 4))
    [0, 2, 3]
    """

    # One small object per client; a dictionary in each would undo what is saved.
    __slots__ = ("_client", "_size")

    def __init__(self, client: int, size: int) -> None:
        self._client = client
        self._size = size

    def __len__(self) -> int:
        return self._size - 1

    @overload
    def __getitem__(self, place: int) -> int: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[int]: ...
    def __getitem__(self, place: int | slice) -> int | Sequence[int]:
        if isinstance(place, slice):
            # The range does the arithmetic of steps and of negative ends.
            places = range(len(self))[place]
            # Behind the client left out, the others are a range again, one number on.
            if places and min(places[0], places[-1]) >= self._client:
                return range(places.start + 1, places.stop + 1, places.step)
            return [self[i] for i in places]

        found = range(self._size - 1)[place]  # also from the end, or an IndexError
        return found + (found >= self._client)

    def __iter__(self) -> Iterator[int]:
        return chain(range(self._client), range(self._client + 1, self._size))

    def __contains__(self, client: object) -> bool:
        return client != self._client and client in range(self._size)


class CompleteNeighbours(Sequence[Sequence[int]]):
    """For each of K clients, all others.

    >>> list(CompleteNeighbours(3)[1])
    [0, 2]
    """

    __slots__ = ("_size",)

    def __init__(self, size: int) -> None:
        self._size = size

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, client: int) -> Sequence[int]: ...
    @overload
    def __getitem__(self, client: slice) -> Sequence[Sequence[int]]: ...
    def __getitem__(self, client: int | slice) -> Any:
        if isinstance(client, slice):
            return [self[k] for k in range(*client.indices(self._size))]
        return Others(range(self._size)[client], self._size)

    def __repr__(self) -> str:
        return f"CompleteNeighbours({self._size})"
