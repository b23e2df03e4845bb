"""What a tour is told by the token: its numbers, and what must fit them."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mtcd.core.errors import WireError
from mtcd.methods.tours.instruction import PRODUCTS, TOUR, Instruction

BOUNDS: Any = None
TOLD = Instruction(3, (0.5, 0.25), keep=2, starts=True, stepsize=0.125)


def carried(instruction: Instruction, products: int) -> Any:
    return SimpleNamespace(slots={"tour": instruction, "products": np.zeros(products)})


@pytest.mark.parametrize("slot", [TOUR, PRODUCTS], ids=lambda slot: slot.name)
def test_there_are_as_many_products_as_the_instruction_says(slot: Any) -> None:
    assert TOLD.products > 0
    slot.check(carried(TOLD, TOLD.products), None, BOUNDS)
    for count in (0, TOLD.products - 1, TOLD.products + 1):
        with pytest.raises(WireError, match="products has another length"):
            slot.check(carried(TOLD, count), None, BOUNDS)


@pytest.mark.parametrize("stepsize", [-0.125, -0.0])
def test_a_stepsize_is_not_negative(stepsize: float) -> None:
    with pytest.raises(WireError, match=r"tour\.stepsize is negative"):
        TOUR.check(carried(replace(TOLD, stepsize=stepsize), TOLD.products), None, BOUNDS)


def test_the_numbers_of_an_instruction() -> None:
    assert TOUR.floats(TOLD) == 3
    assert TOUR.floats(replace(TOLD, stepsize=0.0)) == 2
    assert TOUR.extrapolates(TOLD)
    assert not TOUR.extrapolates(Instruction(3))
    # most tokens are on no tour
    assert not TOUR.always
    assert not PRODUCTS.always
