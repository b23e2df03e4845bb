"""The weights of earlier syncs, as tokens carry them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mtcd.core.errors import WireError
from mtcd.methods.past_weights import PAST
from mtcd.protocol.codec.limits import Bounds
from mtcd.protocol.codec.reading import Reader

BOUNDS = Bounds("run", 2, frozenset(), (1,), tokens=2, iterations=9, limits={"past": 3})
WEIGHTS = {5: np.array([0.5, 0.25]), 1: np.array([1.0, 0.0]), 3: np.array([2.0, 3.0])}


def written(value: dict[int, Any]) -> bytes:
    chunks: Any = []
    PAST.field.write(value, chunks)
    return b"".join(bytes(chunk) for chunk in chunks)


def test_each_iteration_keeps_its_weights_in_whatever_order_they_came() -> None:
    sent = written(WEIGHTS)
    assert sent == written(dict(sorted(WEIGHTS.items())))
    read = PAST.field.read(Reader(memoryview(sent), 0, BOUNDS, 0))
    assert list(read) == [1, 3, 5]
    for t, weights in WEIGHTS.items():
        assert read[t].tolist() == weights.tolist()
    # as many syncs as a token may carry: room for a frame is made for these, and for no more
    assert len(sent) == PAST.field.most(BOUNDS)


@pytest.mark.parametrize("t", [5, 6])
def test_weights_are_of_syncs_that_have_taken_place(t: int) -> None:
    token = SimpleNamespace(t=t)
    if t == 6:
        PAST.check(token, WEIGHTS, BOUNDS)
        return
    with pytest.raises(WireError, match="past is of an iteration that is still to come"):
        PAST.check(token, WEIGHTS, BOUNDS)
