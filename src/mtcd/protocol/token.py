"""The token: the aggregate that roams, with the numbers from which the objective follows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np

from mtcd.core.arrays import Array
from mtcd.core.errors import WireError
from mtcd.protocol.codec.arrays import AggregateField
from mtcd.protocol.codec.fields import ClientSet, Optional, Row, Usually, WeightsByIteration, Whole
from mtcd.protocol.codec.limits import MOST, Bounds
from mtcd.protocol.codec.payloads import Nested, Payload, payload, stored
from mtcd.protocol.codec.reading import REAL
from mtcd.protocol.codec.types import (
    Aggregate,
    Bool,
    Count,
    Iteration,
    Number,
    TokenIndex,
    last_client,
)

NOTHING = np.zeros(0)
SURVEYED = 5
"""The count of numbers in a client's survey."""


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

    tour: Annotated[int, Whole(lambda bounds: MOST - 1 if bounds.snapshots else 0)]
    weights: Annotated[
        tuple[float, ...], Row("snapshots", lambda found: tuple(found.tolist()))
    ] = ()
    keep: Annotated[int, Whole("snapshots")] = 0
    starts: Bool = False
    trial: Bool = False
    """Whether the tour may be undone, so that its end is no progress yet."""
    stepsize: Number = 0.0
    survey: Bool = False

    @property
    def products(self) -> int:
        """How many inner products the token collects, with the numbers of a survey."""
        return 2 * self.keep + 1 + (SURVEYED if self.survey else 0) if self.starts else 0

    @property
    def floats(self) -> int:
        """How many numbers the token carries for it."""
        return len(self.weights) + self.products + (self.stepsize > 0)


NO_INSTRUCTION = Instruction(0)


def is_absent(instruction: Instruction) -> bool:
    """Whether the token carries no instruction; mostly it is this very object."""
    return instruction is NO_INSTRUCTION or instruction == NO_INSTRUCTION


@stored
@dataclass(slots=True)
class Tally:
    """Sums that a token collects during visits, from which f follows at any weights of a sync or an
    extrapolation.

    ``products``: inner products, weighted by the regulariser, of its change of theta with that of
    each token (optimal sync; the contributions of this token's visits) or with each snapshot
    (conjugate tours); ``slope``: derivative of the regulariser along its change; ``visited``:
    clients visited (both for optimal sync).
    """

    products: Annotated[Array, Row("products")]
    slope: Number = 0.0
    visited: Annotated[set[int], ClientSet(set)] = field(default_factory=set)

    @property
    def empty(self) -> bool:
        """Whether nothing was collected; a slope of -0.0 counts as something."""
        return not (len(self.products) or self.visited or any(REAL.pack(self.slope)))


@stored
@dataclass(frozen=True, slots=True)
class Windows:
    """What the plateau rule (``mtcd.training.plateau``) remembers: ended windows, and the best
    value so far."""

    ended: Count
    best: Number


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
    tokens' own sums. So each visit also adds its change of the *combined* model: ``sync_penalty``,
    and ``sync_change`` where the server could not compute the combined aggregate from the tokens
    (None otherwise).
    """

    index: TokenIndex
    t: Iteration
    hop: Annotated[int, Whole("hops", low=lambda bounds: -bounds.first_pass)]
    aggregate: Aggregate
    penalty: Number
    sync_penalty: Number = 0.0
    sync_change: Annotated[
        Array | None, Optional(AggregateField(), lambda bounds: bounds.carries_change)
    ] = None
    previous: Annotated[int, Whole(last_client, low=-1)] = -1
    """The client that it came from; -1 at its first."""
    instruction: Annotated[
        Instruction, Usually(Nested(Instruction), lambda: NO_INSTRUCTION, is_absent)
    ] = NO_INSTRUCTION
    past: Annotated[Mapping[int, Array], WeightsByIteration()] = field(default_factory=dict)
    """With optimal sync: the weights of earlier syncs, by iteration, that some client has not
    received."""
    tally: Annotated[
        Tally, Usually(Nested(Tally), lambda: Tally(NOTHING), lambda tally: tally.empty)
    ] = field(default_factory=lambda: Tally(NOTHING))
    extra: Annotated[int, Whole("extra")] = 0
    """The count of numbers that it carries beside its aggregates."""
    windows: Annotated[Windows | None, Optional(Nested(Windows), lambda bounds: bounds.windows)] = (
        None
    )
    """Only in a federation without a server that may end on a plateau; like the penalty, it is not
    counted as sent."""

    @property
    def floats(self) -> int:
        return self.aggregate.size * (1 if self.sync_change is None else 2) + self.extra

    @property
    def wide_floats(self) -> int:
        return self.extra

    def check(self, bounds: Bounds) -> None:
        instruction, tally = self.instruction, self.tally
        if instruction != NO_INSTRUCTION and not bounds.snapshots:
            raise WireError("instruction", "is set, but this run has no acceleration")
        if np.signbit(instruction.stepsize):
            raise WireError("instruction.stepsize", "is negative")
        if len(tally.products) != (bounds.tokens if bounds.past else instruction.products):
            raise WireError("tally.products", "has another length than the plan says")
        if any(t >= self.t for t in self.past):
            raise WireError("past", "is of an iteration that is still to come")
        if self.extra != self.expected_extra(bounds):
            raise WireError("extra", "is not the count of numbers that the token carries")

    def expected_extra(self, bounds: Bounds) -> int:
        """The value that ``extra`` must have."""
        if bounds.past:
            return bounds.tokens * (len(self.past) + 1) + 1 + len(self.tally.visited)
        return self.instruction.floats
