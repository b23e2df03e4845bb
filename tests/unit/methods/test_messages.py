"""What methods say of their messages."""

from __future__ import annotations

import pytest

import mtcd
from mtcd.methods.method import Method
from mtcd.privacy.sealed.settings import SealedTours

METHODS = [
    mtcd.MTCD(tokens=2, hops=4),
    mtcd.STCD(),
    mtcd.SVFL(),
    mtcd.SVFL(acceleration="momentum"),
    mtcd.DCPA(),
    mtcd.TreeCG(),
    SealedTours(),
]


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.describe())
@pytest.mark.parametrize(("outputs", "shape"), [(1, (7,)), (3, (7, 3))])
def test_an_aggregate_has_a_row_for_each_sample(
    method: Method, outputs: int, shape: tuple[int, ...]
) -> None:
    network = mtcd.make_network("path", ["a", "b", "c"])
    messages = method.messages(network, 0, 7, outputs)
    assert messages.aggregate == shape
    assert messages.bounds("run").shape == shape


def test_numbers_of_a_transport_are_those_that_travel() -> None:
    network = mtcd.make_network("path", ["a", "b", "c"])
    found = {}
    for transport in ("float64", "float32"):
        method = mtcd.SVFL(transport=transport)
        found[transport] = method.messages(network, 0, 7).bounds("run").numbers
    assert found == {"float64": None, "float32": "<f4"}
