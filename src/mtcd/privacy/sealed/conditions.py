"""What sealed tours ask of a training: that it ends before scores tell columns or labels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np

from mtcd.core.errors import ConfigError
from mtcd.methods.conditions import Conditions
from mtcd.methods.method import Method
from mtcd.models.glm.model import LinearProblem
from mtcd.network.topology import Network
from mtcd.protocol.model import Problem

if TYPE_CHECKING:
    from mtcd.privacy.sealed.settings import SealedTours


# What the parties of sealed tours must know of each other's parts.


@dataclass(frozen=True)
class SealedSizes:
    """The number of columns d_k of every client, and a bound of f(0)."""

    columns: tuple[int, ...]
    start: float


def sizes_of(problem: LinearProblem) -> SealedSizes:
    """What parties must know of each other's parts, from a problem that has them all."""
    return SealedSizes(columns_of(problem), start_bound(problem))


def columns_of(problem: LinearProblem) -> tuple[int, ...]:
    """d_k of all clients."""
    return tuple(X.shape[1] for X in problem.blocks)


def start_bound(problem: LinearProblem) -> float:
    """The least power of two above f(0): clients need no more of it for their scales."""
    value = problem.read_off(np.zeros(problem.samples), 0.0)
    # f(0) may be 0 where all labels are.
    if value <= 0:
        return 1.0
    return 2.0 ** math.ceil(math.log2(value))


class SpendingAccount(Protocol):
    """Where a party of a federation enters what a run spends."""

    def begin(self, run: str, tours: int | None, place: str) -> None:
        """Enter a run before anything is released; ``tours``: the most that it may take."""

    def end(self, run: str, tours: int) -> str:
        """Enter how many tours a run has begun; returns a note for its owner."""


class SealedConditions(Conditions):
    """The cap on tours, and what is told at the end.

    Parameters
    ----------
    tours
        The method.
    """

    def __init__(self, tours: SealedTours) -> None:
        self._tours = tours

    def most_iterations(self, problem: Problem) -> int | None:
        """The cap on tours, of a problem with the blocks of all clients. Raises ConfigError as
        ``SealedChecks.sizes``."""
        # A participant of a federation has only its own block, and is checked when sizes are known.
        if not isinstance(problem, LinearProblem) or len(problem.blocks) < 2:
            return None

        columns = tuple(X.shape[1] for X in problem.blocks)
        if min(columns) == 0:
            raise ConfigError(
                "privacy.mode: sealed needs the columns of all clients in this process, to choose "
                "the scale of the encryption: give data.read() instead of its sources."
            )
        names = [f"client {k}" for k in range(len(columns))]
        self._tours.checks.sizes(columns, problem.samples, names)
        return self._tours.most_tours(columns)

    def end_notes(
        self,
        network: Network,
        iterations: int,
        most: int | None = None,
        objectives: Sequence[tuple[int, float]] = (),
    ) -> tuple[str, ...]:
        if most is None or iterations < most:
            return ()
        return (cap_note(most, objectives, self._tours.server),)

    def with_sizes(self, method: Method, problem: Any) -> Method:
        tours = cast("SealedTours", method)
        return replace(tours, known=sizes_of(problem))

    # The numbers of columns are made up in a rehearsal, so nothing is refused for them.
    def rehearsal(self, method: Method) -> Method:
        tours = cast("SealedTours", method)
        return replace(tours, accept_revealed_columns=True, accept_revealed_labels=True)

    def party_account(
        self, network: Network, number: int, table: Path, bundle: Path
    ) -> SpendingAccount | None:
        """What a party of a federation enters beside its table; None if nothing is counted.

        Parameters
        ----------
        network : Network
            The network of all parties.
        number : int
            The party, by number.
        table : Path
            Its table.
        bundle : Path
            A folder to use where that of the table cannot be written.
        """
        return None

    def ended_tours(self, begun: int, finished: int) -> int:
        """The tours that the notes at the end of a run in a federation are about: finished ones."""
        return finished


# The cap on tours: what a run that ends at it says about its distance from the optimum.


LONGEST_SPACING = 5
"""Tours between the values from which the gap is estimated, at most."""


def estimated_gap(objectives: Sequence[tuple[int, float]]) -> float | None:
    """The relative gap at the end of a training, if f goes on to fall as over its last tours.

    f is taken to approach its minimum geometrically (Aitken's extrapolation). Single tours are
    uneven, so the largest estimate of several spacings counts. None reaches back over the first
    half of the training: the first tours gain far more than the later ones, and would promise an
    end that is never reached.

    Parameters
    ----------
    objectives : sequence of (int, float)
        Tours, in order, and f after each of them.

    Returns
    -------
        (f - f*) / |f*|, for the estimated f*. None if there are too few tours, or if f does not
        fall more slowly than before.

    >>> round(estimated_gap([(t, 8.0 + 2.0**-t) for t in range(6)]), 6)  # 2^-5 above 8
    0.003906
    """
    values = dict(objectives)
    left: list[float] = []
    # At different spacings, as one tour may gain much and the next little.
    for spacing in _spacings(values):
        last = max(values)
        before, middle, now = values[last - 2 * spacing], values[last - spacing], values[last]
        earlier, later = before - middle, middle - now
        if not math.isfinite(earlier) or not math.isfinite(later):
            return None
        # No decrease within rounding: the end is reached.
        if later <= 0:
            left.append(0.0)
        # It falls faster than before: extrapolation would go below any bound.
        elif later >= earlier:
            return None
        else:
            # The sum of the geometric series that goes on from here.
            left.append(later**2 / (earlier - later))

    if not left:
        return None
    return _relative(max(left), objectives[-1][1])


def largest_gap(objectives: Sequence[tuple[int, float]]) -> float | None:
    """The relative gap at the end of a training, if f falls ever more slowly: as 1/t, the rate that
    convexity alone promises. After t tours it is then t times the decrease in the last one.

    Parameters
    ----------
    objectives : sequence of (int, float)
        Tours, in order, and f after each of them.

    >>> round(largest_gap([(t, 8.0 + 1 / t) for t in range(1, 100)]), 4)  # 1/99 above 8
    0.0013
    """
    if len(objectives) < 2:
        return None
    (before, earlier), (last, now) = objectives[-2:]
    decrease = max(earlier - now, 0.0) / (last - before)
    return _relative(last * decrease, now)


def _relative(above: float, now: float) -> float | None:
    """What is left, relative to the optimum that it means; relative to f where that optimum would
    have another sign than f, and says nothing."""
    # What the estimate means for f*.
    optimum = now - above
    scale = optimum
    if optimum * now <= 0:
        scale = now
    if not scale:
        return None
    return above / abs(scale)


def _spacings(tours: Mapping[int, float]) -> list[int]:
    """Spacings of three known tours up to the last one, in the second half of the training; the
    shortest if none is in it."""
    if not tours:
        return []
    last = max(tours)
    span = last - min(tours)
    known = []
    for spacing in range(1, span // 2 + 1):
        if last - spacing in tours and last - 2 * spacing in tours:
            known.append(spacing)
    # Not over the first half: early tours gain far more.
    late = [spacing for spacing in known if 2 * spacing <= span / 2]
    return [spacing for spacing in late if spacing <= LONGEST_SPACING] or late[:1] or known[:1]


def cap_note(most: int, objectives: Sequence[tuple[int, float]], server: bool) -> str:
    """The note of a run that has ended at the cap.

    Parameters
    ----------
    most : int
        The cap, in tours.
    objectives : sequence of (int, float)
        Tours, in order, and f after each of them, where it is known.
    server : bool
        Whether there is a server.
    """
    cause, where = "the smallest other party has columns", "at the label holder"
    if server:
        cause, where = "all parties have columns together", "at the server"
    tours = f"{most} tours"
    if most == 1:
        tours = "1 tour"
    said = (
        f"Ended at the cap of {tours}, half as many as {cause}: after more, columns could be told "
        "from scores."
    )
    if not objectives:
        # f is known where tokens are opened
        return f"{said} The summary {where}, which has the key, says the estimated gap."

    gap, largest = estimated_gap(objectives), largest_gap(objectives)
    if largest is None:
        return f"{said} The tours are too few to estimate the gap."
    if gap is None:
        return (
            f"{said} The estimated gap is of the order of {largest:.1e} (relative): the tours are "
            "too few to tell more."
        )
    slower = ""
    if largest > gap:
        slower = f", and up to {largest:.1e} if it slows down"
    return (
        f"{said} The estimated gap is {gap:.1e} (relative), if f goes on to fall as over the last "
        f"tours{slower}."
    )
