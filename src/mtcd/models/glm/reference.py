"""What the plain versions of methods have in common: f of a linear model, written out, and whole
models as lists of blocks. Tests compare the parties of methods with these versions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mtcd.core.arrays import Array, Rows
from mtcd.methods.mtcd.roaming import Roaming
from mtcd.models.glm.model import LinearProblem
from mtcd.network.walks import NOWHERE

Theta = list[Array]


class Objective:
    """f on a mini-batch: N/B times its loss, plus the regularisers."""

    def __init__(self, problem: LinearProblem, rows: Rows | None) -> None:
        self.problem = problem
        self.rows = np.arange(problem.samples) if rows is None else rows
        self.y, self.loss = problem.labels[self.rows], problem.loss.at(self.rows)

    def h(self, k: int, theta_k: Array) -> Array:
        """The representation h_k = X_k theta_k on the batch."""
        return np.asarray(self.problem.blocks[k][self.rows] @ theta_k)

    def token(self, theta: Theta) -> Array:
        """The token of theta: the sum of all representations."""
        return np.asarray(sum(self.h(k, theta_k) for k, theta_k in enumerate(theta)))

    def step(self, k: int, theta_k: Array, Z: Array, eta: float) -> Array:
        """theta_k - eta * (partial gradient), then the prox of the regulariser's l1 part."""
        penalty, X = self.problem.penalties[k], self.problem.blocks[k][self.rows]
        scale = self.problem.samples / len(self.rows)
        # The order of the paper: gradient of the smooth part, step, prox (spec, 3.8).
        gradient = scale * (X.T @ self.loss.gradient(Z, self.y))
        penalty.add_gradient(theta_k, gradient)
        new = theta_k - eta * gradient
        penalty.prox(new, eta)
        return np.asarray(new)


def zeros(problem: LinearProblem) -> Theta:
    """theta^0, which is 0 unless a start is given."""
    return [problem.client(k).initial() for k in range(len(problem.blocks))]


def weighted(c: Sequence[float], parts: Sequence[Any]) -> Any:
    """sum_i c_i part_i, of tokens or of models."""
    if isinstance(parts[0], list):
        return [weighted(c, blocks) for blocks in zip(*parts, strict=True)]
    return sum(weight * part for weight, part in zip(c, parts, strict=True))


def next_present(roaming: Roaming, hop: int, k: int, previous: int) -> int:
    """The next present client; absent clients pass the token on."""
    k = roaming.next(0, 0, hop, k, previous)
    # An absent client passes the token on at once, so the token came from nowhere.
    while roaming.is_away(k, hop):
        k = roaming.next(0, 0, hop, k, NOWHERE)
    return k
