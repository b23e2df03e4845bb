"""Ridge regression in closed form, certified."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from mtcd.core.arrays import Array
from mtcd.models.glm.optimum.solver_problem import (
    TOLERANCE,
    ScaledProblem,
    check_not_negligible,
    dense,
)


def ridge(problem: ScaledProblem) -> tuple[Array, float] | None:
    """Closed form of 1/2 |P w + F u - y|^2 + 1/2 w^T Lambda w, u being unpenalised.

    With M = I - F F^+ the optimal u is eliminated: w solves (P^T M P + Lambda) w = P^T M y,
    directly or, where N < d, by Woodbury's identity with I + M P Lambda^-1 P^T M. Solved again for
    the remaining gradient until that certifies the value: f - f* <= sum_j g_j^2 / (2 Lambda_j).
    None if it never does.
    """
    free = np.flatnonzero(problem.l2 == 0)
    penalised = np.flatnonzero(problem.l2)
    F = dense(problem.columns(free))
    # F may have columns alike; directions without a singular value carry no information, and the
    # pseudoinverse leaves them out.
    U, sigma, _ = np.linalg.svd(F, full_matrices=False)
    Q = U[:, sigma > 1e-12 * sigma.max(initial=0.0)]
    l2 = problem.l2[penalised]
    try:
        solve = _ridge_solver(problem, penalised, Q)
    except LinAlgError:  # columns alike, and a penalty lost in rounding
        return None
    w = problem.start()
    # Each pass removes what rounding has left of the gradient. Two are usual.
    for _ in range(5):
        w[free] = 0.0
        w[free] = np.linalg.lstsq(F, problem.y - problem.forward(w))[0]
        z = problem.forward(w)
        value, g = problem.value(w, z), problem.gradient(w, z)[penalised]
        check_not_negligible(problem, value, 0.0)  # no value lies below 0
        gap = 0.5 * float((g * g / l2).sum() + ((Q.T @ (problem.y - z)) ** 2).sum())
        if gap <= TOLERANCE * value:
            return w, gap
        w[penalised] -= solve(g)
    return None


def _ridge_solver(
    problem: ScaledProblem, penalised: NDArray[np.int_], Q: Array
) -> Callable[[Array], Array]:
    """g -> (P^T M P + Lambda)^-1 g, where M = I - Q Q^T."""
    l2, samples = problem.l2[penalised], len(problem.y)
    # The smaller of both systems: d x d here, N x N below.
    if len(penalised) <= samples:
        P = problem.columns(penalised)
        hessian = dense(P.T @ P) - (P.T @ Q) @ (P.T @ Q).T + np.diag(l2)
        factor = cho_factor(hessian, overwrite_a=True, check_finite=False)
        return lambda g: np.asarray(cho_solve(factor, g, check_finite=False))

    def spread(g: Array) -> Array:
        """M P Lambda^-1 g."""
        w = problem.start()
        w[penalised] = g / l2
        z = problem.forward(w)
        return z - Q @ (Q.T @ z)

    gram = np.zeros((samples, samples))
    # In chunks, so that a copy of all scaled columns is never in memory.
    for chunk in np.array_split(penalised, 1 + len(penalised) // 2000):
        P = problem.columns(chunk)
        gram += dense((P / problem.l2[chunk]) @ P.T)
    # M G M for the projection M = I - Q Q^T, one side after the other.
    gram -= Q @ (Q.T @ gram)
    gram -= (gram @ Q) @ Q.T
    factor = cho_factor(gram + np.eye(samples), overwrite_a=True, check_finite=False)

    def woodbury(g: Array) -> Array:
        """Lambda^-1 (g - P^T M (I + M P Lambda^-1 P^T M)^-1 M P Lambda^-1 g)."""
        dual = cho_solve(factor, spread(g), check_finite=False)
        return np.asarray((g - problem.adjoint(dual - Q @ (Q.T @ dual))[penalised]) / l2)

    return woodbury
