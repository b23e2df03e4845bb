"""Changes in single precision: half the bytes, for tokens that come the same way again and again.

What travels over a link is the change of the aggregate since the last message over it,

    c = float32(Z - R),        R <- R + c      at both ends, where R starts at 0,

and the receiver computes with R. A message is then wrong by 6e-8 of the *change*, which becomes
small as a training converges, and not of the aggregate, as with ``float32.py``. So differences of
tokens keep their digits, on which accelerations depend: they enlarge whatever is in them.

Both ends keep R for each link and token, and every message of a link must arrive, in order. That
holds for accelerated tours, where nothing is started again when a party is down.
"""

from __future__ import annotations

from copy import copy
from functools import partial
from typing import Any

import numpy as np

from mtcd.core.arrays import Array
from mtcd.protocol.codec.limits import F4
from mtcd.protocol.transports.transport import TRANSPORTS, P, Transport, mapped

Links = dict[int, dict[int, Array]]
"""R, by the party at the other end and the number of the token."""


@TRANSPORTS.register("delta32")
class Delta32(Transport):
    """Sends changes. The state: R of what was sent, and of what has arrived."""

    dtype = F4
    planned = True
    state_fields = ("told", "heard")
    keeps_differences = True
    unit = 2.0**-24
    note = (
        "transport delta32: changes of tokens travel in single precision, half the bytes; f that "
        "is read off a token may be wrong by about 1e-6 of itself (float64 is exact)."
    )

    def __init__(self) -> None:
        self.told: Links = {}
        self.heard: Links = {}

    def encode(self, numbers: Any) -> Any:
        """A change in its wire form; a number beyond the range of float32 becomes infinite."""
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(numbers, np.float32)

    def decode(self, numbers: Any) -> Any:
        return np.asarray(numbers, np.float64)

    def sent(self, payload: P, to: int) -> P:
        # a copy: the monitor has the same token, and reads f off it
        payload = copy(payload)
        return mapped(payload, partial(self._change, self._of(self.told, to), _index(payload)))

    def received(self, payload: P, sender: int) -> P:
        return mapped(payload, partial(self._sum, self._of(self.heard, sender), _index(payload)))

    def passed(self, payload: P, sender: int, to: int) -> P:
        # what the receiver would compute is what the sender keeps
        told, index = self._of(self.told, to), _index(payload)
        return mapped(self.sent(payload, to), lambda _change: told[index].copy())

    @staticmethod
    def _of(links: Links, peer: int) -> dict[int, Array]:
        return links.setdefault(peer, {})

    def _change(self, told: dict[int, Array], index: int, numbers: Any) -> Any:
        if numbers.dtype == F4:  # in its wire form already: it is sent again
            return numbers
        # What the receiver will have, and not what was meant: rounding is part of the next change,
        # so that it does not add up.
        known = told.get(index)
        if known is None:
            change = self.encode(numbers)
            told[index] = self.decode(change)
        else:
            change = self.encode(numbers - known)
            told[index] = known + change
        return change

    def _sum(self, heard: dict[int, Array], index: int, change: Any) -> Array:
        known = heard.get(index)
        # The same sum in the same order as at the sender: both ends have the same R to the bit.
        now = self.decode(change)
        if known is not None:
            now = known + change
        heard[index] = now
        return np.array(now)  # the party changes it in place


def _index(payload: Any) -> int:
    """The number of the token; 0 for what is no token."""
    found: int = getattr(payload, "index", 0)
    return found
