"""The token of parties that compare their gains: each can tell whether its next tree is worth growing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

import numpy as np

from mtcd.arrays import Array
from mtcd.errors import WireError
from mtcd.model.updates import Gains
from mtcd.protocol.token import HOPS, NOTHING, Token
from mtcd.schema.bounds import Bounds
from mtcd.schema.fields import Row
from mtcd.schema.payloads import payload

UNKNOWN = -1.0


@payload(41, HOPS)
@dataclass(slots=True)
class GainToken(Token):
    """A token with the latest gain of every client that it has met since the last sync; ``UNKNOWN`` of the others."""

    gains: Annotated[Array, Row("gains")] = field(default_factory=lambda: NOTHING)

    def known_gains(self, client: int) -> Gains:
        others = np.delete(self.gains, client)
        return Gains(float(others.max()) if (others != UNKNOWN).any() else None)

    def record(self, client: int, gains: Gains) -> None:
        if gains.own is not None:
            self.gains = self.gains.copy()  # copies of the token, for recovery, keep theirs
            self.gains[client] = gains.own

    def check(self, bounds: Bounds) -> None:
        super(GainToken, self).check(bounds)  # slots make another class, which the short form does not find
        if len(self.gains) != bounds.gains:
            raise WireError("gains", "has another length than there are clients")
        if any(gain < 0.0 and gain != UNKNOWN for gain in self.gains):
            raise WireError("gains", "has a negative number")

    def expected_extra(self, bounds: Bounds) -> int:
        return super(GainToken, self).expected_extra(bounds) + bounds.gains
