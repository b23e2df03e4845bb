"""What a token carries on twin tours: the order of the home client, the second aggregate, and the
inner products that clients add."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from mtcd.core.arrays import Array
from mtcd.core.errors import WireError
from mtcd.methods.tours.instruction import SURVEYED
from mtcd.protocol.codec.arrays import AggregateField
from mtcd.protocol.codec.extensions import Extension, declare
from mtcd.protocol.codec.fields import Row, Whole, limit_of
from mtcd.protocol.codec.limits import Bounds
from mtcd.protocol.codec.payloads import Bool, Count, Nested, Number
from mtcd.protocol.codec.stored import stored
from mtcd.protocol.token import Token

most_directions = limit_of("twin directions")


def _weights(found: Array) -> tuple[float, ...]:
    return tuple(found.tolist())


@stored
@dataclass(frozen=True, slots=True)
class Order:
    """What every client does in a tour.

    At its first visit it moves theta_k by the ``weights`` of the directions that it has kept, the
    oldest first, if there are any, and keeps the last ``keep`` of them. At its first and its last
    visit it updates its copies: with ``solves`` two of them, of which one is solved, and otherwise
    one. The steps of an update of the short copy add up to ``reach``. ``survey``: it also adds the
    statistics of its columns.
    """

    tour: Count
    weights: Annotated[tuple[float, ...], Row(most_directions, _weights)]
    keep: Annotated[int, Whole(most_directions)]
    reach: Number
    solves: Bool = True
    survey: Bool = False

    @property
    def copies(self) -> int:
        """How many directions a tour adds."""
        return 2 if self.solves else 1

    @property
    def products(self) -> int:
        """How many numbers the token collects.

        Of the directions kept with theta_k and with each new one, of the new ones with theta_k and
        among themselves, and a survey.
        """
        new = self.copies
        return (1 + new) * self.keep + new + new * (new + 1) // 2 + SURVEYED * self.survey


def order_of(token: Token) -> Order:
    """The order that the token carries."""
    found: Order = token.slots[ORDER.name]
    return found


def second_of(token: Token) -> Array:
    """The aggregate of the short copies, where the token's own is that of the solved ones."""
    found: Array = token.slots[SECOND.name]
    return found


def products_of(token: Token) -> Array:
    """The inner products that the token collects, to which clients add in place."""
    found: Array = token.slots[PRODUCTS.name]
    return found


def give(token: Token, order: Order) -> None:
    """Let the token carry this order from now on, and collect its products anew."""
    slots = {**token.slots, ORDER.name: order, PRODUCTS.name: np.zeros(order.products)}
    slots.pop(SECOND.name, None)
    if order.solves:
        slots[SECOND.name] = token.aggregate.copy()
    token.slots = slots


def _check(payload: Any, value: Any, bounds: Bounds) -> None:
    order = payload.slots.get(ORDER.name)
    if order is None:
        raise WireError(ORDER.name, "is missing, though the token carries what belongs to it")
    if np.signbit(order.reach):
        raise WireError("twin.reach", "is negative")
    if len(payload.slots.get(PRODUCTS.name, ())) != order.products:
        raise WireError(PRODUCTS.name, "have another length than the order says")
    if (SECOND.name in payload.slots) != order.solves:
        raise WireError(SECOND.name, "is there or not, other than the order says")


ORDER = declare(
    Extension(
        24,
        "twin",
        Nested(Order),
        # the weights, and the reach
        lambda order: len(order.weights) + 1,
        always=False,  # the first token has not been at its home client
        check=_check,
        extrapolates=lambda order: len(order.weights) > 0,
    )
)
SECOND = declare(
    Extension(
        25,
        "twin_second",
        AggregateField(),
        lambda aggregate: int(aggregate.size),
        wide=False,
        always=False,
        check=_check,
    )
)
PRODUCTS = declare(
    Extension(
        26,
        "twin_products",
        Row(limit_of("twin products")),
        len,
        always=False,
        check=_check,
    )
)
