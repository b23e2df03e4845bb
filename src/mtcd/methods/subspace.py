"""The minimum of f over the span of a few directions, computed by a client with the labels.

    min over w of  loss(Z + sum_i w_i X d_i) + r(theta + sum_i w_i d_i)

The loss follows from the products X d_i, the regulariser, which is quadratic, from the inner
products of theta and the directions. Newton's method, with one unknown per direction, in
coordinates in which no second derivative is above 1: for squared loss it is exactly 1 there, and
one step is enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mtcd.core.arrays import Array, all_finite
from mtcd.protocol.model import Fit

NEWTON_STEPS = 30
# the least curvature that a Newton step relies on, as a share of the largest possible one: where
# the loss is linear or flat, as Huber's is far out, there may be none
LEAST_CURVATURE = 1e-3
# of a Newton step, halved each time: 2^-12 < LEAST_CURVATURE, and a step that short always lowers f
TRIES = 13
ARMIJO = 1e-4
EXACT = 1e-9  # a matter of taste; stop when a further step promises this share of what was gained
# where f would fall by less than this share of it, rounding decides on the weights: no step then
NOISE = 1e-14
# a direction is left out if it is another one but for this share of its squared length
DEPENDENT = 1e-13


@dataclass(frozen=True, eq=False)
class Subspace:
    """f around a point, as a function of coordinates u."""

    fit: Fit
    aggregate: Array
    moves: Array
    """The change of the aggregate by each coordinate: one column each."""
    penalty: float
    slope: Array
    """The derivative of r in each coordinate."""
    bend: Array
    """The second derivative of r."""

    def at(self, u: Array) -> Array:
        """The aggregate at u."""
        return np.asarray(self.aggregate + (self.moves @ u).reshape(self.aggregate.shape))

    def value(self, u: Array) -> float:
        """f at the coordinates u, from the aggregate there and the quadratic part of r."""
        return self.fit.objective(
            self.at(u), self.penalty + float(self.slope @ u + u @ self.bend @ u / 2)
        )

    def newton_step(self, u: Array) -> tuple[Array, float]:
        """The Newton step, and the slope of f along it."""
        Z = self.at(u)
        gradient = self.moves.T @ self.fit.gradient(Z).ravel() + self.slope + self.bend @ u
        products = []
        for move in self.moves.T:
            products.append(self.fit.hessian_product(Z, move.reshape(Z.shape)).ravel())
        curvature, axes = np.linalg.eigh(self.moves.T @ np.stack(products, axis=1) + self.bend)
        # Where the curvature is tiny, as far out on Huber's loss, a Newton step would be endless.
        step = -axes @ ((axes.T @ gradient) / np.maximum(curvature, LEAST_CURVATURE))
        return step, -float(gradient @ step)


def best_weights(fit: Fit, aggregate: Array, products: Sequence[Array], gram: Array) -> Array:
    """The weights of the directions at which f is least; all 0 where f is as low as rounding lets
    it be.

    ``products`` are X d_i; ``gram`` holds the regulariser's inner products of theta, d_1, d_2, ...
    """
    V = np.stack([product.ravel() for product in products], axis=1)
    # A training that diverges ends at its next measurement; until then nothing moves.
    if not all_finite(V, gram):
        return np.zeros(len(products))
    # first make the directions as long as 1, so that no square overflows or vanishes
    size = np.maximum(np.abs(V).max(axis=0), np.sqrt(np.diag(gram)[1:]))
    # Infinite: a direction that is 0 gets a weight of 0, and not 0/0.
    size[size == 0.0] = np.inf
    V, slope, bend = V / size, gram[0, 1:] / size, gram[1:, 1:] / size / size[:, None]
    W = fit.scaled(V)
    # In coordinates of this basis the worst curvature is 1 in every direction, whatever the scales
    # of the directions were.
    basis = _whitening(fit.curvature * (W.T @ W) + bend)
    space = Subspace(
        fit, aggregate, V @ basis, gram[0, 0] / 2, basis.T @ slope, basis.T @ bend @ basis
    )
    return np.asarray(basis @ _lowest(space) / size)


def _whitening(W: Array) -> Array:
    """Columns in which W is the identity; directions that depend on others or are 0 are left
    out."""
    # Scaled first: what counts as dependent must not depend on lengths.
    size = np.sqrt(np.diag(W))
    size[size == 0.0] = np.inf
    value, axes = np.linalg.eigh(W / np.outer(size, size))
    sound = value > DEPENDENT
    return np.asarray((axes[:, sound] / np.sqrt(value[sound])) / size[:, None])


def _lowest(space: Subspace) -> Array:
    u = np.zeros(len(space.slope))
    if not len(u):
        return u
    start = value = space.value(u)
    for _ in range(NEWTON_STEPS):
        step, promised = space.newton_step(u)
        # Relative to what was gained so far, and never below rounding.
        least = max(EXACT * (start - value), np.finfo(float).eps * abs(value))
        settled = not promised > least  # not to stop only takes time; also true of NaN
        if settled:
            break
        for halving in range(TRIES):
            share = 0.5**halving
            lower = space.value(u + share * step)
            enough = value - ARMIJO * share * promised
            if lower < enough:
                u, value = u + share * step, lower
                break
        else:
            break
    if start - value <= NOISE * abs(start):
        return np.zeros_like(u)
    return u
