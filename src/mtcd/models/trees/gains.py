"""Parties with trees compare their gains: the token carries them, and each can tell whether its
next tree is worth it.

A :class:`mtcd.methods.mtcd.features.TokenFeature`: methods carry it without knowing it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np

from mtcd.core.arrays import Array
from mtcd.core.errors import WireError
from mtcd.protocol.codec.fields import Row
from mtcd.protocol.codec.limits import Bounds
from mtcd.protocol.codec.payloads import payload
from mtcd.protocol.model import Theta
from mtcd.protocol.token import HOPS, NOTHING, Token
from mtcd.protocol.updates import MOST_MEASURED, Gains, LocalUpdates

UNKNOWN = -1.0
AWAITED = -2.0  # unknown too, and no trees are grown before it is known
# a token waits for gains in its first 2K hops (at most MOST_MEASURED): a client may be down, or
# gone
ROUNDS = 2


@payload(41, HOPS)
@dataclass(slots=True)
class GainToken(Token):
    """A token with the latest gain of every client that it has met since the last sync.

    Of the others it is ``UNKNOWN``, or ``AWAITED`` in a training without syncs, which compares all
    clients first.
    """

    gains: Annotated[Array, Row(lambda bounds: bounds.limits.get("gains", 0))] = field(
        default_factory=lambda: NOTHING
    )

    def known_gains(self, client: int) -> Gains:
        others = np.delete(self.gains, client)
        known = others[others >= 0.0]
        awaited = self.hop < min(ROUNDS * len(self.gains), MOST_MEASURED) and bool(
            (others == AWAITED).any()
        )
        return Gains(float(known.max()) if len(known) else None, awaited=awaited)

    def record(self, client: int, gains: Gains) -> None:
        self.gains = self.gains.copy()  # copies of the token, for recovery, keep theirs
        self.gains[client] = UNKNOWN if gains.own is None else gains.own

    def check(self, bounds: Bounds) -> None:
        # slots make another class, which the short form does not find
        super(GainToken, self).check(bounds)
        if len(self.gains) != bounds.limits.get("gains", 0):
            raise WireError("gains", "has another length than there are clients")
        if any(gain < 0.0 and gain not in (UNKNOWN, AWAITED) for gain in self.gains):
            raise WireError("gains", "has a negative number")

    def expected_extra(self, bounds: Bounds) -> int:
        return super(GainToken, self).expected_extra(bounds) + bounds.limits.get("gains", 0)


@dataclass(frozen=True)
class ComparedGains:
    """Tokens carry a gain for each of ``clients``."""

    clients: int
    payload = GainToken

    @property
    def floats(self) -> int:
        """One number for each client."""
        return self.clients

    @property
    def limits(self) -> Mapping[str, int]:
        """The length of the row on the wire."""
        return {"gains": self.clients}

    def attach(self, token: Token, endless: bool) -> GainToken:
        """A token that has met no client: without syncs, no trees are grown before it has met
        all."""
        unknown = np.full(self.clients, AWAITED if endless else UNKNOWN)
        extra = token.extra + self.clients
        return GainToken(
            token.index,
            token.t,
            token.hop,
            token.aggregate,
            token.penalty,
            extra=extra,
            gains=unknown,
        )

    def around(
        self, client: int, update: Callable[[Theta, Any, LocalUpdates], Theta]
    ) -> Callable[..., Theta]:
        """Tell the model what the token knows, and the token what the model found."""

        def compared(theta: Theta, token: GainToken, updates: LocalUpdates) -> Theta:
            gains = token.known_gains(client)
            theta = update(theta, token, updates._replace(gains=gains))
            token.record(client, gains)
            return theta

        return compared
