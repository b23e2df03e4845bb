"""The token: the aggregate that roams, with what is needed to read the objective off it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


NOTHING = np.zeros(0)
SURVEYED = 5
"""Numbers that a client tells of its columns in a survey."""


class Instruction(NamedTuple):
    """What every client does at the start of an accelerated tour: theta_k <- sum of its last snapshots, weighted.

    The last of them is theta_k itself. Without weights it goes on with what it has. It then keeps ``keep``
    snapshots: of where tours ended, or with ``starts`` of where they started, this one too. With ``starts`` it makes
    two updates a tour, at its first and at its last visit, and adds to the token's inner products: of the start s of
    this tour with every snapshot s_i; of its change since, d, with every s_i - s; of d with s; and of d with itself.
    ``stepsize``: the sum of the steps of an update, where the home client chooses it (0: as the plan says).
    ``survey``: the client also adds what there is to know of its columns (``ClientModel.survey``).
    """

    tour: int
    weights: tuple[float, ...] = ()
    keep: int = 0
    starts: bool = False
    trial: bool = False
    """Whether the tour may be undone, so that its end is no progress yet."""
    stepsize: float = 0.0
    survey: bool = False

    @property
    def products(self) -> int:
        """How many inner products the token collects, with the numbers of a survey."""
        return 2 * self.keep + 1 + (SURVEYED if self.survey else 0) if self.starts else 0

    @property
    def floats(self) -> int:
        """How many numbers the token carries for it."""
        return len(self.weights) + self.products + (self.stepsize > 0)


@dataclass(slots=True)
class Tally:
    """What a token collects on its way, so that f can be told at any weights of a sync or an extrapolation.

    ``products``: inner products, as the regulariser weighs them, of its change of theta with that of each token
    (optimal sync; as far as this token's visits made them) or with each snapshot (conjugate tours);
    ``slope``: of the regulariser along its change; ``visited``: whom it met (both for optimal sync).
    """

    products: Array
    slope: float = 0.0
    visited: set[int] = field(default_factory=set)


@dataclass(slots=True)
class Token:
    """Token gamma = ``index`` in iteration ``t`` (so many syncs are behind it), after ``hop`` visits in it.

    Invariant, at all times: ``aggregate`` equals sum_k h_k(theta_k(index)), and ``penalty`` equals
    sum_k r(theta_k(index)), over the copies theta_k(index) that the clients hold for this token.

    Clients average their copies at the sync, which the token's own sums cannot foresee. So each visit
    also adds what it changes in the *combined* model: ``sync_penalty``, and ``sync_change`` where the
    server could not compute the combined aggregate from the tokens (None otherwise).
    """

    index: int
    t: int
    hop: int
    aggregate: Array
    penalty: float
    sync_penalty: float = 0.0
    sync_change: Array | None = None
    previous: int = -1
    """The client that it came from; -1 at its first."""
    instruction: Instruction = Instruction(0)  # noqa: RUF009 - it cannot change
    past: Mapping[int, Array] = field(default_factory=dict)
    """With optimal sync: the weights of earlier syncs, by iteration, of which some client has not heard."""
    tally: Tally = field(default_factory=lambda: Tally(NOTHING))
    extra: int = 0
    """Numbers that it carries beside its aggregates."""
