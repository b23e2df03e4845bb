"""How far a trained linear model is above the optimum, estimated at a small part of the price of
the optimum.

The objective is f, and f* its least value. Where every column has an l2 penalty, the gradient
bounds f - f*, which may be enough. Otherwise a few Newton steps start from the model: what they
gain is a lower bound of f - f*, and what the last one promised beyond estimates the rest.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import LinAlgError

from mtcd.core.arrays import Array
from mtcd.data.vertical import Block
from mtcd.models.glm.optimum.solver_newton import DAMPING, gap_bound, line_search
from mtcd.models.glm.optimum.solver_problem import ScaledProblem
from mtcd.models.glm.optimum.solver_steps import newton_step
from mtcd.models.glm.penalty import Penalty
from mtcd.models.losses import Loss

STEPS = 8  # Newton steps; a model that is far from the optimum is known to be after the first
ENOUGH = 0.1  # stop when a step promises this share of what was found, or of what counts as small
ACCURACY, ROUNDS = 1e-4, 200  # of the conjugate gradients in a step
# up to so many unknowns, and so many numbers in the columns, a step solves with a factorised
# Hessian
DIRECT = 500
DIRECT_NUMBERS = 20_000_000
PERFECT = 1e-6  # below this part of f(0), f* is no measure: the fit is perfect


def remaining_gap(
    blocks: Sequence[Block],
    labels: Array,
    loss: Loss,
    penalties: Sequence[Penalty],
    parameters: Sequence[Array],
    small: float,
) -> float:
    """An estimate of (f - f*) / |f*| at these parameters.

    Parameters: the block, the penalty and the parameters of each client; the encoded labels and
    their loss; ``small``: the gap below which nobody cares, so that it need not be known any
    better.
    Returns: the estimate; where f* is close to zero, f - f* as a share of ``PERFECT`` f(0).

    >>> from mtcd.models.losses.squared import Squared
    >>> X, y, penalty = np.diag([1.0, 2.0]), np.array([2.0, 5.0]), [Penalty(l2=1.0)]
    >>> remaining_gap([X], y, Squared(), penalty, [np.array([1.0, 2.0])], 1e-6) < 1e-12
    True
    >>> round(remaining_gap([X], y, Squared(), penalty, [np.array([0.0, 2.0])], 1e-6), 6)
    0.285714
    """
    # In the form of the solver, so that a step of this estimate is one of the optimum's.
    problem = ScaledProblem.of(blocks, labels, loss, penalties)
    w = np.concatenate(parameters) / problem.scale
    numbers = len(labels) * len(w)
    # A factorised Hessian takes n d^2 operations. Beyond, conjugate gradients are rough but cheap,
    # and a rough step only makes the estimate less sharp.
    direct = DIRECT if numbers <= DIRECT_NUMBERS else 0

    first = value = problem.value(w, problem.forward(w))
    damping, left = DAMPING, 0.0
    for _ in range(STEPS):
        z = problem.forward(w)
        gradient = problem.gradient(w, z)
        # Near a perfect fit a share of f* would say nothing but rounding.
        unit = max(abs(value), PERFECT * abs(problem.zero_value))

        left = gap_bound(problem, w, problem.subgradient(w, gradient), value)
        if first - value + left <= small * unit:
            break

        try:
            step = _step(problem, w, z, gradient, damping, direct)
        except LinAlgError:  # the Hessian is not positive definite to within rounding
            damping *= 100.0
            left = 0.0
            continue
        promised = problem.slope(w, gradient, step)
        w, length = line_search(problem, w, value, promised, step)
        value = problem.value(w, problem.forward(w))
        # Levenberg and Marquardt, as in `solver_newton.py`.
        if length > 0.1:
            damping = max(DAMPING, damping / 10.0)
        else:
            damping *= 100.0

        # a Newton step gains half of its slope, and what it gained is known
        left = 0.0 if length > 0.1 else -0.5 * promised
        if -promised <= ENOUGH * max(first - value, small * unit):
            break
    unit = max(abs(value), PERFECT * abs(problem.zero_value))
    return (first - value + left) / unit


def _step(
    problem: ScaledProblem, w: Array, z: Array, gradient: Array, damping: float, direct: int
) -> Array:
    """A Newton step from w; with an l1 penalty, of the entries that can move."""
    if not problem.l1.any():
        return newton_step(problem, w, z, gradient, damping, ACCURACY, direct, ROUNDS)[0]
    # What rests at 0 with a gradient below l1 stays there: the penalty costs more than it gains.
    moves = (w != 0) | (np.abs(gradient) > problem.l1) | (problem.l1 == 0)
    rows = np.flatnonzero(moves.reshape(len(w), -1).any(axis=1))
    step = np.zeros_like(w)
    if len(rows):
        part = problem.restricted(rows)
        step[rows], _ = newton_step(
            part, w[rows], z, gradient[rows], damping, ACCURACY, direct, ROUNDS
        )
    return step
