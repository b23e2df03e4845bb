"""The token of parties that compare their gains: each can tell whether its next tree is worth growing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

import numpy as np

from mtcd.arrays import Array
from mtcd.errors import WireError
from mtcd.model.updates import MOST_MEASURED, Gains
from mtcd.protocol.token import HOPS, NOTHING, Token
from mtcd.schema.bounds import Bounds
from mtcd.schema.fields import Row
from mtcd.schema.payloads import payload

UNKNOWN = -1.0
AWAITED = -2.0  # unknown too, and no trees are grown before it is known
ROUNDS = 2  # a token waits for gains in its first 2K hops (at most MOST_MEASURED): a client may be down, or gone


@payload(41, HOPS)
@dataclass(slots=True)
class GainToken(Token):
    """A token with the latest gain of every client that it has met since the last sync.

    Of the others it is ``UNKNOWN``, or ``AWAITED`` in a training without syncs, which compares all clients first.
    """

    gains: Annotated[Array, Row("gains")] = field(default_factory=lambda: NOTHING)

    def known_gains(self, client: int) -> Gains:
        others = np.delete(self.gains, client)
        known = others[others >= 0.0]
        awaited = self.hop < min(ROUNDS * len(self.gains), MOST_MEASURED) and bool((others == AWAITED).any())
        return Gains(float(known.max()) if len(known) else None, awaited=awaited)

    def record(self, client: int, gains: Gains) -> None:
        self.gains = self.gains.copy()  # copies of the token, for recovery, keep theirs
        self.gains[client] = UNKNOWN if gains.own is None else gains.own

    def check(self, bounds: Bounds) -> None:
        super(GainToken, self).check(bounds)  # slots make another class, which the short form does not find
        if len(self.gains) != bounds.gains:
            raise WireError("gains", "has another length than there are clients")
        if any(gain < 0.0 and gain not in (UNKNOWN, AWAITED) for gain in self.gains):
            raise WireError("gains", "has a negative number")

    def expected_extra(self, bounds: Bounds) -> int:
        return super(GainToken, self).expected_extra(bounds) + bounds.gains
