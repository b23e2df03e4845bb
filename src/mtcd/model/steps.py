"""The local updates of a visit: Q proximal gradient steps on one block, all others fixed.

    theta <- prox_{eta r}( theta - eta * (X^T l'(z) + l2*theta) ),    z <- z + X*(theta_new - theta)

:func:`plain_steps` does just that. For the squared loss the gradient is linear in theta, so Q steps
need X only twice: :class:`SquaredSteps`. Both change z in place and return the new theta.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mtcd.objective.losses import Loss
from mtcd.objective.penalty import Penalty

Array = NDArray[np.float64]
# an eigendecomposition of more than this takes longer than the steps that it saves
LARGEST_GRAM = 1500

Step = Callable[[Array, Array], Array]  # (theta, gradient) -> the change of theta
Steps = Callable[[Array, Array], Array]  # (theta, z) -> the new theta; z is changed in place


def plain_steps(
    X: Array,
    y: Array,
    loss: Loss,
    penalty: Penalty,
    theta: Array,
    z: Array,
    Q: int,
    eta: float,
    scale: float = 1.0,
) -> Array:
    """Q steps, one after the other. ``scale`` (N/B) makes a mini-batch stand for all samples."""
    transposed = X.T
    for _ in range(Q):
        gradient = transposed.dot(loss.gradient(z, y))
        if scale != 1.0:
            gradient *= scale
        penalty.add_gradient(theta, gradient)
        new = theta - eta * gradient
        penalty.prox(new, eta)
        step = new - theta
        if not step.any():
            break  # a fixed point: the remaining steps would not move either
        z += X.dot(step)
        theta = new
    return theta


class SquaredSteps:
    """Q steps at once for the squared loss: exact, and the products with X do not grow with Q.

    With M = X^T X + l2*I the gradient after a step is (I - eta*M) times the one before. Without l1,
    the Q steps add up to  theta_Q = theta - P g,  P = eta * sum_{q<Q} (I - eta*M)^q,  computed in the
    eigenbasis of M. With l1 the steps are taken one by one, but on M instead of X. A block that is
    wider than tall uses the eigenbasis of X X^T, which is smaller.
    """

    def __init__(self, X: Array, y: Array, penalty: Penalty, Q: int, eta: float) -> None:
        self.X, self.transposed = X, X.T
        self.penalty, self.Q, self.eta = penalty, Q, eta
        self.target = X.T @ y
        self.weights = np.full(X.shape[1], penalty.l2)
        self.weights[X.shape[1] - penalty.free :] = 0.0
        self._step = self._wide() if X.shape[1] > X.shape[0] else self._proximal() if penalty.l1 else self._closed()

    @staticmethod
    def fits(X: Array, penalty: Penalty, Q: int) -> bool:
        """Whether it pays: more than one step, and a Gram matrix that is small enough."""
        wide = X.shape[1] > X.shape[0]
        return Q > 1 and min(X.shape) <= LARGEST_GRAM and not (wide and (penalty.l1 or penalty.free))

    def __call__(self, theta: Array, z: Array) -> Array:
        """theta after Q steps; z is brought up to date in place."""
        gradient: Array = self.transposed.dot(z)
        gradient -= self.target
        gradient += self.weights * theta
        step = self._step(theta, gradient)
        z -= self.X.dot(step)
        return theta - step

    def _closed(self) -> Step:
        eigenvalues, V = np.linalg.eigh(self._hessian())
        P = (V * _summed_powers(eigenvalues, self.Q, self.eta)) @ V.T
        return lambda theta, gradient: P.dot(gradient)

    def _proximal(self) -> Step:
        M = self._hessian()

        def step(theta: Array, gradient: Array) -> Array:
            current = theta
            for _ in range(self.Q):
                new = current - self.eta * gradient
                self.penalty.prox(new, self.eta)
                gradient += M @ (new - current)
                current = new
            return np.asarray(theta - current)

        return step

    def _wide(self) -> Step:
        """P g = p(l2)*g + X^T W X g, where W maps an eigenvalue s of X X^T to (p(s + l2) - p(l2)) / s."""
        s, U = np.linalg.eigh(_dense(self.X @ self.transposed))
        outside = float(_summed_powers(np.array([self.penalty.l2]), self.Q, self.eta)[0])
        inside = _summed_powers(s + self.penalty.l2, self.Q, self.eta) - outside
        seen = s > 1e-12 * s[-1]
        W = (U * np.divide(inside, s, out=np.zeros_like(s), where=seen)) @ U.T
        return lambda theta, gradient: outside * gradient + self.transposed @ (W @ (self.X @ gradient))

    def _hessian(self) -> Array:
        return _dense(self.transposed @ self.X) + np.diag(self.weights)


def _dense(matrix: Array) -> Array:
    return np.asarray(matrix.toarray() if sp.issparse(matrix) else matrix)  # type: ignore[attr-defined]


def _summed_powers(eigenvalues: Array, Q: int, eta: float) -> Array:
    """eta * sum_{q<Q} (1 - eta*m)^q = (1 - (1 - eta*m)^Q) / m, without cancellation for small m."""
    m = np.maximum(eigenvalues, 0.0)
    with np.errstate(all="ignore"):
        small = -np.expm1(Q * np.log1p(-eta * m)) / m
        large = (1.0 - (1.0 - eta * m) ** Q) / m
    return np.where(Q * eta * m < 1e-14, eta * Q, np.where(eta * m < 0.5, small, large))
