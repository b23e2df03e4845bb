"""Single precision: half the bytes. Every hop between two parties rounds the aggregate to 24 bits.

The parties compute in double precision, so a token drifts from the sum of the representations by
about 6e-8 of its size a hop, in random directions. That limits the gap that a training can reach,
see docs/config.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mtcd.protocol.codec.limits import F4
from mtcd.protocol.transports.transport import TRANSPORTS, Transport


@TRANSPORTS.register("float32")
class Float32(Transport):
    """Rounds to the nearest float32. A number beyond its range becomes infinite, and the training
    has diverged."""

    dtype = F4
    planned = True

    def encode(self, numbers: Any) -> Any:
        # What becomes infinite is refused on the wire, or ends the run as one that has diverged.
        with np.errstate(over="ignore"):
            return np.asarray(numbers, np.float32)

    def decode(self, numbers: Any) -> Any:
        return np.asarray(numbers, np.float64)
