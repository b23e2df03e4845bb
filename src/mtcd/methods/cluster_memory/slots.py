"""What a token carries for a sync with memory: the weights of its cluster, down, and inner products
of its change, up."""

from __future__ import annotations

from typing import Any

import numpy as np

from mtcd.core.arrays import Array
from mtcd.protocol.codec.extensions import Extension, declare
from mtcd.protocol.codec.fields import Row, limit_of
from mtcd.protocol.token import Token

NONE = np.zeros(0)


def weights_of(token: Token) -> Array:
    """The weights of the last sync for the directions of this token's cluster; none before the
    first sync."""
    found: Array = token.slots.get(WEIGHTS.name, NONE)
    return found


def sums_of(token: Token) -> Array:
    """The inner products that the token collects, in this order: of the change since the start with
    each direction kept, of the start with each, of the change with the start, and with itself."""
    found: Array = token.slots[SUMS.name]
    return found


def _numbers(value: Any) -> int:
    return int(value.size)


WEIGHTS = declare(
    Extension(
        20,
        "cluster_weights",
        Row(limit_of("cluster weights")),
        _numbers,
        always=False,
        extrapolates=lambda weights: True,
    )
)
SUMS = declare(Extension(21, "cluster_sums", Row(limit_of("cluster sums")), _numbers))
