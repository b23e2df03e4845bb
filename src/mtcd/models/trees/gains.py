"""Parties with trees compare their gains: the token carries them, so that each party can tell
whether its next tree is worth a visit.

``ComparedGains`` is a :class:`mtcd.methods.mtcd.features.TokenFeature`: methods carry it without
knowing it. ``GrowthRule`` says how many trees a visit grows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mtcd.core.arrays import Array
from mtcd.core.errors import WireError
from mtcd.protocol.codec.extensions import Extension, declare
from mtcd.protocol.codec.fields import Row, limit_of
from mtcd.protocol.codec.limits import Bounds
from mtcd.protocol.model import MOST_MEASURED, Gains, LocalUpdates, Theta
from mtcd.protocol.token import Token

# gains are never negative, so negative numbers are free to say what is known of them
UNKNOWN = -1.0
AWAITED = -2.0  # unknown too, and no trees are grown before it is known

# A token waits for gains in its first ROUNDS * K hops, at most MOST_MEASURED: a client may be down,
# and the others must not wait for it for ever.
ROUNDS = 2

# A party whose tree gains less than this share of the largest gain of others passes the token on
# unchanged. Chosen on held-out rows of ten tables (docs/trees.md).
SHARE = 0.7

# Times Q: the most trees of a visit, while each gains at least as much as others would. More of
# them did not lower the held-out loss (docs/trees.md).
MOST = 8


class GrowthRule:
    """Decides tree by tree how much a visit grows, by comparing gains with those of other parties.

    With G the largest latest gain of the other parties, a visit grows no tree where the own gain is
    below ``SHARE`` * G, up to Q trees from there to G, and up to ``MOST`` * Q from G on. Where the
    token knows no gains of others, it grows Q trees.

    This is greedy coordinate descent (the Gauss-Southwell rule) with what a token knows: the gains
    of others date from their last visits. A token that roams without syncs learns the gains of all
    parties before the first tree: trees of weak columns fit noise in proportion to the residuals,
    which are largest at the start.

    Parameters
    ----------
    Q : int
        The local updates of a visit.
    gains : Gains, optional
        What the token knows; None where parties do not compare gains.
    """

    def __init__(self, Q: int, gains: Gains | None) -> None:
        self.Q = Q
        self.gains = gains

    @property
    def compares(self) -> bool:
        """Whether the token carries gains."""
        return self.gains is not None

    @property
    def most(self) -> int:
        """The most trees that a visit may grow."""
        if self.gains is None:
            return self.Q
        return self.Q * MOST

    def accepts(self, place: int, gain: float) -> bool:
        """Whether to grow tree number ``place`` of the visit, whose gain on held-out samples is
        ``gain``."""
        assert self.gains is not None
        # the token takes along the gain of the next tree, grown or not: others compare with it
        self.gains.own = gain
        if self.gains.awaited:
            return False

        others = self.gains.others
        within_Q = place < self.Q
        if others is None:
            return within_Q

        least = SHARE * others if within_Q else others
        return gain > 0.0 and gain >= least


def known_gains(token: Token, client: int) -> Gains:
    """What the token tells this client about the gains of the others."""
    gains: Array = token.slots[GAINS.name]
    # The own entry is of an earlier visit, and about to be replaced.
    others = np.delete(gains, client)
    known = others[others >= 0.0]
    largest = None
    if len(known):
        largest = float(known.max())

    still_waits = token.hop < min(ROUNDS * len(gains), MOST_MEASURED)
    awaited = still_waits and bool((others == AWAITED).any())
    return Gains(largest, awaited=awaited)


def record(token: Token, client: int, gains: Gains) -> None:
    """Keep the gain that this client found during its visit."""
    # a new array: recovery keeps shallow copies of tokens, which must not change with this one
    latest: Array = token.slots[GAINS.name].copy()
    if gains.own is None:
        latest[client] = UNKNOWN
    else:
        latest[client] = gains.own
    token.put(GAINS.name, latest)


def _check(payload: Any, gains: Array, bounds: Bounds) -> None:
    if len(gains) != most_gains(bounds):
        raise WireError("gains", "has another length than there are clients")
    # Numbers below 0 are only the two marks; NaN and infinity are refused with the field.
    negative = gains[gains < 0.0]
    if not np.isin(negative, (UNKNOWN, AWAITED)).all():
        raise WireError("gains", "has a negative number")


most_gains = limit_of("gains")
GAINS = declare(
    Extension(
        1,
        "gains",
        Row(most_gains),
        len,
        check=_check,
        former=lambda attributes: attributes.get("gains"),
    )
)
"""The latest gain of every client that the token has met since the last sync. That of a client that
it has not met is ``UNKNOWN``, or ``AWAITED`` in a training without syncs, which compares all clients
first."""


@dataclass(frozen=True)
class ComparedGains:
    """Tokens carry the latest gain of each of ``clients`` clients."""

    clients: int
    extension = GAINS

    @property
    def floats(self) -> int:
        """The numbers that a token carries more: one for each client."""
        return self.clients

    @property
    def limits(self) -> Mapping[str, int]:
        """The length of the row on the wire."""
        return {"gains": self.clients}

    def first_value(self, endless: bool) -> Array:
        """A token that has met no client: without syncs, no trees are grown before it has met
        all."""
        known = AWAITED if endless else UNKNOWN
        return np.full(self.clients, known)

    def around(
        self, client: int, update: Callable[[Theta, Any, LocalUpdates], Theta]
    ) -> Callable[..., Theta]:
        """The update of a client, given what the token knows, and with what it found recorded in
        the token."""

        def compared(theta: Theta, token: Token, updates: LocalUpdates) -> Theta:
            gains = known_gains(token, client)
            theta = update(theta, token, updates._replace(gains=gains))
            record(token, client, gains)
            return theta

        return compared
