"""Tree-CG on whole models, without a tree. Tests compare the parties of ``methods/tree_cg`` with
it."""

from __future__ import annotations

import numpy as np

from mtcd.methods.subspace import best_weights
from mtcd.models.glm.model import LinearProblem
from mtcd.models.glm.penalty import Penalty
from mtcd.models.glm.reference import Theta, weighted, zeros


def tree_cg(problem: LinearProblem, T: int) -> list[Theta]:
    """The iterates theta^0, ..., theta^T, computed from all blocks at once, without messages."""
    iterates, direction = [zeros(problem)], zeros(problem)
    for _ in range(T):
        theta = iterates[-1]
        Z = problem.aggregate(theta)
        gradient = _gradient(problem, theta)
        vectors = (theta, gradient, direction)
        gram = [
            [sum(map(Penalty.product, problem.penalties, u, v)) for u in vectors] for v in vectors
        ]
        products = [problem.aggregate(gradient), problem.aggregate(direction)]
        a, b = best_weights(problem.fit, Z, products, np.array(gram))
        direction = weighted([a, b], [gradient, direction])
        iterates.append(weighted([1.0, 1.0], [theta, direction]))
    return iterates


def _gradient(problem: LinearProblem, theta: Theta) -> Theta:
    slope = problem.fit.gradient(problem.aggregate(theta))
    gradient = [np.asarray(X.T @ slope) for X in problem.blocks]
    for penalty, theta_k, gradient_k in zip(problem.penalties, theta, gradient, strict=True):
        penalty.add_gradient(theta_k, gradient_k)
    return gradient
