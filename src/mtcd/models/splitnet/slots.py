"""What a token of a split network carries beside H: theta_0, the clients that it has visited, and,
without a server, where it is heading."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from mtcd.network.walks import NOWHERE
from mtcd.protocol.codec.arrays import SharedField
from mtcd.protocol.codec.extensions import Extension, declare
from mtcd.protocol.codec.fields import ClientSet, Whole, limit_of
from mtcd.protocol.codec.payloads import Nested, Number, last_client
from mtcd.protocol.codec.stored import stored
from mtcd.protocol.model import Tensor
from mtcd.protocol.token import Token


@stored
@dataclass(frozen=True, slots=True)
class Journey:
    """Of a token without a server: ``heading``, the client to which it is sent, and ``start_loss``,
    the loss at the start of training, from which divergence is told; 0 before its first report."""

    heading: Annotated[int, Whole(last_client, low=NOWHERE)] = NOWHERE
    start_loss: Number = 0.0


AT_REST = Journey()


def theta_0_of(token: Token) -> Sequence[Tensor]:
    """The parameters of the fusion module that the token carries."""
    found: Sequence[Tensor] = token.slots[THETA_0.name]
    return found


def journey_of(token: Token) -> Journey:
    """Where a token without a server is heading."""
    found: Journey = token.slots.get(JOURNEY.name, AT_REST)
    return found


def visited_by(token: Token) -> frozenset[int]:
    """The clients that the token has visited since the last sync, where their copies are
    averaged."""
    found: frozenset[int] = token.slots.get(VISITED.name, frozenset())
    return found


def _numbers(theta_0: Sequence[Tensor]) -> int:
    return sum(math.prod(value.shape) for value in theta_0)


# The numbers and names are those of the wire: they must not change without a new protocol.
# theta_0 travels as the aggregate does, in single precision
THETA_0 = declare(Extension(7, "theta_0", SharedField(), _numbers, wide=False))
# not counted, like t and hop
JOURNEY = declare(Extension(8, "journey", Nested(Journey), always=False))
VISITED = declare(Extension(9, "visited", ClientSet(frozenset, limit_of("visited")), always=False))
