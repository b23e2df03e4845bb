"""One Newton step of the optimum's solver: direct, by conjugate gradients, or with an l1
penalty."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse.linalg import LinearOperator, cg

from mtcd.core.arrays import Array
from mtcd.models.glm.optimum.solver_problem import (
    TOLERANCE,
    ScaledProblem,
    hessian_of,
    typical_curvature,
)

ROUNDS = 2000  # at most so many conjugate gradients in a step
DIRECT = 4000  # up to so many unknowns, solve for the Newton step with a factorised Hessian


def newton_step(
    problem: ScaledProblem,
    w: Array,
    z: Array,
    gradient: Array,
    damping: float,
    accuracy: float,
    direct: int = DIRECT,
    rounds: int = ROUNDS,
) -> tuple[Array, bool]:
    """The step that minimises the damped quadratic model of the loss plus the penalty.

    -(H + damping)^-1 gradient without l1. Only entries that can move take part: those of the
    support, those that violate the optimality conditions, those without l1. Also whether the step
    is exact enough for what it promises to be an estimate of the gap.

    More than ``direct`` unknowns are found by at most ``rounds`` conjugate gradients, to a relative
    ``accuracy``.
    """
    # Beyond this set a Newton step would move entries that the penalty puts back at once.
    active = (w != 0) | (np.abs(gradient) > problem.l1) | (problem.l1 == 0)
    rows = np.flatnonzero(active.reshape(len(active), -1).any(axis=1))
    if len(rows) * z[:1].size > direct:
        if problem.l1.any():
            return _large_lasso_step(problem, w, damping, accuracy, rounds)
        return _conjugate_gradients(problem, z, gradient, active, damping, accuracy, rounds)
    step = np.zeros_like(w)
    chosen = active[rows].ravel()
    hessian = hessian_of(problem, problem.columns(rows), z)[np.ix_(chosen, chosen)]
    # Damping is relative to the curvature, so that one number suits losses of any scale.
    damped = problem.l2 + damping * typical_curvature(problem, z)
    hessian[np.diag_indices_from(hessian)] += np.broadcast_to(damped, w.shape)[active]
    l1 = np.broadcast_to(problem.l1, w.shape)[active]
    if l1.any():
        step[active] = _quadratic_lasso(hessian, gradient[active], l1, w[active]) - w[active]
    else:
        step[active] = -_solve(hessian, gradient[active])
    return step, True


def _solve(hessian: Array, b: Array) -> Array:
    factor = cho_factor(hessian, overwrite_a=True, check_finite=False)
    return np.asarray(cho_solve(factor, b, check_finite=False))


def _conjugate_gradients(
    problem: ScaledProblem,
    z: Array,
    g: Array,
    active: NDArray[np.bool_],
    damping: float,
    accuracy: float,
    rounds: int,
) -> tuple[Array, bool]:
    """-(H + damping)^-1 g on the active entries, for models too large to factorise H; whether it is
    exact."""
    typical = typical_curvature(problem, z)
    diagonal = np.broadcast_to(problem.l2 + damping * typical, g.shape)[active]

    def product(v: Array) -> Array:
        whole = np.zeros_like(g)
        whole[active] = v
        curved = problem.loss.hessian_product(z, problem.y, problem.forward(whole))
        return np.asarray(problem.adjoint(curved)[active] + diagonal * v)

    shape = (len(diagonal), len(diagonal))
    operator = LinearOperator(shape, matvec=product, dtype=float)
    # The diagonal of H is about the mean curvature plus the penalty, as columns have unit length: a
    # preconditioner that costs nothing.
    inverse = LinearOperator(shape, matvec=lambda v: v / (diagonal + typical), dtype=float)
    step = np.zeros_like(g)
    step[active], missed = cg(operator, -g[active], rtol=accuracy, maxiter=rounds, M=inverse)
    return step, missed == 0 and accuracy <= 1e-6


def _large_lasso_step(
    problem: ScaledProblem, w: Array, damping: float, accuracy: float, rounds: int
) -> tuple[Array, bool]:
    """Proximal gradient steps, then a Newton step on the support they find, entries stopping at
    zero."""
    ahead = _proximal_steps(problem, w, 50)
    z = problem.forward(ahead)
    g = problem.subgradient(ahead, problem.gradient(ahead, z))
    support = (ahead != 0) | (problem.l1 == 0)
    step, exact = _conjugate_gradients(problem, z, g, support, damping, accuracy, rounds)
    new = ahead + step
    # A Newton step knows no kinks. An entry that changes its sign would cross one: it stops at 0.
    crossing = (problem.l1 > 0) & (new * ahead < 0)
    new[crossing] = 0.0
    reached = problem.value(ahead, z)
    # The Newton step has left the region where its model holds. The proximal steps alone descend,
    # but tell nothing of the gap.
    if problem.value(new, problem.forward(new)) > reached + 1e-14 * abs(reached):
        return ahead - w, False
    violated = ~support & (np.abs(g) > TOLERANCE * problem.l1)
    return new - w, exact and not crossing.any() and not violated.any()


def _quadratic_lasso(H: Array, g: Array, l1: Array, w: Array) -> Array:
    """argmin over u of 1/2 (u-w)^T H (u-w) + g^T (u-w) + sum_j l1_j |u_j|, by feature-sign search.

    Solve on the support with its signs and go there; entries that would change their sign become
    zero and leave the support. If that does not descend, stop half-way, or where the first one
    crosses zero, which always does. At the solution let the worst violators in. No support comes
    twice, so it ends.
    """
    u, slope, value = w, g, float(l1 @ np.abs(w))
    inside, sign = (w != 0) | (l1 == 0), np.sign(w)
    # With a hair more than l1: an entry that is let in for rounding would leave again, and the
    # search would not end.
    allowed = l1 * (1.0 + 1e-12) + 1e-14 * np.abs(g).max()
    for _ in range(100 + 10 * len(w)):
        S = np.flatnonzero(inside)
        move = np.zeros_like(u)
        move[S] = -_solve(H[np.ix_(S, S)], slope[S] + l1[S] * sign[S])
        crosses = inside & (l1 > 0) & ((u + move) * sign < 0)
        crossing = np.full(len(u), np.inf)
        crossing[crosses] = np.abs(u[crosses] / move[crosses])
        times: list[float] = np.sort(crossing[crosses]).tolist()
        # The full step first, then half of the crossings, then the first crossing, which always
        # descends.
        lengths = [1.0]
        if times:
            lengths += [times[len(times) // 2], times[0]]
        for length in lengths:
            trial = u + length * move
            leaving = crossing <= length
            trial[leaving] = 0.0
            curved = g + H @ (trial - w)
            reached = 0.5 * float((trial - w) @ (g + curved)) + float(l1 @ np.abs(trial))
            if reached < value:
                break
        u, slope, value = trial, curved, reached
        inside &= ~leaving
        if not leaving.any():
            violation = np.where(inside, 0.0, np.abs(slope) - allowed)
            worst = np.argsort(-violation, kind="stable")[: max(20, len(S) // 4)]
            # Only violators of the order of the worst: the others mostly disappear by themselves.
            worst = worst[violation[worst] > 0.1 * violation.max(initial=0.0)]
            if len(worst) == 0:
                return u
            inside[worst], sign[worst] = True, -np.sign(slope[worst])
    raise LinAlgError("rounding keeps the search from ending; more damping helps")


def _proximal_steps(problem: ScaledProblem, w: Array, steps: int) -> Array:
    """Accelerated proximal gradient descent, restarted where the momentum points uphill."""
    smooth = problem.smoothness
    ahead, momentum = w, 1.0
    for _ in range(steps):
        new = ahead - problem.gradient(ahead, problem.forward(ahead)) / smooth
        new -= np.clip(new, -problem.l1 / smooth, problem.l1 / smooth)
        following = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * momentum**2))
        # The momentum points uphill: start it anew (O'Donoghue and Candes).
        if np.vdot(ahead - new, new - w) > 0:
            ahead, momentum = new, 1.0
        else:
            ahead, momentum = new + (momentum - 1.0) / following * (new - w), following
        w = new
    return w
