"""The token: the aggregate that roams, with the numbers from which the objective follows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from mtcd.protocol.codec.extensions import Slots, numbers_in
from mtcd.protocol.codec.fields import Whole
from mtcd.protocol.codec.payloads import (
    Aggregate,
    Iteration,
    Number,
    Payload,
    TokenIndex,
    last_client,
    payload,
)

HOPS = "c>c c>itself c>s s>c c>m"
"""The routes of a token; to the monitor it reports progress."""


@payload(2, HOPS)
@dataclass(slots=True)
class Token(Payload):
    """Token gamma = ``index`` in iteration ``t`` (so many syncs are behind it), after ``hop``
    visits in it.

    Invariant, at all times: ``aggregate`` equals sum_k h_k(theta_k(index)), and ``penalty`` equals
    sum_k r(theta_k(index)), over the copies theta_k(index) that the clients hold for this token.

    Clients average their copies at the sync; the penalty of the average does not follow from the
    tokens' own sums. So each visit also adds its change of the *combined* model to
    ``sync_penalty``.

    Parameters
    ----------
    index : int
        Its number, gamma.
    t : int
        The syncs behind it.
    hop : int
        The visits since the last sync; below 0 on a first pass, before training starts.
    aggregate : array
        Z, the sum of all representations. Clients update it in place.
    penalty : float
        The sum of all penalties.
    sync_penalty : float, default 0.0
        The changes of the combined models' penalties.
    previous : int, default -1
        The client that it came from; -1 at its first.
    slots : mapping, optional
        What features carry on it, by name (:class:`mtcd.protocol.codec.extensions.Extension`). The
        mapping is never changed: recovery keeps shallow copies of tokens, which share it.

    Examples
    --------
    >>> import numpy as np
    >>> Token(index=0, t=0, hop=3, aggregate=np.zeros(4), penalty=0.5).floats
    4
    """

    index: TokenIndex
    t: Iteration
    hop: Annotated[int, Whole("hops", low=lambda bounds: -bounds.first_pass)]
    aggregate: Aggregate
    penalty: Number
    sync_penalty: Number = 0.0
    previous: Annotated[int, Whole(last_client, low=-1)] = -1
    slots: Annotated[Mapping[str, Any], Slots()] = field(default_factory=dict)

    @property
    def floats(self) -> int:
        # the shape, as tensors have no size in numbers
        return math.prod(self.aggregate.shape) + numbers_in(self.slots)

    @property
    def wide_floats(self) -> int:
        return numbers_in(self.slots, wide=True)

    def put(self, name: str, value: Any) -> None:
        """Carry this value in a slot, in place of an earlier one."""
        # A new mapping: a copy that recovery keeps shares the old one.
        self.slots = {**self.slots, name: value}
