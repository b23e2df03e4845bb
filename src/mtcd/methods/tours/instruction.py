"""What a token carries on an accelerated tour: the instruction for the clients, and the inner
products that they add."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Annotated, Any

import numpy as np

from mtcd.core.arrays import Array
from mtcd.core.errors import WireError
from mtcd.protocol.codec.extensions import Extension, declare
from mtcd.protocol.codec.fields import Row, Whole, limit_of
from mtcd.protocol.codec.limits import Bounds
from mtcd.protocol.codec.payloads import Bool, Count, Nested, Number
from mtcd.protocol.codec.stored import stored
from mtcd.protocol.token import Token

SURVEYED = 6
"""The count of numbers in a client's survey."""
most_snapshots = limit_of("snapshots")


def _weights(found: Array) -> tuple[float, ...]:
    return tuple(found.tolist())


@stored
@dataclass(frozen=True, slots=True)
class Instruction:
    """The operation of every client at the start of an accelerated tour: theta_k <- weighted sum of
    its last snapshots.

    The last snapshot is theta_k itself. Without weights theta_k stays as it is. The client then
    keeps ``keep`` snapshots: of the ends of tours, or with ``starts`` of their starts, this one
    included. With ``starts`` it makes two updates a tour, at its first and at its last visit, and
    adds to the token's inner products: of the start s of this tour with every snapshot s_i; of its
    change since, d, with every s_i - s; of d with s; and of d with itself. ``stepsize``: the sum of
    the steps of an update, where the home client chooses it (0: that of the plan). ``survey``: the
    client also adds the statistics of its columns (``ClientModel.survey``).
    """

    tour: Count
    weights: Annotated[tuple[float, ...], Row(most_snapshots, _weights)] = ()
    keep: Annotated[int, Whole(most_snapshots)] = 0
    starts: Bool = False
    trial: Bool = False
    """Whether the tour may be undone, so that its end is no progress yet."""
    stepsize: Number = 0.0
    survey: Bool = False

    @property
    def products(self) -> int:
        """How many inner products the token collects, with the numbers of a survey."""
        if not self.starts:
            return 0
        return 2 * self.keep + 1 + (SURVEYED if self.survey else 0)

    @property
    def floats(self) -> int:
        """How many numbers the token carries for it, without the inner products."""
        return len(self.weights) + (self.stepsize > 0)


NO_INSTRUCTION = Instruction(0)
NO_PRODUCTS = np.zeros(0)


def instruction_of(token: Token) -> Instruction:
    """The instruction that the token carries; the empty one before the first tour."""
    found: Instruction = token.slots.get("tour", NO_INSTRUCTION)
    return found


def products_of(token: Token) -> Array:
    """The inner products that the token collects, to which clients add in place."""
    found: Array = token.slots.get("products", NO_PRODUCTS)
    return found


def instruct(token: Token, instruction: Instruction) -> None:
    """Let the token carry this instruction from now on, and collect its products anew."""
    others = {
        name: value for name, value in token.slots.items() if name not in ("tour", "products")
    }
    token.slots = {**others, "tour": instruction}
    if instruction.products:
        token.put("products", np.zeros(instruction.products))


def _check(payload: Any, value: Any, bounds: Bounds) -> None:
    instruction = instruction_of(payload)
    if np.signbit(instruction.stepsize):
        raise WireError("tour.stepsize", "is negative")
    if len(products_of(payload)) != instruction.products:
        raise WireError("products", "has another length than the instruction says")


def _former_instruction(attributes: Mapping[str, Any]) -> Instruction | None:
    # the class of an empty instruction may be another one: see mtcd.protocol.former
    found = Instruction(*_fields_of(attributes["instruction"]))
    return None if found == NO_INSTRUCTION else found


def _former_products(attributes: Mapping[str, Any]) -> Array | None:
    wanted = Instruction(*_fields_of(attributes["instruction"])).products
    products: Array = attributes["tally"].products
    return products if wanted else None


def _fields_of(instruction: Any) -> list[Any]:
    return [getattr(instruction, name) for name in Instruction.__slots__]


TOUR = declare(
    Extension(
        2,
        "tour",
        Nested(Instruction),
        attrgetter("floats"),
        always=False,
        check=_check,
        extrapolates=lambda instruction: bool(instruction.weights),
        former=_former_instruction,
    )
)
PRODUCTS = declare(
    Extension(
        3,
        "products",
        Row(limit_of("products")),
        len,
        always=False,
        check=_check,
        former=_former_products,
    )
)
