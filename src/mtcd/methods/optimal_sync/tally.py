"""What a token collects for optimal sync, from which f follows at any weights of the sync."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from mtcd.core.arrays import Array
from mtcd.core.errors import WireError
from mtcd.protocol.codec.extensions import Extension, declare
from mtcd.protocol.codec.fields import ClientSet, Row, limit_of
from mtcd.protocol.codec.limits import Bounds
from mtcd.protocol.codec.payloads import Nested, Number
from mtcd.protocol.codec.stored import stored
from mtcd.protocol.token import Token


@stored
@dataclass(slots=True)
class SyncTally:
    """Sums over the visits of one token since the last sync.

    ``products``: inner products, weighted by the regulariser, of its change of theta with that of
    each token (the contributions of this token's visits); ``slope``: the derivative of the
    regulariser along its change; ``visited``: the clients visited.
    """

    products: Annotated[Array, Row(limit_of("products"))]
    slope: Number = 0.0
    visited: Annotated[set[int], ClientSet(set, limit_of("visited"))] = field(default_factory=set)


def tally_of(token: Token) -> SyncTally:
    """The sums of this token."""
    found: SyncTally = token.slots[TALLY.name]
    return found


def _floats(tally: SyncTally) -> int:
    return len(tally.products) + 1 + len(tally.visited)


def _check(payload: Any, tally: SyncTally, bounds: Bounds) -> None:
    if len(tally.products) != bounds.tokens:
        # The codec knows only the most of a row; how long this one must be, the run tells.
        raise WireError("tally.products", "has another length than there are tokens")


def _former(attributes: Mapping[str, Any]) -> SyncTally | None:
    tally = attributes["tally"]
    # those of tours have no slope and no clients, and are read there
    toured = attributes["instruction"].tour > 0
    if toured or not len(tally.products):
        return None
    return SyncTally(tally.products, tally.slope, tally.visited)


TALLY = declare(Extension(5, "tally", Nested(SyncTally), _floats, check=_check, former=_former))
