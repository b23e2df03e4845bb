"""The weights of changes of the model that minimise f, for linear representations: of the tokens of
a sync (``optimal_sync``), and of the last tours (``tours``).

    w = argmin of f(theta^t + sum_gamma w_gamma (theta(gamma) - theta^t))

has one unknown per token. The loss follows from the tokens, the regulariser from a few numbers that
they carry: its quadratic part needs the inner products of the tokens' changes, which each visit
updates. Of l1 only a bound is known, linear in w if the weights at any client are not negative and
sum to at most 1: with l1 the weights satisfy this, and f is still never raised.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy  # its parts are loaded when they are used
from numpy.typing import NDArray

from mtcd.core.arrays import Array, all_finite
from mtcd.protocol.model import Fit

NEWTON_STEPS = 25
HALVINGS = 12
# this share of the largest possible curvature is added to the true one, which may be 0 along some
# change
CAUTION = 1e-3
SMALL = 1e-12
DAMPING = 1e-9
# the status of SciPy's solver after a step that lowered nothing, as where two tokens made the same
# change and one of them is at its bound: that may be far from the minimum
ENDS_EARLY = 2
SWEEPS = 100
# the largest weight: weights amplify rounding errors, by which token and models drift apart
LARGEST = 100.0


@dataclass(frozen=True, eq=False)
class Along:
    """f along the changes of the tokens, as a function of their weights: the loss exactly, r as far
    as is known."""

    fit: Fit
    start: Array
    changes: Array
    """One column per token."""
    slope: Array
    """The derivative of r in each weight."""
    bend: Array
    """The second derivative of r, a matrix."""

    @staticmethod
    def of(fit: Fit, start: Array, ends: Sequence[Array], slope: Array, bend: Array) -> Along:
        """From the token at the start of the iteration to those at its end."""
        changes = np.stack([(end - start).ravel() for end in ends], axis=1)
        # Rounding may make the matrix of r bend downwards, and the minimum would be far away.
        return Along(fit, start, changes, slope, without_negative(bend))

    def among(self, used: NDArray[np.bool_]) -> Along:
        """f along some of the changes only."""
        return Along(
            self.fit,
            self.start,
            self.changes[:, used],
            self.slope[used],
            self.bend[np.ix_(used, used)],
        )

    def aggregate(self, w: Array) -> Array:
        """Z at these weights."""
        return np.asarray(self.start + (self.changes @ w).reshape(self.start.shape))

    def penalty(self, w: Array) -> float:
        """The change of r, or a bound for it."""
        return float(self.slope @ w + w @ self.bend @ w / 2)

    def value(self, w: Array) -> float:
        """f but for a constant."""
        return self.fit.objective(self.aggregate(w), self.penalty(w))

    def gradient(self, w: Array) -> Array:
        """d value / d w."""
        return self._gradient_at(self.aggregate(w), w)

    def derivatives(self, w: Array) -> tuple[Array, Array]:
        """The first derivative, and the second plus a share of its bound."""
        # Newton's model trusts at least a share of the worst curvature: where the loss is flat
        # along a change, a step would be endless.
        Z = self.aggregate(w)
        hessian = np.asarray(self.changes.T @ self._curved(Z) + CAUTION * self._worst + self.bend)
        return self._gradient_at(Z, w), hessian

    def _gradient_at(self, Z: Array, w: Array) -> Array:
        return np.asarray(
            self.changes.T @ self.fit.gradient(Z).ravel() + self.slope + self.bend @ w
        )

    def _curved(self, Z: Array) -> Array:
        """The second derivative of the loss at Z, times every change."""
        if Z.ndim == 1:  # one number per sample: the second derivative is a diagonal
            return np.asarray(self.fit.hessian_product(Z, np.ones_like(Z))[:, None] * self.changes)
        columns = [self.fit.hessian_product(Z, c.reshape(Z.shape)).ravel() for c in self.changes.T]
        return np.stack(columns, axis=1)

    @cached_property
    def _worst(self) -> Array:
        """A bound of the second derivative of the loss."""
        changes = self.fit.scaled(self.changes)
        return np.asarray(self.fit.curvature * (changes.T @ changes))


def optimal_weights(along: Along, most: float | Array | None) -> Array:
    """The weights that minimise f, by Newton's method with step control.

    ``most``: a number bounds the weights to [0, most]; an array bounds their absolute values; None:
    ``LARGEST``.
    """
    w = np.zeros(along.changes.shape[1])
    bounds = _bounds(most, w)
    # At w = 0, which is the start: a training is never worse than without the sync.
    value = along.value(w)

    # A training that diverges ends at its next measurement; until then weights of 0 keep the start.
    numbers = np.array([value, *along.slope, *along.bend.flat])
    if not all_finite(along.changes, numbers):
        return w

    for _ in range(NEWTON_STEPS):
        gradient, hessian = along.derivatives(w)
        if not all_finite(gradient, hessian):
            break
        # A quadratic program with bounds, as weights may neither be negative nor large.
        step = _lowest(gradient, hessian, w, bounds) - w
        expected = float(gradient @ step)
        taken = _shortened(along.value, w, step, value, expected)
        if taken is None:
            break
        w, value, before = *taken, value
        settled = before - value <= SMALL * abs(before)  # not to stop only takes time
        if settled:
            break  # not to stop only takes time

    return w


def _bounds(most: float | Array | None, w: Array) -> tuple[Array, Array]:
    """The least and the largest weights."""
    if isinstance(most, float):
        return np.zeros_like(w), np.full_like(w, most)

    largest = np.broadcast_to(LARGEST if most is None else most, w.shape)
    return -largest, largest


def without_negative(bend: Array) -> Array:
    """The positive semidefinite part: r is convex, but rounding may give negative eigenvalues."""
    if not np.isfinite(bend).all():
        return bend
    curve, axes = np.linalg.eigh(bend)
    return np.asarray((axes * np.maximum(curve, 0.0)) @ axes.T)


def _lowest(gradient: Array, H: Array, w: Array, bounds: tuple[Array, Array]) -> Array:
    """argmin over v of gradient.(v - w) + (v - w).H.(v - w)/2, in the bounds."""
    # In units in which every change is as long: lsq_linear has absolute tolerances.
    size = np.sqrt(np.maximum(np.diag(H), 0.0))
    size += size == 0.0  # where there is no change, any number does
    # damping makes the minimiser unique where two tokens made the same change
    curve, axes = np.linalg.eigh(H / np.outer(size, size) + DAMPING * np.eye(len(w)))
    root = np.sqrt(np.maximum(curve, DAMPING))
    # |A v - b|^2 / 2 is the model, so a solver of least squares minimises it.
    A, b = root[:, None] * axes.T, -(axes.T @ (gradient / size)) / root
    limits = (bounds[0] * size, bounds[1] * size)

    most = 20 + 10 * len(w)  # far more than it takes
    found = scipy.optimize.lsq_linear(A, b + A @ (size * w), limits, method="bvls", max_iter=most)
    if found.status == ENDS_EARLY:
        found.x = _descend(gradient / size, A.T @ A, size * w, found.x, limits)
    return np.asarray(np.clip(found.x / size, *bounds))


def _descend(
    gradient: Array, H: Array, start: Array, v: Array, limits: tuple[Array, Array]
) -> Array:
    """Lower gradient.(v - start) + (v - start).H.(v - start)/2 by sweeps over the coordinates of v,
    in the limits."""
    for _ in range(SWEEPS):
        before = v.copy()
        for i in range(len(v)):
            slope = gradient[i] + H[i] @ (v - start)
            v[i] = min(max(v[i] - slope / H[i, i], limits[0][i]), limits[1][i])
        settled = np.abs(v - before).max() <= SMALL * np.abs(v).max()
        if settled:
            break  # not to stop only takes time
    return v


def _shortened(
    f: Callable[[Array], float], w: Array, step: Array, value: float, expected: float
) -> tuple[Array, float] | None:
    """The step, halved until f falls by a share of the expected decrease; None if it never does."""
    # Armijo's rule.
    for halving in range(HALVINGS):
        share = 0.5**halving
        lower = f(w + share * step)
        enough = value + 1e-4 * share * min(expected, 0.0)
        if lower < enough:
            return w + share * step, lower
    return None
