"""Warnings of linear estimators whose training ended before the optimum."""

from __future__ import annotations

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mtcd.core.errors import warn_user
from mtcd.data.vertical import VerticalData
from mtcd.models.glm.model import Glm
from mtcd.models.glm.optimum.remaining_gap import remaining_gap
from mtcd.models.glm.starts import starting_at
from mtcd.models.glm.training import start_of
from mtcd.training.plateau import PLATEAU
from mtcd.training.run import Run

SLOWEST = 100.0
"""A window that improves f by ``tol`` is followed by others: with this many like it to come, f is
not settled."""
LEAST = 1e-8
"""A gap that is small on a plateau, whatever ``tol`` is."""
ROUNDING = 1e-12
"""A gap that no iteration could close: also at ``max_iter``, f is at its optimum."""


def warn_unless_converged(
    estimator: str, run: Run, model: Glm, data: VerticalData, tol: float
) -> None:
    """Emit a ``ConvergenceWarning`` if the training ended at ``max_iter``, or on a plateau above
    the optimum.

    Parameters
    ----------
    estimator
        The name of the estimator.
    run
        The training that has ended.
    model
        Its model.
    data
        Its samples.
    tol
        The improvement by which the plateau is defined: a gap of more than 100 times as much is not
        small.
    """
    small = max(SLOWEST * tol, LEAST)
    gap = gap_of(run, model, data, small)
    allowed = ROUNDING
    if run.status == PLATEAU:
        allowed = small
    if gap <= allowed:
        return

    after = f"after {run.final.iteration} iterations"
    above = f"f is about {gap:.1e} (relatively) above its least value"
    cure = "Scale the columns to similar sizes, for example with StandardScaler"
    if run.status == PLATEAU:
        text = (
            f"{estimator} stopped on a plateau {after}, but {above}, so the coefficients may be "
            f"far off. {cure}, or set a smaller tol and a larger max_iter."
        )
    else:
        text = (
            f"{estimator} ended at its limit {after}, before f had settled: {above}. {cure}, or "
            "increase max_iter."
        )
    warn_user(text, ConvergenceWarning)


def gap_of(run: Run, model: Glm, data: VerticalData, small: float) -> float:
    """An estimate of (f - f*) / |f*| of the trained model; gaps up to ``small`` need not be known
    any better."""
    problem = starting_at(start_of(run), model, data, model.problem(data), None)
    assert problem.start is not None
    with np.errstate(all="ignore"):  # far from the optimum, trial steps may overflow
        return remaining_gap(
            problem.blocks, problem.labels, problem.loss, problem.penalties, problem.start, small
        )
