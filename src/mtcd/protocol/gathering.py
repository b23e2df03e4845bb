"""The server's side of an upload by everybody: representations and penalties, summed when all are there."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np

from mtcd.arrays import Array
from mtcd.schema.payloads import Payload, payload, stored
from mtcd.schema.types import Number, Representation


@payload(6, "c>s")
@dataclass(frozen=True, slots=True)
class Fresh(Payload):
    """A client's representation on the batch asked for, and its penalty."""

    representation: Representation
    penalty: Number

    @property
    def floats(self) -> int:
        return math.prod(self.representation.shape)


@stored
@dataclass
class Gathering:
    """One upload from each of K clients, in whatever order they come. Those of absent clients are ``here`` already."""

    clients: int
    here: dict[int, Fresh] = field(default_factory=dict)

    def add(self, client: int, fresh: Fresh, leaving: Collection[int] = ()) -> tuple[Array, float] | None:
        """The sums of both when the last client has come (then it starts anew), None before.

        Summed in the order of the clients, so that it does not matter who came first. The uploads of those
        who are away next time stay.
        """
        self.here[client] = fresh
        if len(self.here) < self.clients:
            return None
        uploads = [self.here[k] for k in range(self.clients)]
        self.here = {k: self.here[k] for k in leaving}
        return np.asarray(sum(one.representation for one in uploads)), sum(one.penalty for one in uploads)
