"""The plain version of ``combine: memory`` with blocks that are solved: whole models in NumPy, no
messages, and none of the code of parties, losses and solvers.

A token starts each sync from the same model, and solves the blocks of its cluster one after the
other. The sync minimises f over the last changes of all clusters, each a whole model that is 0
outside of its cluster. Inner products of the penalty are taken of such models.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from mtcd.core.arrays import Array

MEMORY = 20
NEWTON_STEPS, HALVINGS = 30, 40
BLOCK_STEPS = 3
"""Newton steps on a block, as a visit takes."""
FLAT = 1e-3
"""Second derivatives of the loss count as at least this share of their bound on a block."""
DEPENDENT = 1e-13
"""Eigenvalues below this share of the largest are of changes that depend on each other."""

Visits = Callable[[int], Sequence[Sequence[int]]]
"""By sync, the clients that each token visits, in order."""


@dataclass(frozen=True, eq=False)
class PlainObjective:
    """f of a linear model with a ridge penalty, written out.

    Parameters
    ----------
    blocks
        X_k, dense.
    y
        The labels; 0 or 1 for logistic loss.
    l2
        The penalty, l2/2 |theta|^2.
    logistic
        Whether the loss is logistic; squared otherwise.

    Examples
    --------
    >>> f = PlainObjective([np.eye(2)], np.array([1.0, 2.0]), l2=1.0)
    >>> f.optimum().tolist()
    [0.5, 1.0]
    """

    blocks: Sequence[Array]
    y: Array
    l2: float
    logistic: bool = False

    @property
    def X(self) -> Array:  # noqa: N802 - as in the formulas
        """The columns of all clients, side by side."""
        return np.hstack(list(self.blocks))

    def columns(self, k: int) -> slice:
        """Where the block of client k is in a whole model."""
        start = sum(block.shape[1] for block in self.blocks[:k])
        return slice(start, start + self.blocks[k].shape[1])

    def value(self, z: Array, theta: Array) -> float:
        """f of a model, whose aggregate is ``z``."""
        if self.logistic:
            loss = np.sum(np.logaddexp(0.0, z) - self.y * z)
        else:
            loss = np.sum((z - self.y) ** 2) / 2
        return float(loss + self.l2 * theta @ theta / 2)

    def slope(self, z: Array) -> Array:
        """The derivative of the loss in z."""
        if self.logistic:
            return np.asarray(1.0 / (1.0 + np.exp(-z)) - self.y)
        return z - self.y

    def bend(self, z: Array) -> Array:
        """The second derivative of the loss in z."""
        if not self.logistic:
            return np.ones_like(z)
        likely = 1.0 / (1.0 + np.exp(-z))
        return np.asarray(likely * (1.0 - likely))

    def lowest_along(self, z: Array, theta: Array, moves: Array, steps: int, flat: float) -> Array:
        """theta + moves w, where Newton's method finds the least f.

        Parameters
        ----------
        z
            The aggregate of theta.
        theta
            The whole model.
        moves
            One change of the model per column.
        steps
            The most steps.
        flat
            The least second derivative of the loss.
        """
        moved = self.X @ moves
        value = self.value(z, theta)
        for _ in range(steps):
            gradient = moved.T @ self.slope(z) + self.l2 * moves.T @ theta
            curved = np.maximum(self.bend(z), flat)[:, None] * moved
            H = moved.T @ curved + self.l2 * moves.T @ moves
            step = -solved(H, gradient)
            taken = False
            for halving in range(HALVINGS):
                share = 0.5**halving
                new, there = theta + share * moves @ step, z + share * moved @ step
                lower = self.value(there, new)
                if lower <= value:
                    taken = True
                    break
            if not taken:
                break
            settled = value - lower <= 1e-14 * abs(value)
            theta, z, value = new, there, lower
            if settled:
                break
        return theta

    def optimum(self) -> Array:
        """The model with the least f, by Newton's method on all columns."""
        nothing = np.zeros(self.X.shape[1])
        everything = np.eye(len(nothing))
        return self.lowest_along(np.zeros(len(self.y)), nothing, everything, 100, 0.0)


def solved(H: Array, gradient: Array) -> Array:
    """H^-1 gradient; the shortest solution among those of changes that depend on each other."""
    size = np.sqrt(np.diag(H))
    size = np.where(size > 0.0, size, 1.0)
    curve, axes = np.linalg.eigh(H / np.outer(size, size))
    used = curve > DEPENDENT * curve[-1]
    inner = axes[:, used].T @ (gradient / size)
    return np.asarray(axes[:, used] @ (inner / curve[used]) / size)


def toured(f: PlainObjective, theta: Array, clients: Sequence[int]) -> Array:
    """What one token changes: the blocks of these clients, solved one after the other."""
    end = theta.copy()
    bound = 0.25 if f.logistic else 1.0
    for k in clients:
        here = f.columns(k)
        block = np.eye(len(theta))[:, here]
        end = f.lowest_along(f.X @ end, end, block, BLOCK_STEPS, FLAT * bound)
    return end - theta


def syncs(f: PlainObjective, visits: Visits, count: int, memory: int = MEMORY) -> list[Array]:
    """theta at the start and after each of ``count`` syncs.

    Parameters
    ----------
    f
        The objective.
    visits
        The clients of each token, by sync.
    count
        How many syncs.
    memory
        The syncs whose changes are kept.

    Examples
    --------
    >>> f = PlainObjective([np.eye(2), np.ones((2, 1))], np.array([1.0, 3.0]), l2=1.0)
    >>> found = syncs(f, lambda t: [[0], [1]], count=2)
    >>> bool(f.value(f.X @ found[2], found[2]) < f.value(f.X @ found[1], found[1]))
    True
    """
    theta = np.zeros(f.X.shape[1])
    found, kept = [theta], []
    for t in range(count):
        kept.append([toured(f, theta, clients) for clients in visits(t)])
        kept = kept[-memory:]
        moves = np.stack([move for changes in kept for move in changes], axis=1)
        theta = f.lowest_along(f.X @ theta, theta, moves, NEWTON_STEPS, 0.0)
        found.append(theta)
    return found


def syncs_to(f: PlainObjective, visits: Visits, gap: float, most: int) -> int | None:
    """The syncs until f is within ``gap`` (a share of its least value); None if ``most`` are not
    enough."""
    best = f.optimum()
    least = f.value(f.X @ best, best)
    for t, theta in enumerate(syncs(f, visits, most)):
        if f.value(f.X @ theta, theta) - least <= gap * least:
            return t
    return None
