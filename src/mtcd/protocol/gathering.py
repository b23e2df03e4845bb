"""The server's side of an upload by everybody: representations and penalties, summed when all are there."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Fresh(NamedTuple):
    """A client's representation on the batch asked for, and its penalty."""

    representation: Array
    penalty: float


class Gathering:
    """One upload from each of K clients, in whatever order they come."""

    def __init__(self, clients: int) -> None:
        self.clients = clients
        self._here: dict[int, Fresh] = {}

    def add(self, client: int, fresh: Fresh) -> tuple[Array, float] | None:
        """The sums of both when the last client has come (then it starts anew), None before.

        Summed in the order of the clients, so that it does not matter who came first.
        """
        self._here[client] = fresh
        if len(self._here) < self.clients:
            return None
        uploads = [self._here.pop(k) for k in range(self.clients)]
        return np.asarray(sum(one.representation for one in uploads)), sum(one.penalty for one in uploads)
