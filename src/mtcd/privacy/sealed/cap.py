"""The cap on tours: what a run that ends at it says about its distance from the optimum."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

LONGEST_SPACING = 5
"""Tours between the values from which the gap is estimated, at most: single tours are too
uneven."""


def estimated_gap(objectives: Sequence[tuple[int, float]]) -> float | None:
    """The relative gap at the end of a training, from f after some of its tours.

    f is taken to approach its minimum geometrically, as it did over the last tours (Aitken's
    extrapolation).

    Args:
        objectives: Tours, in order, and f after each of them.

    Returns:
        (f - f*) / |f*|, for the estimated f*. None if there are too few tours, or if f does not
        fall more slowly than before.

    >>> round(estimated_gap([(t, 8.0 + 2.0**-t) for t in range(6)]), 6)  # 2^-5 above 8
    0.003906
    """
    values = dict(objectives)
    if not values:
        return None

    spacing = _spacing(values)
    if spacing is None:
        return None

    last = max(values)
    before, middle, now = values[last - 2 * spacing], values[last - spacing], values[last]
    earlier, later = before - middle, middle - now
    if not all(math.isfinite(one) for one in (earlier, later)):
        return None
    if later <= 0:
        return 0.0
    if later >= earlier:
        return None

    above = later**2 / (earlier - later)
    optimum = now - above
    return above / abs(optimum) if optimum else None


def _spacing(tours: Mapping[int, float]) -> int | None:
    """The spacing of three known tours up to the last one; None if there are none."""
    last = max(tours)
    longest = (last - min(tours)) // 2
    preferred: list[int] = [
        *range(min(LONGEST_SPACING, longest), 0, -1),
        *range(LONGEST_SPACING + 1, longest + 1),
    ]
    for spacing in preferred:
        if last - spacing in tours and last - 2 * spacing in tours:
            return spacing
    return None


def cap_note(most: int, objectives: Sequence[tuple[int, float]], server: bool) -> str:
    """The note of a run that has ended at the cap.

    Args:
        most: The cap, in tours.
        objectives: Tours, in order, and f after each of them, where it is known.
        server: Whether there is a server.
    """
    cause = (
        "all parties have columns together" if server else "the smallest other party has columns"
    )
    tours = "1 tour" if most == 1 else f"{most} tours"
    said = (
        f"Ended at the cap of {tours}, half as many as {cause}: after more, columns could be told "
        "from scores."
    )
    if not objectives:
        where = "at the server" if server else "at the label holder"
        return f"{said} The summary {where}, which has the key, says the estimated gap."

    gap = estimated_gap(objectives)
    if gap is not None:
        return f"{said} The estimated gap is {gap:.1e} (relative, from f after the last tours)."

    if len(objectives) == 1 or not objectives[-1][1]:
        return f"{said} The tours are too few to estimate the gap."
    before, now = objectives[-2][1], objectives[-1][1]
    return (
        f"{said} The estimated gap is of the order of {(before - now) / abs(now):.1e} (relative): "
        "f fell by that share in the last tour, and the tours are too few to tell more."
    )
