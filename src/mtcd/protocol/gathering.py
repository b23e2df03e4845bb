"""The server's side of an upload by all clients: it sums representations and penalties when all
have arrived."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np

from mtcd.core.arrays import Array
from mtcd.protocol.codec.payloads import Number, Payload, Representation, payload
from mtcd.protocol.codec.stored import stored


@payload(6, "c>s")
@dataclass(frozen=True, slots=True)
class Fresh(Payload):
    """A client's representation on the requested batch, and its penalty."""

    depends_on_tokens = False

    representation: Representation
    penalty: Number

    @property
    def floats(self) -> int:
        return math.prod(self.representation.shape)


@stored
@dataclass
class Gathering:
    """Collects one upload from each of K clients, in any order. Those of absent clients are
    ``here`` from the start."""

    clients: int
    here: dict[int, Fresh] = field(default_factory=dict)

    def add(
        self, client: int, fresh: Fresh, leaving: Collection[int] = ()
    ) -> tuple[Array, float] | None:
        """Add an upload. Returns the sums of both once all have arrived, and resets; None before.

        Sums are formed in the order of the clients, so the order of arrival does not matter. The
        uploads of the clients that leave before the next round are retained.
        """
        self.here[client] = fresh
        # Only when all are there: a sum of some would be taken for that of all.
        if len(self.here) < self.clients:
            return None
        uploads = [self.here[k] for k in range(self.clients)]
        # Those that leave upload nothing in the next round, but are part of its sum.
        self.here = {k: self.here[k] for k in leaving}
        total = sum(one.representation for one in uploads)
        return np.asarray(total), sum(one.penalty for one in uploads)
