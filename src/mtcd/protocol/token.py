"""The token: the aggregate that roams, with what is needed to read the objective off it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np

from mtcd.arrays import Array
from mtcd.errors import WireError
from mtcd.schema.arrays import AggregateField
from mtcd.schema.bounds import MOST, Bounds
from mtcd.schema.fields import ClientSet, Optional, Row, Usually, WeightsByIteration, Whole
from mtcd.schema.payloads import Nested, Payload, payload, stored
from mtcd.schema.reading import REAL
from mtcd.schema.types import Aggregate, Bool, Iteration, Number, TokenIndex, last_client

NOTHING = np.zeros(0)
SURVEYED = 5
"""Numbers that a client tells of its columns in a survey."""


@stored
@dataclass(frozen=True, slots=True)
class Instruction:
    """What every client does at the start of an accelerated tour: theta_k <- sum of its last snapshots, weighted.

    The last of them is theta_k itself. Without weights it goes on with what it has. It then keeps ``keep``
    snapshots: of where tours ended, or with ``starts`` of where they started, this one too. With ``starts`` it makes
    two updates a tour, at its first and at its last visit, and adds to the token's inner products: of the start s of
    this tour with every snapshot s_i; of its change since, d, with every s_i - s; of d with s; and of d with itself.
    ``stepsize``: the sum of the steps of an update, where the home client chooses it (0: as the plan says).
    ``survey``: the client also adds what there is to know of its columns (``ClientModel.survey``).
    """

    tour: Annotated[int, Whole(lambda bounds: MOST - 1 if bounds.kept else 0)]
    weights: Annotated[tuple[float, ...], Row("kept", lambda found: tuple(found.tolist()))] = ()
    keep: Annotated[int, Whole("kept")] = 0
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


@stored
@dataclass(slots=True)
class Tally:
    """What a token collects on its way, so that f can be told at any weights of a sync or an extrapolation.

    ``products``: inner products, as the regulariser weighs them, of its change of theta with that of each token
    (optimal sync; as far as this token's visits made them) or with each snapshot (conjugate tours);
    ``slope``: of the regulariser along its change; ``visited``: whom it met (both for optimal sync).
    """

    products: Annotated[Array, Row("products")]
    slope: Number = 0.0
    visited: Annotated[set[int], ClientSet(set)] = field(default_factory=set)

    @property
    def empty(self) -> bool:
        """Whether nothing was collected; a slope of -0.0 counts as something."""
        return not (len(self.products) or self.visited or any(REAL.pack(self.slope)))


HOPS = "c>c c>itself c>s s>c c>m"
"""The routes of a token; to the monitor it reports progress."""


@payload(2, HOPS)
@dataclass(slots=True)
class Token(Payload):
    """Token gamma = ``index`` in iteration ``t`` (so many syncs are behind it), after ``hop`` visits in it.

    Invariant, at all times: ``aggregate`` equals sum_k h_k(theta_k(index)), and ``penalty`` equals
    sum_k r(theta_k(index)), over the copies theta_k(index) that the clients hold for this token.

    Clients average their copies at the sync, which the token's own sums cannot report_sync_change. So each visit
    also adds what it changes in the *combined* model: ``sync_penalty``, and ``sync_change`` where the
    server could not compute the combined aggregate from the tokens (None otherwise).
    """

    index: TokenIndex
    t: Iteration
    hop: Annotated[int, Whole("hops", low=lambda bounds: -bounds.first_pass)]
    aggregate: Aggregate
    penalty: Number
    sync_penalty: Number = 0.0
    sync_change: Annotated[Array | None, Optional(AggregateField(), lambda bounds: bounds.carries_change)] = None
    previous: Annotated[int, Whole(last_client, low=-1)] = -1
    """The client that it came from; -1 at its first."""
    instruction: Annotated[Instruction, Usually(Nested(Instruction), lambda: NO_INSTRUCTION, NO_INSTRUCTION.__eq__)] = (
        NO_INSTRUCTION
    )
    past: Annotated[Mapping[int, Array], WeightsByIteration()] = field(default_factory=dict)
    """With optimal sync: the weights of earlier syncs, by iteration, that some client has not received."""
    tally: Annotated[Tally, Usually(Nested(Tally), lambda: Tally(NOTHING), lambda tally: tally.empty)] = field(
        default_factory=lambda: Tally(NOTHING)
    )
    extra: Annotated[int, Whole("extra")] = 0
    """Numbers that it carries beside its aggregates."""

    @property
    def floats(self) -> int:
        return self.aggregate.size * (1 if self.sync_change is None else 2) + self.extra

    @property
    def wide_floats(self) -> int:
        return self.extra

    def check(self, bounds: Bounds) -> None:
        instruction, tally = self.instruction, self.tally
        if instruction != NO_INSTRUCTION and not bounds.kept:
            raise WireError("instruction", "is none that this run gives")
        if math.copysign(1.0, instruction.stepsize) < 0:
            raise WireError("instruction.stepsize", "is negative")
        if len(tally.products) != (bounds.tokens if bounds.past else instruction.products):
            raise WireError("tally.products", "has another length than the plan says")
        if any(t >= self.t for t in self.past):
            raise WireError("past", "is of an iteration that is still to come")
        if self.extra != self.expected_extra(bounds):
            raise WireError("extra", "is not how much the token carries")

    def expected_extra(self, bounds: Bounds) -> int:
        """What ``extra`` must be."""
        if bounds.past:
            return bounds.tokens * (len(self.past) + 1) + 1 + len(self.tally.visited)
        return self.instruction.floats
