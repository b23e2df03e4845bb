"""The local updates of a visit: Q proximal gradient steps on one block, all others fixed.

    theta <- prox_{eta r}( theta - eta * (X^T l'(z) + l2*theta) ),    z <- z + X*(theta_new - theta)

:func:`plain_steps` does just that. For the squared loss the gradient is linear in theta: with
M = X^T X + l2*I, the gradient after a step is (I - eta*M) times the one before, so that Q steps
need X only twice, whatever Q is (:func:`closed_steps`, :func:`gram_steps`, :func:`wide_steps`).
With l1, other losses look only at columns that can move (``screening.py``).

Majorised steps do the same for every loss of bounded curvature c: they minimise the quadratic upper
bound of f at the aggregate z_0 that arrived, whose gradient is l'(z_0) + c*(z - z_0), so M = c*X^T
X + l2*I. For steps up to 1/L_k the bound falls, and so does f; both have the same gradient at z_0,
so that the fixed points are those of f.

Newton's steps minimise f over the block, or nearly (``newton.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial

import numpy as np

from mtcd.core.arrays import Array, Rows, dense, is_sparse
from mtcd.data.vertical import Block
from mtcd.models.glm.fit import LabelFit
from mtcd.models.glm.newton import NewtonBlock
from mtcd.models.glm.penalty import Penalty
from mtcd.models.glm.screening import ScreenedSteps
from mtcd.models.glm.smoothness import block_smoothness
from mtcd.models.losses import Loss
from mtcd.models.losses.squared import Squared
from mtcd.protocol.model import LocalUpdates

Steps = Callable[[Array, Array], Array]
"""(theta, z) -> the new theta; z is updated in place."""

# an eigendecomposition beyond this size takes longer than the steps that it saves
LARGEST_GRAM = 1500
# the most steps of an update whose step size others choose, if they are taken one by one
MOST_STEPS = 200
# beyond these, steps find nothing but rounding
ANY = 10**12


class LinearClient:
    """The model of client k: its block, and the local updates on it."""

    def __init__(
        self, X: Block, y: Array, loss: Loss, penalty: Penalty, start: Array | None = None
    ) -> None:
        self.X, self.y, self.loss, self.regulariser, self.start = X, y, loss, penalty, start
        self.fit = LabelFit(loss, y)
        self.penalty, self.nonsmooth_penalty, self.penalty_product = (
            penalty.value,
            penalty.kink,
            penalty.product,
        )
        # With an l2 penalty on every column f is strongly convex in theta_k; an unpenalised
        # intercept is enough to lose that.
        self.strongly_convex = penalty.l2 > 0 and not penalty.free
        self._prepared_for: tuple[int, float, bool] | None = None
        self._steps: Steps

    def initial(self) -> Array:
        """theta_k = 0 unless a start is given, so that the first token is zero and free."""
        if self.start is not None:
            return self.start.copy()
        return np.zeros((self.X.shape[1], *self.y.shape[1:]))

    def represent(self, theta: Array, rows: Rows | None = None) -> Array:
        """h_k = X_k theta_k, on all samples or on these rows."""
        X = self.X if rows is None else self.X[rows]
        return np.asarray(X @ theta)

    @cached_property
    def smoothness(self) -> float:
        """L_k, of the gradient of f in theta_k."""
        [largest] = block_smoothness([self.X], self.loss, self.regulariser.l2)
        return float(largest)

    def survey(self) -> Array:
        """1, the number of columns, |X|_F^2, |X|^2, how far columns are from orthogonal: d
        |X|^2 / |X|_F^2, and the sum of log |x|^2 over columns x, of which those of zeros count as
        the mean."""
        X = self.loss.scaled(self.X)
        values = X.data if is_sparse(X) else X.ravel(order="K")  # K: no copy, whatever the layout
        squares = float(values @ values)
        norm = (self.smoothness - self.regulariser.l2) / self.loss.curvature
        columns = self.X.shape[1]
        skew = columns * norm / squares if squares else 1.0
        if not squares:
            return np.array([1.0, columns, 0.0, norm, skew, 0.0])
        squared = X.power(2) if is_sparse(X) else X * X
        sizes = np.asarray(squared.sum(axis=0)).ravel()
        logs = np.log(np.where(sizes > 0.0, sizes, squares / columns))
        return np.array([1.0, columns, squares, norm, skew, float(logs.sum())])

    def most_steps(self, majorise: bool) -> int:
        """Any number, where steps have a closed form."""
        closed = (majorise or self.loss.quadratic) and min(self.X.shape) <= LARGEST_GRAM
        return ANY if closed and not self.regulariser.l1 else MOST_STEPS

    def local_update(self, theta: Array, aggregate: Array, updates: LocalUpdates) -> Array:
        """Q local updates; the aggregate is updated in place, the new theta_k is returned."""
        Q, eta, rows, majorise = updates.Q, updates.eta, updates.rows, updates.majorise
        if updates.newton:
            for _ in range(Q):
                theta = self._newton.minimise(theta, aggregate)
            return theta
        # The settings are compared at every visit, which is cheap; what is prepared for them takes
        # an eigendecomposition.
        if rows is None:
            # what depends on the settings alone, a Gram matrix say, is computed once per training
            if self._prepared_for != (Q, eta, majorise):  # at the first visit
                self._steps = make_steps(
                    self.X, self.y, self.loss, self.regulariser, Q, eta, majorise
                )
                self._prepared_for = (Q, eta, majorise)
            return self._steps(theta, aggregate)

        # a mini-batch stands for all samples: its gradient is multiplied by N/B
        X, y, loss = self.X[rows], self.y[rows], self.loss.at(rows)
        scale = len(self.y) / len(rows)
        return plain_steps(X, y, loss, self.regulariser, theta, aggregate, Q, eta, scale)

    @cached_property
    def _newton(self) -> NewtonBlock:
        return NewtonBlock(self.X, self.y, self.loss, self.regulariser)

    def gradient(self, theta: Array, slope: Array) -> Array:
        """X_k^T slope + the gradient of the smooth part of r; with slope = l'(Z), the partial
        gradient of f."""
        gradient: Array = self.X.T.dot(slope)
        # In place, as it would copy a vector of d numbers at every visit.
        self.regulariser.add_gradient(theta, gradient)
        return gradient

    def primal_step(self, theta: Array, dual: Array, mu: float) -> Array:
        """theta after a proximal gradient step along X_k^T y, for primal-dual methods."""
        gradient = self.gradient(theta, dual)
        gradient *= -mu
        gradient += theta
        self.regulariser.prox(gradient, mu)
        return gradient

    def dual_prox(self, v: Array, c: float) -> Array:
        """prox of c g* at v, g the loss."""
        return self.loss.dual_prox(v, self.y, c)


def make_steps(
    X: Block, y: Array, loss: Loss, penalty: Penalty, Q: int, eta: float, majorise: bool = False
) -> Steps:
    """Q steps of size eta on all samples, by the fastest exact method.

    Parameters
    ----------
    X
        The block of the client.
    y
        The encoded labels.
    loss
        The loss, with the weights of samples.
    penalty
        r_k.
    Q
        The number of steps.
    eta
        The step size.
    majorise
        Whether the steps are on the quadratic upper bound of f at the token, instead of on f.
    """
    quadratic = majorise or loss.quadratic
    # The Gram matrix has the smaller side of the block.
    small = min(X.shape) <= LARGEST_GRAM  # only saves time
    # of a quadratic, Q steps are powers of one matrix: one gradient and two products do for all
    if quadratic and Q > 1 and small:
        if X.shape[1] <= X.shape[0]:
            if penalty.l1:
                return gram_steps(X, y, loss, penalty, Q, eta)
            return closed_steps(X, y, loss, penalty, Q, eta)
        if not (penalty.l1 or penalty.free):
            return wide_steps(X, y, loss, penalty, Q, eta)

    # the bound is needed whatever the size; a single step on it is a gradient step on f
    if quadratic and Q > 1 and not loss.quadratic:
        return partial(bound_steps, X, y, loss, penalty, Q=Q, eta=eta)

    # with l1 most columns stay at 0: steps look at the others
    if penalty.l1 and Q > 1 and y.ndim == 1:
        return ScreenedSteps(X, y, loss, penalty, Q, eta)
    return partial(plain_steps, X, y, loss, penalty, Q=Q, eta=eta)


def plain_steps(
    X: Block,
    y: Array,
    loss: Loss,
    penalty: Penalty,
    theta: Array,
    z: Array,
    Q: int,
    eta: float,
    scale: float = 1.0,
) -> Array:
    """Q steps, one after the other. ``scale`` (N/B) scales a mini-batch to all samples."""
    transposed = X.T
    for _ in range(Q):
        gradient = transposed.dot(loss.gradient(z, y))
        if scale != 1.0:  # only saves time
            gradient *= scale
        penalty.add_gradient(theta, gradient)
        new = theta - eta * gradient
        if penalty.l1:  # without it, the prox is the identity
            penalty.prox(new, eta)
        step = new - theta
        if not step.any():
            break  # a fixed point, the remaining steps would not move either
        z += X.dot(step)  # so that the token stays sum_k X_k theta_k
        theta = new

    return theta


def bound_steps(
    X: Block, y: Array, loss: Loss, penalty: Penalty, theta: Array, z: Array, Q: int, eta: float
) -> Array:
    """Q steps on the upper bound of f at z, one after the other, for blocks too large for a Gram
    matrix."""
    transposed, start = X.T, z.copy()
    slope = loss.gradient(z, y)
    for _ in range(Q):
        gradient = transposed.dot(slope + loss.hessian_bound(z - start))
        penalty.add_gradient(theta, gradient)
        new = theta - eta * gradient
        penalty.prox(new, eta)
        z += X.dot(new - theta)
        theta = new
    return theta


def closed_steps(X: Block, y: Array, loss: Loss, penalty: Penalty, Q: int, eta: float) -> Steps:
    """Without l1 the steps add up: theta_Q = theta - P g, P = eta * sum_{q<Q} (I - eta*M)^q."""
    weights, gradient_of = _l2_weights(X, penalty), _gradient(X, y, loss, penalty)
    # M is symmetric: with its eigenvalues, the sum of Q powers costs no more than one.
    eigenvalues, V = np.linalg.eigh(_gram(X, loss) + np.diag(weights))
    P = (V * summed_powers(eigenvalues, Q, eta)) @ V.T

    def steps(theta: Array, z: Array) -> Array:
        step: Array = P.dot(gradient_of(theta, z))
        z -= X.dot(step)
        return theta - step

    return steps


# The prox acts on single coefficients, so the steps have no closed form as those without l1 do.
def gram_steps(X: Block, y: Array, loss: Loss, penalty: Penalty, Q: int, eta: float) -> Steps:
    """With l1 the steps are taken one by one, but on M instead of X."""
    gradient_of = _gradient(X, y, loss, penalty)
    M = _gram(X, loss) + np.diag(_l2_weights(X, penalty))

    def steps(theta: Array, z: Array) -> Array:
        gradient = gradient_of(theta, z)
        start = theta
        # Within the loop X is not touched: d x d numbers instead of N x d.
        for _ in range(Q):
            new = theta - eta * gradient
            penalty.prox(new, eta)
            gradient += M.dot(new - theta)  # of a quadratic, exactly
            theta = new

        z += X.dot(theta - start)
        return theta

    return steps


def wide_steps(X: Block, y: Array, loss: Loss, penalty: Penalty, Q: int, eta: float) -> Steps:
    """A block wider than tall, by the smaller matrix X X^T (four products with X).

    P g = p(l2)*g + X^T W X g, where W maps an eigenvalue s of c X X^T to c (p(s + l2) - p(l2)) / s,
    and p(m) = eta * sum_{q<Q} (1 - eta*m)^q. With weights of samples, X stands for its scaled rows.
    """
    transposed, gradient_of, l2 = X.T, _gradient(X, y, loss, penalty), penalty.l2
    rows = loss.scaled(np.ones(X.shape[0]))
    s, U = np.linalg.eigh(loss.curvature * (rows[:, None] * dense(X @ transposed) * rows))
    outside = float(summed_powers(np.array(l2), Q, eta))
    inside = loss.curvature * (summed_powers(s + l2, Q, eta) - outside)
    # Directions with s = 0 are outside of the row space of X: there W has nothing to add, and the
    # quotient would be 0/0.
    W = (U * np.divide(inside, s, out=np.zeros_like(s), where=s > 1e-12 * s.max())) @ U.T
    W = rows[:, None] * W * rows

    def steps(theta: Array, z: Array) -> Array:
        gradient = gradient_of(theta, z)
        step = outside * gradient + transposed.dot(W.dot(X.dot(gradient)))
        z -= X.dot(step)
        return np.asarray(theta - step)

    return steps


def _gradient(X: Block, y: Array, loss: Loss, penalty: Penalty) -> Callable[[Array, Array], Array]:
    """(theta, z) -> the gradient of the smooth part of f in theta."""
    transposed = X.T

    def gradient_of(theta: Array, z: Array) -> Array:
        gradient: Array = transposed.dot(loss.gradient(z, y))
        penalty.add_gradient(theta, gradient)
        return gradient

    if not isinstance(loss, Squared):
        return gradient_of
    # X^T (z - y) = X^T z - X^T y, and the second part is the same at every visit.
    target, weights = transposed @ y, _l2_weights(X, penalty)

    def gradient_of_squares(theta: Array, z: Array) -> Array:
        """Without a pass over y, and with as few calls as there can be: small blocks take no longer
        than these."""
        gradient: Array = transposed.dot(z)
        gradient -= target
        gradient += weights * theta
        return gradient

    return gradient_of_squares


def summed_powers(eigenvalues: Array, Q: int, eta: float) -> Array:
    """eta * sum_{q<Q} (1 - eta*m)^q = (1 - (1 - eta*m)^Q) / m, without cancellation for small m.

    An eigenvalue below 0 is 0 but for rounding.
    """
    m = eigenvalues
    with np.errstate(all="ignore"):
        small = -np.expm1(Q * np.log1p(-eta * m)) / m
        large = (1.0 - (1.0 - eta * m) ** Q) / m
    # 1 - (1 - eta m)^Q loses all digits where Q eta m is near the machine precision; expm1 and
    # log1p do not.
    either = eta * m < 0.5  # both are exact there
    tiny = Q * eta * m < 1e-14  # small is exact there too, but for 0
    return np.where(tiny, eta * Q, np.where(either, small, large))


def _gram(X: Block, loss: Loss) -> Array:
    """A bound of the second derivative of the loss in theta: c X^T X, rows scaled by the weights of
    samples."""
    scaled = loss.scaled(X)
    return loss.curvature * dense(scaled.T @ scaled)


def _l2_weights(X: Block, penalty: Penalty) -> Array:
    """l2 for every column, 0 for the unpenalised ones at the end."""
    weights = np.full(X.shape[1], penalty.l2)
    weights[X.shape[1] - penalty.free :] = 0.0
    return weights
