"""The optimum f* of a generalised linear model, to about 12 digits, for measuring relative gaps.

Ridge has a closed form. Everything else is solved by damped Newton steps on the coordinates that can
move (the support, and what violates the optimality conditions). With an l1 penalty each step minimises
the quadratic model plus the penalty, over a working set of columns that grows until no column outside
violates the conditions. A value is returned only with an estimate of its error that is small enough.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse.linalg import LinearOperator, cg

from mtcd.data.vertical import Block
from mtcd.errors import ConfigError, MtcdError
from mtcd.objective.losses import Loss, Squared
from mtcd.objective.penalty import Penalty
from mtcd.objective.smoothness import overall_smoothness

Array = NDArray[np.float64]

_TOLERANCE = 1e-12  # on (f - f*) / f
_NEGLIGIBLE = 1e-9  # f* below this part of f(0) counts as zero: relative gaps drown in rounding
_DIRECT = 4000  # up to so many unknowns, solve for the Newton step with a factorised Hessian
_DAMPING = 1e-12  # the least damping of a Newton step, relative to the mean curvature of the loss
_ROUNDS = 300  # Newton steps on one working set; ten or twenty are usual

_REMEDY = "Add an l2 or l1 penalty, or stop after a number of iterations instead of at a gap."
_UNATTAINED = (
    "No parameters attain the least objective: columns without penalty separate the classes, and the best "
    f"fit lies at infinity, so there is no optimum to measure a gap to. {_REMEDY}"
)


@dataclass(frozen=True, eq=False)
class Optimum:
    """f* and where it is attained.

    ``gap`` says how far ``value`` may lie above f*: a bound where every column is penalised, and at least
    a Newton estimate.
    """

    value: float
    parameters: list[Array]
    gap: float


def optimum(blocks: Sequence[Block], labels: Array, loss: Loss, penalties: Sequence[Penalty]) -> Optimum:
    """min over theta of loss(sum_k X_k theta_k, y) + sum_k r_k(theta_k); ``labels`` are encoded.

    Raises ``ConfigError`` where a relative gap means nothing (f* is zero, or no theta attains it), and
    ``MtcdError`` where the accuracy cannot be certified.

    >>> from mtcd.objective.losses import Squared
    >>> optimum([np.eye(2)], np.array([2.0, 4.0]), Squared(), [Penalty(l2=1.0)]).parameters
    [array([1., 2.])]
    """
    if len(blocks) != len(penalties):
        raise ConfigError(f"There are {len(blocks)} blocks but {len(penalties)} penalties: give one per block.")
    problem = _Problem.of(blocks, labels, loss, penalties)
    lasso = bool(problem.l1.any())
    closed = _ridge(problem) if isinstance(loss, Squared) and problem.l2.any() and not lasso else None
    w, gap = closed or (_lasso(problem) if lasso else _minimise(problem, problem.start()))
    theta = np.split(problem.scale * w, problem.offsets[1:-1])
    return Optimum(problem.value(w, problem.forward(w)), theta, gap)


@dataclass(frozen=True, eq=False)
class _Problem:
    """The objective in w = theta / scale, which gives every column of X unit length.

    l1, l2 and scale hold one number per row of w, shaped to broadcast against it.
    """

    blocks: Sequence[Block]
    y: Array
    loss: Loss
    l1: Array
    l2: Array
    scale: Array

    @classmethod
    def of(cls, blocks: Sequence[Block], y: Array, loss: Loss, penalties: Sequence[Penalty]) -> _Problem:
        shape = (-1,) + (1,) * (y.ndim - 1)
        norms = np.concatenate([_column_norms(block) for block in blocks])
        scale = 1.0 / np.where(norms > 0, norms, 1.0)
        kept = [np.arange(b.shape[1]) < b.shape[1] - p.free for b, p in zip(blocks, penalties, strict=True)]
        l1 = scale * np.concatenate([p.l1 * k for p, k in zip(penalties, kept, strict=True)])
        l2 = scale**2 * np.concatenate([p.l2 * k for p, k in zip(penalties, kept, strict=True)])
        return cls(blocks, y, loss, l1.reshape(shape), l2.reshape(shape), scale.reshape(shape))

    @cached_property
    def offsets(self) -> NDArray[np.int_]:
        """Where each block's rows of w begin, and the end."""
        return np.cumsum([0, *(block.shape[1] for block in self.blocks)])

    @cached_property
    def zero_value(self) -> float:
        """f(0)."""
        return self.loss.value(np.zeros_like(self.y), self.y)

    @cached_property
    def smoothness(self) -> float:
        """L of the smooth part, for a restricted problem (whose columns are scaled already)."""
        return overall_smoothness(self.blocks, self.loss, float(self.l2.max()))

    def start(self) -> Array:
        return np.zeros((len(self.l1), *self.y.shape[1:]))

    def forward(self, w: Array) -> Array:
        """z = X w."""
        theta, z = self.scale * w, np.zeros_like(self.y)
        for block, begin, end in zip(self.blocks, self.offsets[:-1], self.offsets[1:], strict=True):
            z += block @ theta[begin:end]
        return z

    def adjoint(self, r: Array) -> Array:
        """X^T r."""
        return np.asarray(self.scale * np.concatenate([block.T @ r for block in self.blocks]))

    def value(self, w: Array, z: Array) -> float:
        penalty = (self.l1 * np.abs(w)).sum() + 0.5 * (self.l2 * w * w).sum()
        return self.loss.value(z, self.y) + float(penalty)

    def gradient(self, w: Array, z: Array) -> Array:
        """Of the smooth part: X^T loss'(z) + l2 w."""
        return self.adjoint(self.loss.gradient(z, self.y)) + self.l2 * w

    def subgradient(self, w: Array, gradient: Array) -> Array:
        """The shortest subgradient of f at w, from the gradient of the smooth part: zero at the optimum."""
        shrunk = gradient - np.clip(gradient, -self.l1, self.l1)
        return np.where(w != 0, gradient + self.l1 * np.sign(w), shrunk)

    def slope(self, w: Array, gradient: Array, step: Array) -> float:
        """The change (below 0) that a step promises: gradient^T step + l1 (|w + step|_1 - |w|_1)."""
        return float((gradient * step + self.l1 * (np.abs(w + step) - np.abs(w))).sum())

    def columns(self, rows: NDArray[np.int_]) -> Block:
        """The scaled columns of X that belong to these (sorted) rows of w: a copy."""
        parts, pieces = np.split(rows, np.searchsorted(rows, self.offsets[1:-1])), []
        for block, begin, part in zip(self.blocks, self.offsets[:-1], parts, strict=True):
            if len(part):
                pieces.append(block[:, part - begin] * self.scale[part].reshape(1, -1))
        if pieces and all(sp.issparse(piece) for piece in pieces):
            return sp.csr_array(sp.hstack(pieces))
        return np.hstack([np.empty((len(self.y), 0)), *map(_dense, pieces)])

    def restricted(self, rows: NDArray[np.int_]) -> _Problem:
        """The same objective with all other rows of w held at zero."""
        ones = np.ones_like(self.scale[rows])
        return _Problem([self.columns(rows)], self.y, self.loss, self.l1[rows], self.l2[rows], ones)


def _column_norms(block: Any) -> Array:
    squares = block.power(2).sum(axis=0) if sp.issparse(block) else np.einsum("nj,nj->j", block, block)
    return np.sqrt(np.asarray(squares, dtype=np.float64))


def _dense(matrix: Any) -> Array:
    return np.asarray(matrix.toarray() if sp.issparse(matrix) else matrix)


def _check_not_negligible(problem: _Problem, value: float) -> None:
    if value <= _NEGLIGIBLE * problem.zero_value:
        raise ConfigError(
            "The model fits the data perfectly (the least objective is zero to within rounding), "
            f"so a relative gap to it means nothing. {_REMEDY}"
        )


def _uncertain(gap: float) -> MtcdError:
    return MtcdError(
        f"The optimum could not be computed to the accuracy a relative gap needs (estimated error {gap:.1e} "
        f"of f). Scale the features to similar sizes, use a larger penalty, or stop after a number of "
        f"iterations instead of at a gap."
    )


def _ridge(problem: _Problem) -> tuple[Array, float] | None:
    """Closed form of 1/2 |P w + F u - y|^2 + 1/2 w^T Lambda w, u being unpenalised.

    With M = I - F F^+ the optimal u is eliminated: w solves (P^T M P + Lambda) w = P^T M y, directly or,
    where N < d, by Woodbury's identity with I + M P Lambda^-1 P^T M. Solved again for the remaining
    gradient until that certifies the value: f - f* <= sum_j g_j^2 / (2 Lambda_j). None if it never does.
    """
    free = np.flatnonzero(problem.l2 == 0)
    penalised = np.flatnonzero(problem.l2)
    F = _dense(problem.columns(free))
    U, sigma, _ = np.linalg.svd(F, full_matrices=False)
    Q = U[:, sigma > 1e-12 * sigma.max(initial=0.0)]
    l2 = problem.l2[penalised]
    try:
        solve = _ridge_solver(problem, penalised, Q)
    except LinAlgError:  # columns alike, and a penalty lost in rounding
        return None
    w = problem.start()
    for _ in range(5):
        w[free] = 0.0
        w[free] = np.linalg.lstsq(F, problem.y - problem.forward(w))[0]
        z = problem.forward(w)
        value, g = problem.value(w, z), problem.gradient(w, z)[penalised]
        _check_not_negligible(problem, value)
        gap = 0.5 * float((g * g / l2).sum() + ((Q.T @ (problem.y - z)) ** 2).sum())
        if gap <= _TOLERANCE * value:
            return w, gap
        w[penalised] -= solve(g)
    return None


def _ridge_solver(problem: _Problem, penalised: NDArray[np.int_], Q: Array) -> Callable[[Array], Array]:
    """g -> (P^T M P + Lambda)^-1 g, where M = I - Q Q^T."""
    l2, samples = problem.l2[penalised], len(problem.y)
    if len(penalised) <= samples:
        P = problem.columns(penalised)
        hessian = _dense(P.T @ P) - (P.T @ Q) @ (P.T @ Q).T + np.diag(l2)
        factor = cho_factor(hessian, overwrite_a=True, check_finite=False)
        return lambda g: np.asarray(cho_solve(factor, g, check_finite=False))

    def spread(g: Array) -> Array:
        """M P Lambda^-1 g."""
        w = problem.start()
        w[penalised] = g / l2
        z = problem.forward(w)
        return z - Q @ (Q.T @ z)

    gram = np.zeros((samples, samples))
    for chunk in np.array_split(penalised, 1 + len(penalised) // 2000):
        P = problem.columns(chunk)
        gram += _dense((P / problem.l2[chunk]) @ P.T)
    gram -= Q @ (Q.T @ gram)
    gram -= (gram @ Q) @ Q.T
    factor = cho_factor(gram + np.eye(samples), overwrite_a=True, check_finite=False)

    def woodbury(g: Array) -> Array:
        """Lambda^-1 (g - P^T M (I + M P Lambda^-1 P^T M)^-1 M P Lambda^-1 g)."""
        dual = cho_solve(factor, spread(g), check_finite=False)
        return np.asarray((g - problem.adjoint(dual - Q @ (Q.T @ dual))[penalised]) / l2)

    return woodbury


def _lasso(problem: _Problem) -> tuple[Array, float]:
    """Minimise over a working set of rows, which grows by the worst violators until there is none."""
    l1 = problem.l1.reshape(len(problem.l1), -1)[:, 0]
    rows = np.flatnonzero(l1 == 0)
    w, gap = problem.start(), 0.0
    for tolerance in (1e-3, 1e-6, _TOLERANCE):  # while the set grows, accuracy would be wasted
        while True:
            if len(rows):
                w[rows], gap = _minimise(problem.restricted(rows), w[rows], tolerance)
            g = problem.subgradient(w, problem.gradient(w, problem.forward(w)))
            g = np.abs(g).reshape(len(l1), -1).max(axis=1)
            g[rows] = 0.0
            # A violation v outside the set costs at most v/l1 of f: what is left lies below the tolerance.
            violators = np.flatnonzero(g > tolerance * l1)
            if len(violators) == 0:
                break
            worst = np.argsort(-g[violators], kind="stable")[: max(100, np.count_nonzero(w))]
            rows = np.union1d(rows, violators[worst])
    return w, gap


def _minimise(problem: _Problem, w: Array, tolerance: float = _TOLERANCE) -> tuple[Array, float]:
    """Damped (proximal) Newton steps from w until what a step promises to gain is negligible."""
    damping, runaway, relative = _DAMPING, 0, np.inf
    for _ in range(_ROUNDS):
        z = problem.forward(w)
        value, gradient = problem.value(w, z), problem.gradient(w, z)
        _check_not_negligible(problem, value)
        bound = _gap_bound(problem, w, problem.subgradient(w, gradient), value)
        if bound <= tolerance * value:
            return w, bound
        try:
            step, exact = _newton_step(problem, w, z, gradient, damping, 1e-6 if relative <= 1e-3 else 1e-2)
        except LinAlgError:  # the Hessian is not positive definite to within rounding
            damping *= 100.0
            continue
        promised = problem.slope(w, gradient, step)
        relative = -promised / value
        if relative <= tolerance and exact and damping == _DAMPING:
            settled = relative <= 1e-3 * tolerance or np.abs(problem.forward(step)).max() < 0.1
            if settled or tolerance > _TOLERANCE:
                return w, max(-promised, 0.0)
            # The objective is flat, but the predictions keep moving: on their way to infinity?
            runaway += 1
            if runaway > 5:
                raise ConfigError(_UNATTAINED)
        w, length = _line_search(problem, w, value, promised, step)
        damping = max(_DAMPING, damping / 10.0) if length > 0.1 else 100.0 * damping
    raise _uncertain(bound / value if np.isfinite(bound) else relative)


def _gap_bound(problem: _Problem, w: Array, g: Array, value: float) -> float:
    """f(w) - f* <= sum g_j^2/(2 l2_j), or <= max(|g_j|/l1_j) * (l1 |w|_1 + f); infinite with neither."""
    l1, l2 = np.broadcast_to(problem.l1, w.shape), np.broadcast_to(problem.l2, w.shape)
    ridge, lasso = l2 > 0, (l2 == 0) & (l1 > 0)
    if g[~ridge & ~lasso].any():
        return np.inf
    bound = 0.5 * float((g[ridge] ** 2 / l2[ridge]).sum())
    if lasso.any():
        largest = float((np.abs(g[lasso]) / l1[lasso]).max())
        bound += largest * (float((l1 * np.abs(w)).sum()) + value)
    return bound


def _newton_step(
    problem: _Problem, w: Array, z: Array, gradient: Array, damping: float, accuracy: float
) -> tuple[Array, bool]:
    """The step that minimises the damped quadratic model of the loss plus the penalty.

    -(H + damping)^-1 gradient without l1. Only entries that can move take part: those of the support, those
    that violate the optimality conditions, those without l1. Also whether the step is exact enough for
    what it promises to be an estimate of the gap.
    """
    active = (w != 0) | (np.abs(gradient) > problem.l1) | (problem.l1 == 0)
    rows = np.flatnonzero(active.reshape(len(active), -1).any(axis=1))
    if len(rows) * z[:1].size > _DIRECT:
        if problem.l1.any():
            return _large_lasso_step(problem, w, damping, accuracy)
        return _conjugate_gradients(problem, z, gradient, active, damping, accuracy)
    step = np.zeros_like(w)
    chosen = active[rows].ravel()
    hessian = _hessian(problem, problem.columns(rows), z)[np.ix_(chosen, chosen)]
    damped = problem.l2 + damping * _typical_curvature(problem, z)
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
    problem: _Problem, z: Array, g: Array, active: NDArray[np.bool_], damping: float, accuracy: float
) -> tuple[Array, bool]:
    """-(H + damping)^-1 g on the active entries, for models too large to factorise H; whether it is exact."""
    typical = _typical_curvature(problem, z)
    diagonal = np.broadcast_to(problem.l2 + damping * typical, g.shape)[active]

    def product(v: Array) -> Array:
        whole = np.zeros_like(g)
        whole[active] = v
        curved = problem.loss.hessian_product(z, problem.y, problem.forward(whole))
        return np.asarray(problem.adjoint(curved)[active] + diagonal * v)

    shape = (len(diagonal), len(diagonal))
    operator = LinearOperator(shape, matvec=product, dtype=float)
    inverse = LinearOperator(shape, matvec=lambda v: v / (diagonal + typical), dtype=float)
    step = np.zeros_like(g)
    step[active], missed = cg(operator, -g[active], rtol=accuracy, maxiter=2000, M=inverse)
    return step, missed == 0 and accuracy <= 1e-6


def _large_lasso_step(problem: _Problem, w: Array, damping: float, accuracy: float) -> tuple[Array, bool]:
    """Proximal gradient steps, then a Newton step on the support they find, entries stopping at zero."""
    ahead = _proximal_steps(problem, w, 50)
    z = problem.forward(ahead)
    g, support = problem.subgradient(ahead, problem.gradient(ahead, z)), (ahead != 0) | (problem.l1 == 0)
    step, exact = _conjugate_gradients(problem, z, g, support, damping, accuracy)
    new = ahead + step
    crossing = (problem.l1 > 0) & (new * ahead < 0)
    new[crossing] = 0.0
    if problem.value(new, problem.forward(new)) > problem.value(ahead, z) * (1.0 + 1e-14):
        return ahead - w, False
    violated = ~support & (np.abs(g) > _TOLERANCE * problem.l1)
    return new - w, exact and not crossing.any() and not violated.any()


def _quadratic_lasso(H: Array, g: Array, l1: Array, w: Array) -> Array:
    """argmin over u of 1/2 (u-w)^T H (u-w) + g^T (u-w) + sum_j l1_j |u_j|, by feature-sign search.

    Solve on the support with its signs and go there; entries that would change their sign become zero
    and leave the support. If that does not descend, stop half-way, or where the first one crosses zero,
    which always does. At the solution let the worst violators in. No support comes twice, so it ends.
    """
    u, slope, value = w, g, float(l1 @ np.abs(w))
    inside, sign = (w != 0) | (l1 == 0), np.sign(w)
    allowed = l1 * (1.0 + 1e-12) + 1e-14 * np.abs(g).max()
    for _ in range(100 + 10 * len(w)):
        S = np.flatnonzero(inside)
        move = np.zeros_like(u)
        move[S] = -_solve(H[np.ix_(S, S)], slope[S] + l1[S] * sign[S])
        crosses = inside & (l1 > 0) & ((u + move) * sign < 0)
        crossing = np.full(len(u), np.inf)
        crossing[crosses] = np.abs(u[crosses] / move[crosses])
        times: list[float] = np.sort(crossing[crosses]).tolist()
        for length in (1.0, times[len(times) // 2], times[0]) if times else (1.0,):
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
            worst = worst[violation[worst] > 0.1 * violation.max(initial=0.0)]
            if len(worst) == 0:
                return u
            inside[worst], sign[worst] = True, -np.sign(slope[worst])
    raise LinAlgError("rounding keeps the search from ending; more damping helps")


def _proximal_steps(problem: _Problem, w: Array, steps: int) -> Array:
    """Accelerated proximal gradient descent, restarted where the momentum points uphill."""
    smooth = problem.smoothness
    ahead, momentum = w, 1.0
    for _ in range(steps):
        new = ahead - problem.gradient(ahead, problem.forward(ahead)) / smooth
        new -= np.clip(new, -problem.l1 / smooth, problem.l1 / smooth)
        following = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * momentum**2))
        if np.vdot(ahead - new, new - w) > 0:
            ahead, momentum = new, 1.0
        else:
            ahead, momentum = new + (momentum - 1.0) / following * (new - w), following
        w = new
    return w


def _unit(z: Array, output: int) -> Array:
    """Of the shape of z: ones for one output, zeros for the others."""
    unit = np.zeros_like(z)
    unit.reshape(len(z), -1)[:, output] = 1.0
    return unit


def _typical_curvature(problem: _Problem, z: Array) -> float:
    """The mean second derivative of the loss: about that of f in one entry of w, columns having unit length."""
    unit = _unit(z, 0)
    mean = float(np.vdot(unit, problem.loss.hessian_product(z, problem.y, unit))) / len(z)
    return max(mean, 1e-8 * problem.loss.curvature)  # of a huber loss it may be zero


def _hessian(problem: _Problem, X: Block, z: Array) -> Array:
    """X^T loss''(z) X, its rows and columns ordered as the entries of w."""
    outputs, size = z[:1].size, X.shape[1]
    hessian = np.empty((size, outputs, size, outputs))
    for e in range(outputs):
        curved = problem.loss.hessian_product(z, problem.y, _unit(z, e)).reshape(len(z), -1)
        for c in range(e, outputs):
            product = _dense(X.T @ (X * curved[:, c : c + 1]))
            hessian[:, c, :, e] = product
            hessian[:, e, :, c] = product
    return hessian.reshape(size * outputs, size * outputs)


def _line_search(problem: _Problem, w: Array, value: float, promised: float, step: Array) -> tuple[Array, float]:
    """The longest of 1, 1/2, 1/4, ... of the step that descends by a fair part of what it promised."""
    length = 1.0
    while length > 1e-9:
        new = w + length * step
        reached = problem.value(new, problem.forward(new))
        if reached <= value * (1.0 + 1e-14) + 1e-4 * length * promised:
            return new, length
        length *= 0.5
    return w, 0.0
