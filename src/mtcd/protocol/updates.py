"""What the updates of a visit are, for models of all families."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from mtcd.core.arrays import Rows

# the most hops at the start of a training in which parties only measure their gains
MOST_MEASURED = 50


@dataclass(slots=True)
class Gains:
    """What a token knows about gains, the decreases of the loss that a party's next update
    promises.

    ``others``: the largest latest gain of the other parties; None if the token has met none.
    ``own``: written by the visit, for the parties that follow; None if the family does not compare
    gains. ``awaited``: whether the visit is to measure its gain only, since the token has yet to
    learn those of other parties.
    """

    others: float | None
    own: float | None = None
    awaited: bool = False


class LocalUpdates(NamedTuple):
    """The local updates of one visit: ``Q`` steps of the size ``eta``, on all samples or on these
    ``rows``.

    ``majorise``: steps on the quadratic upper bound of f at the aggregate, instead of f. ``newton``:
    each minimises f over the block, or nearly, whatever ``eta`` and the bound. ``visit``:
    the token, its iteration and its hop, which seed random draws. ``gains``: those that the token
    carries, if parties compare them.
    """

    Q: int
    eta: float
    rows: Rows | None = None
    majorise: bool = False
    visit: tuple[int, ...] = ()
    gains: Gains | None = None
    newton: bool = False
