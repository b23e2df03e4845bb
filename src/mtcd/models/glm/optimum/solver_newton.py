"""Damped (proximal) Newton steps: the general solver of the optimum."""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError

from mtcd.core.arrays import Array
from mtcd.core.errors import ConfigError, MtcdError
from mtcd.models.glm.optimum.solver_problem import (
    REMEDY,
    TOLERANCE,
    ScaledProblem,
    check_not_negligible,
)
from mtcd.models.glm.optimum.solver_steps import newton_step
from mtcd.models.losses.own import is_built_in

DAMPING = 1e-12  # the least damping of a Newton step, relative to the mean curvature of the loss
# damping that hardly shortens a step; less may be too little for a Hessian with flat directions
MILD = 1e-8
SMALLEST = float(np.finfo(float).tiny)
ROUNDS = 300  # Newton steps on one working set; ten or twenty are usual

UNATTAINED = (
    "No parameters attain the least objective: columns without penalty separate the classes, and "
    "the best "
    f"fit lies at infinity, so there is no optimum to measure a gap to. {REMEDY}"
)


def minimise_lasso(problem: ScaledProblem) -> tuple[Array, float]:
    """Minimise over a working set of rows, which grows by the worst violators until there is
    none."""
    # All outputs of a column have the same penalty, so one stands for them.
    l1 = problem.l1.reshape(len(problem.l1), -1)[:, 0]
    # Unpenalised rows have no price to stay at 0 for: they are in from the start.
    rows = np.flatnonzero(l1 == 0)
    w, gap = problem.start(), 0.0
    for tolerance in (1e-3, 1e-6, TOLERANCE):  # while the set grows, accuracy would be wasted
        while True:
            # Warm: the entries that are in already start where the smaller set left them.
            if len(rows):
                w[rows], gap = minimise(problem.restricted(rows), w[rows], tolerance)
            g = problem.subgradient(w, problem.gradient(w, problem.forward(w)))
            g = np.abs(g).reshape(len(l1), -1).max(axis=1)
            g[rows] = 0.0
            # A violation v outside the set costs at most v/l1 of f: what is left lies below the
            # tolerance.
            violators = np.flatnonzero(g > tolerance * l1)
            if len(violators) == 0:
                break
            # In batches: one by one the solver would be called too often, and all at once the set
            # would hold many columns that leave again. The sort is stable, so that ties go the same
            # way on every machine.
            worst = np.argsort(-g[violators], kind="stable")[: max(100, np.count_nonzero(w))]
            rows = np.union1d(rows, violators[worst])
    # Where no column is worth its price, no Newton step has looked at the value.
    if len(rows) == 0:
        check_not_negligible(problem, problem.zero_value, 0.0)
    return w, gap


def minimise(problem: ScaledProblem, w: Array, tolerance: float = TOLERANCE) -> tuple[Array, float]:
    """Damped (proximal) Newton steps from w until what a step promises to gain is negligible."""
    damping, runaway, relative = DAMPING, 0, np.inf
    for _ in range(ROUNDS):
        z = problem.forward(w)
        value, gradient = problem.value(w, z), problem.gradient(w, z)
        # f may be 0 at the optimum; what follows divides by it.
        size = max(abs(value), SMALLEST)
        bound = gap_bound(problem, w, problem.subgradient(w, gradient), value)
        check_not_negligible(problem, value, bound)
        if bound <= tolerance * size:
            return w, bound
        try:
            # far from the minimum, an accurate step is no better than a rough one
            accuracy = 1e-6 if relative <= 1e-3 else 1e-2
            step, exact = newton_step(problem, w, z, gradient, damping, accuracy)
        except LinAlgError:  # the Hessian is not positive definite to within rounding
            damping *= 100.0
            continue
        promised = problem.slope(w, gradient, step)
        check_not_negligible(problem, value, -promised)
        relative = -promised / size
        # A damped step promises less than there is to gain, so what it promises is no estimate of
        # the gap, unless the damping hardly matters.
        undamped = damping == DAMPING or (damping <= MILD and relative <= 1e-3 * tolerance)
        if relative <= tolerance and exact and undamped:
            converged = relative <= 1e-3 * tolerance or np.abs(problem.forward(step)).max() < 0.1
            if converged or tolerance > TOLERANCE:
                return w, max(-promised, 0.0)
            # The objective is flat, but the predictions keep moving: on their way to infinity?
            # Once is no proof: near the optimum of a nearly separable problem, the first steps look
            # like that too.
            runaway += 1
            if runaway > 5:
                raise ConfigError(UNATTAINED)
        w, length = line_search(problem, w, value, promised, step)

        # Levenberg and Marquardt: less damping after a good step, more after a short one
        if length > 0.1:
            damping = max(DAMPING, damping / 10.0)
        else:
            damping *= 100.0

    raise _uncertain(bound / size if np.isfinite(bound) else relative)


def gap_bound(problem: ScaledProblem, w: Array, g: Array, value: float) -> float:
    """f(w) - f* <= sum g_j^2/(2 l2_j), or <= max(|g_j|/l1_j) * (l1 |w|_1 + f); infinite with
    neither.

    The second holds for losses that are nowhere below 0, which is not known of those of a user.
    """
    l1, l2 = np.broadcast_to(problem.l1, w.shape), np.broadcast_to(problem.l2, w.shape)
    ridge, lasso = l2 > 0, (l2 == 0) & (l1 > 0)
    # A direction without any penalty: f may fall along it for ever.
    if g[~ridge & ~lasso].any():
        return np.inf
    bound = 0.5 * float((g[ridge] ** 2 / l2[ridge]).sum())
    if lasso.any():
        if not is_built_in(problem.loss):
            return np.inf
        largest = float((np.abs(g[lasso]) / l1[lasso]).max())
        bound += largest * (float((l1 * np.abs(w)).sum()) + value)
    return bound


def line_search(
    problem: ScaledProblem, w: Array, value: float, promised: float, step: Array
) -> tuple[Array, float]:
    """The longest of 1, 1/2, 1/4, ... of the step that descends by a fair part of what it
    promised."""
    length = 1.0
    while length > 1e-9:
        new = w + length * step
        reached = problem.value(new, problem.forward(new))
        # Armijo's rule. The first summand forgives rounding: at the optimum no step descends any
        # more.
        if reached <= value + 1e-14 * abs(value) + 1e-4 * length * promised:
            return new, length
        length *= 0.5
    return w, 0.0


def _uncertain(gap: float) -> MtcdError:
    return MtcdError(
        f"The optimum could not be computed to the accuracy a relative gap needs (estimated error "
        f"{gap:.1e} "
        f"of f). Scale the features to similar sizes, use a larger penalty, or stop after a number "
        f"of "
        f"iterations instead of at a gap."
    )
