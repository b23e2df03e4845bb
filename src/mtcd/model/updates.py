"""What the updates of a visit are, for models of all families."""

from __future__ import annotations

from typing import NamedTuple

from mtcd.arrays import Rows


class LocalUpdates(NamedTuple):
    """The local updates of one visit: ``Q`` steps of the size ``eta``, on all samples or on these ``rows``.

    ``majorise``: steps on the quadratic upper bound of f at the aggregate, instead of f. ``visit``: the token, its
    iteration and its hop, which seed random draws.
    """

    Q: int
    eta: float
    rows: Rows | None = None
    majorise: bool = False
    visit: tuple[int, ...] = ()
