"""The minimum of f over one block, all others fixed, by Newton's method on the true loss.

    theta <- theta - s H^-1 (X^T l'(z) + l2*theta),    H = X^T l''(z) X + l2*I

Second derivatives of the loss count as at least ``LEAST`` of their bound: far out on a flat loss a
step would be endless. Each step is halved until f of the block does not rise, so that no visit
raises f. Squared loss takes one step, whose factors are computed once.

H is never larger than the smaller side of the block: one that is wider than tall is solved by
X X^T, and its columns without a penalty by a Schur complement. Losses with several outputs, and
blocks whose H would be larger than ``LARGEST_SYSTEM``, take conjugate gradients instead.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy  # its parts are loaded when they are used

from mtcd.core.arrays import Array, dense, is_sparse
from mtcd.data.vertical import Block
from mtcd.models.glm.penalty import Penalty
from mtcd.models.losses import Loss

STEPS = 3
"""The most Newton steps of an update."""
LEAST = 1e-3
HALVINGS = 40
ROUNDING = 8 * float(np.finfo(np.float64).eps)
"""By this share of itself f may rise: where it is flat, rounding decides whether it does."""
LARGEST_SYSTEM = 3000
SINGULAR = 1e-7
"""The least pivot of a Cholesky factor, of columns of length 1, that is trusted."""
EXACT, MOST_INNER = 1e-9, 300
"""Conjugate gradients end at this share of the gradient, or after so many steps."""

Solve = Callable[[Array], Array]
"""g -> H^-1 g."""


class NewtonBlock:
    """f as a function of one block, and its minimum.

    Parameters
    ----------
    X
        The block of the client.
    y
        The encoded labels.
    loss
        The loss, with the weights of samples.
    penalty
        r_k; without an l1 part.

    Examples
    --------
    >>> from mtcd.models.losses.squared import Squared
    >>> block = NewtonBlock(np.array([[2.0], [0.0]]), np.array([4.0, 3.0]), Squared(), Penalty())
    >>> z = np.zeros(2)
    >>> block.minimise(np.zeros(1), z).tolist(), z.tolist()
    ([2.0], [4.0, 0.0])
    """

    def __init__(self, X: Block, y: Array, loss: Loss, penalty: Penalty) -> None:
        self.X, self.y, self.loss, self.penalty = X, y, loss, penalty
        self._transposed = X.T
        self._small = min(X.shape) <= LARGEST_SYSTEM
        self._bound = loss.hessian_bound(np.ones(y.shape))
        self._kernel: Array | None = None
        self._factored: Solve | None = None

    def minimise(self, theta: Array, z: Array, steps: int = STEPS) -> Array:
        """theta near the minimum of f over the block; ``z`` follows in place.

        Parameters
        ----------
        theta
            theta_k, of the shape that it keeps; theta itself is returned if nothing lowers f.
        z
            The aggregate, which contains X theta.
        steps
            The most Newton steps; squared loss needs one.
        """
        if not self.X.shape[1]:
            return theta
        if self.loss.quadratic:
            step = self._newton_step(theta, z)
            z += self.X.dot(step)
            return np.asarray(theta + step)

        value = self._value(theta, z)
        for _ in range(steps):
            step = self._newton_step(theta, z)
            taken = self._shortened(theta, z, step, value)
            if taken is None:
                break
            theta, z[...], value = taken
        return theta

    def _value(self, theta: Array, z: Array) -> float:
        return self.loss.value(z, self.y) + self.penalty.value(theta)

    def _shortened(
        self, theta: Array, z: Array, step: Array, value: float
    ) -> tuple[Array, Array, float] | None:
        """theta, z and f after the step, halved until f does not rise; None if it always does."""
        moved = self.X.dot(step)
        highest = value + ROUNDING * abs(value)
        for halving in range(HALVINGS):
            share = 0.5**halving
            new, there = theta + share * step, z + share * moved
            lower = self._value(new, there)
            if lower <= highest:
                return new, there, lower
        return None

    def _newton_step(self, theta: Array, z: Array) -> Array:
        gradient: Array = self._transposed.dot(self.loss.gradient(z, self.y))
        self.penalty.add_gradient(theta, gradient)
        if not np.isfinite(gradient).all():  # a training that diverges ends at its measurement
            return np.full_like(theta, np.nan)
        if z.ndim > 1 or not self._small:
            return -self._by_conjugate_gradients(z, gradient)
        return -self._solver(z)(gradient)

    def _solver(self, z: Array) -> Solve:
        """H^-1 at z, of a loss with one output."""
        if self._factored is not None:
            return self._factored
        bend = self.loss.hessian_product(z, self.y, np.ones_like(z))
        solve = self._solve_with(np.maximum(bend, LEAST * self._bound))
        if self.loss.quadratic:  # it is the same at every z
            self._factored = solve
        return solve

    def _solve_with(self, bend: Array) -> Solve:
        """(X^T diag(bend) X + l2)^-1, where l2 is 0 for the columns without a penalty."""
        samples, columns = self.X.shape
        if columns <= samples:
            H = _dense(self._transposed @ _rows_times(bend, self.X))
            H[np.diag_indices(columns)] += self._l2_weights()
            return solver_of(H)

        if not self.penalty.l2 or not (bend > 0.0).all():
            return self._least_squares(bend)
        return self._wide(bend)

    def _l2_weights(self) -> Array:
        columns = self.X.shape[1]
        weights = np.full(columns, self.penalty.l2)
        weights[columns - self.penalty.free :] = 0.0
        return weights

    def _wide(self, bend: Array) -> Solve:
        """By the identity of Woodbury, and a Schur complement for the columns without a penalty."""
        split = self.X.shape[1] - self.penalty.free
        penalised, free, l2 = self.X[:, :split], self.X[:, split:], self.penalty.l2
        if self._kernel is None:
            self._kernel = _dense(penalised @ penalised.T)
        inner = solver_of(self._kernel + np.diag(l2 / bend))

        def solve_penalised(g: Array) -> Array:
            return np.asarray((g - penalised.T.dot(inner(penalised.dot(g)))) / l2)

        if not self.penalty.free:
            return solve_penalised

        across = _dense(penalised.T @ _rows_times(bend, free))
        solved = solve_penalised(across)
        schur = solver_of(_dense(free.T @ _rows_times(bend, free)) - across.T @ solved)

        def solve(g: Array) -> Array:
            first = solve_penalised(g[:split])
            last = schur(g[split:] - across.T @ first)
            return np.concatenate([first - solved @ last, last])

        return solve

    def _least_squares(self, bend: Array) -> Solve:
        """The shortest solution: without a penalty, H of a wide block has no inverse."""
        root = np.sqrt(bend)
        A = np.vstack([_dense(_rows_times(root, self.X)), np.diag(np.sqrt(self._l2_weights()))])

        inverse = np.linalg.pinv(A, rcond=SINGULAR)
        # H = A^T A, and g is in its range
        return lambda g: np.asarray(inverse @ (inverse.T @ g))

    def _by_conjugate_gradients(self, z: Array, gradient: Array) -> Array:
        shape = gradient.shape

        def product(v: Array) -> Array:
            v = v.reshape(shape)
            moved = self.X.dot(v)
            bent = self.loss.hessian_product(z, self.y, moved)
            bent = bent + LEAST * self.loss.hessian_bound(moved)
            Hv: Array = self._transposed.dot(bent)
            self.penalty.add_gradient(v, Hv)
            return Hv.ravel()

        size = (gradient.size, gradient.size)
        linear = scipy.sparse.linalg.LinearOperator
        found, _ = scipy.sparse.linalg.cg(
            linear(size, matvec=product, dtype=float),
            gradient.ravel(),
            rtol=EXACT,
            maxiter=MOST_INNER,
            M=linear(size, matvec=self._nearly_solved(shape), dtype=float),
        )
        return np.asarray(found.reshape(shape))

    def _nearly_solved(self, shape: tuple[int, ...]) -> Solve:
        """The inverse of the bound of H, or of its diagonal where that is too large."""
        bend = self._bound if self._bound.ndim == 1 else self._bound[:, 0]
        if not self._small:
            squared = self.X.power(2) if is_sparse(self.X) else self.X * self.X
            diagonal = np.asarray(squared.T @ bend).ravel() + self._l2_weights()
            diagonal[diagonal == 0.0] = 1.0
            diagonal = diagonal.reshape(-1, *(1,) * (len(shape) - 1))
            return lambda v: np.asarray(v.reshape(shape) / diagonal).ravel()

        if self._factored is None:
            self._factored = self._solve_with(bend)
        factored = self._factored
        return lambda v: factored(v.reshape(shape)).ravel()


def solver_of(H: Array) -> Solve:
    """g -> H^-1 g of a symmetric matrix without negative eigenvalues; the shortest solution where
    it has no inverse.

    >>> solver_of(np.diag([2.0, 0.0]))(np.array([4.0, 0.0])).tolist()
    [2.0, 0.0]
    """
    # in units in which every column is as long: columns may be in any unit
    size = np.sqrt(np.maximum(np.diag(H), 0.0))
    size[size == 0.0] = 1.0
    scaled = H / np.outer(size, size)

    def in_units(solve: Solve) -> Solve:
        def solved(g: Array) -> Array:
            by = size.reshape(-1, *(1,) * (g.ndim - 1))
            return np.asarray(solve(g / by) / by)

        return solved

    try:
        factor = scipy.linalg.cho_factor(scaled, lower=True)
    except scipy.linalg.LinAlgError:
        factor = None
    if factor is not None and np.diag(factor[0]).min() > SINGULAR:
        found = factor
        return in_units(lambda g: np.asarray(scipy.linalg.cho_solve(found, g)))

    inverse = np.linalg.pinv(scaled, rcond=SINGULAR**2 * 100, hermitian=True)
    return in_units(lambda g: np.asarray(inverse @ g))


def _rows_times(weights: Array, X: Block) -> Block:
    if is_sparse(X):
        return scipy.sparse.csr_array(scipy.sparse.diags_array(weights) @ X)
    return weights[:, None] * X


def _dense(matrix: Block) -> Array:
    return np.array(dense(matrix))
