"""The home client of twin tours: what it keeps, and the order of the next tour.

    theta <- argmin over w of f(s + sum_i w_i d_i)

s is the start of the tour, d_i run over its two directions and those of the last tours. Both
directions of a tour are kept by themselves: their best combination alone would lose what they say
of later tours. The loss follows from the tokens' changes X d_i, the penalty from inner products.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mtcd.core.arrays import Array
from mtcd.methods.subspace import best_weights
from mtcd.methods.tours.conjugate import (
    DOUBTED,
    DOUBTS,
    NOISE,
    PRETENDED,
    ROUNDING,
)
from mtcd.methods.tours.instruction import SURVEYED
from mtcd.methods.tours.rounding import HOPS, UNIT
from mtcd.methods.tours.survey import Survey
from mtcd.methods.tours.twin.slots import Order
from mtcd.protocol.model import Fit
from mtcd.protocol.state import Stateful

SHORT = 0.1
"""t L of the short copy, where the other one is solved: (H_k + 10 L I)^-1 g_k."""
LONE = 0.01
"""t L of the short copy where it is alone."""
# short steps alone: where the loss is about as curved as it can be, ...
CURVED = 0.8
# ... l2 is at most this share of the mean squared norm of columns, times d/N - 1, ...
WEAK = 0.03
# ... and columns do not share what a part of the clients has in common, as neighbours in a table
SOME = 0.3


@dataclass(frozen=True)
class Tour:
    """What came back from a tour."""

    ends: tuple[Array, ...]
    """The aggregates, the solved one first."""
    products: Array


class Home(Stateful):
    """The state of the home client.

    Parameters
    ----------
    depth
        M, the most directions that are kept.
    z
        The first token.
    fit
        The loss with the labels.
    tour
        The number of the first tour.
    first
        The step of the short copy in the first tour.
    """

    state_fields = ("tour", "solves", "surveying", "reach", "start", "changes", "gram", "errors")

    def __init__(self, depth: int, z: Array, fit: Fit, tour: int, first: float) -> None:
        self.depth, self.fit = depth, fit
        self.tour, self.reach = tour, first
        self.solves = self.surveying = True
        self.start = z.copy()
        self.changes: list[Array] = []
        """X d_i of the directions kept."""
        self.gram = np.zeros((0, 0))
        """The penalty's inner products of the directions kept."""
        self.errors: list[float] = []
        """The squared error of each change."""

    def opening(self) -> Order:
        """The order of the first tour."""
        return Order(self.tour, (), 0, self.reach, survey=True)

    def end_tour(self, tour: Tour) -> tuple[Order, Array]:
        """The order of the next tour, and the token from which it starts."""
        self.tour += 1
        slopes = self._add(tour)
        new = len(tour.ends)
        if self.surveying:
            self._choose_steps(Survey(*tour.products[-SURVEYED:].tolist()), tour, slopes)

        w = self._weights(slopes, new)
        moved = np.zeros_like(self.start)
        for weight, change in zip(w, self.changes, strict=True):
            if weight:  # a change that is not used may be as large as it likes
                moved += weight * change
        self.start = self.start + moved
        # of what was solved nothing is kept, where nothing is solved any more
        self._keep(self.depth if self.solves or new == 1 else 1)
        weights = tuple(w.tolist())
        order = Order(self.tour, weights, len(self.changes), self.reach, self.solves)
        return order, self.start.copy()

    def _add(self, tour: Tour) -> Array:
        """Keep the directions of a tour; returns the inner products of theta with all of them."""
        new, kept = len(tour.ends), len(self.changes)
        for end in tour.ends:
            self.changes.append(end - self.start)
            self.errors.append(HOPS * UNIT**2 * float(np.vdot(end, end)) / 3.0)

        rows = tour.products[: (1 + new) * kept].reshape(1 + new, kept)
        rest = tour.products[(1 + new) * kept :]
        among = np.zeros((new, new))
        among[np.triu_indices(new)] = rest[new : new + new * (new + 1) // 2]
        among = among + np.triu(among, 1).T
        self.gram = np.block([[self.gram, rows[1:].T], [rows[1:], among]])
        return np.concatenate([rows[0], rest[:new]])

    def _keep(self, most: int) -> None:
        """Keep the last directions only."""
        self.changes = self.changes[-most:]
        self.errors = self.errors[-most:]
        self.gram = self.gram[-most:, -most:]

    def _choose_steps(self, survey: Survey, tour: Tour, slopes: Array) -> None:
        """The steps of the short copies, from the curvature along their first direction, and
        whether they are alone."""
        self.surveying = False
        change, bend = self.changes[-1].ravel(), float(self.gram[-1, -1])
        slope = float(change @ self.fit.gradient(self.start).ravel()) + float(slopes[-1])
        moved = -2.0 * self.reach * slope  # |d|^2: two updates of d_k = -first * gradient
        if not (np.isfinite(moved) and moved > 0.0 and survey.squares > 0.0):
            return

        scaled = self.fit.scaled(change)
        norm = float(scaled @ scaled) / moved
        L = self.fit.curvature * norm + bend / moved
        self.reach = SHORT / L
        if self._suffices(survey, tour.ends[0], norm, bend / moved):
            self.solves, self.reach = False, LONE / L

    def _suffices(self, survey: Survey, solved: Array, norm: float, l2: float) -> bool:
        """Whether short steps alone are better, as theta has to stay in the row space of X."""
        wide = survey.columns / len(solved) - 1.0
        mean = self.fit.curvature * survey.squares / survey.columns
        if survey.uneven or not l2 < WEAK * wide * mean:
            return False

        # a loss that is flat where it is small, as those of classes, moves on with every tour
        bend = self.fit.hessian_product(solved, np.ones_like(solved))
        bound = self.fit.scaled(np.ones_like(solved)) ** 2 * self.fit.curvature
        if not float(bend.sum()) > CURVED * float(bound.sum()):
            return False
        across = norm / survey.norms
        return not (survey.related(norm, len(solved)) and across < SOME)

    def _weights(self, slopes: Array, new: int) -> Array:
        """The weights with which f is least, of all directions; never above the start and the ends
        of the tour."""
        ends = self._ends(new)
        values = [self._value(slopes, w) for w in ends]
        if not np.isfinite(values).all():  # a training that diverges ends at its measurement
            return ends[0]

        lowest = ends[int(np.argmin(values))]
        sizes = np.array([float(np.abs(change).max()) for change in self.changes])
        used = sizes > ROUNDING * max(float(np.abs(self.start).max()), sizes.max())
        if not self.solves and new == 2:
            used[0] = False  # what was solved leaves the row space
        if not used.any():
            return lowest

        w = self._mix(slopes, used, min(values))
        gained = min(values) - self._value(slopes, w)
        return w if gained > NOISE * abs(min(values)) else lowest

    def _ends(self, new: int) -> list[Array]:
        """The start, and the ends of the tour that may be the next one."""
        count = len(self.changes)
        found = [np.zeros(count)]
        for place in range(count - new, count):
            if self.solves or place == count - 1:
                end = np.zeros(count)
                end[place] = 1.0
                found.append(end)
        return found

    def _mix(self, slopes: Array, used: Array, known: float) -> Array:
        """The minimum over the directions in use, as far as f falls by more than errors of the
        changes can pretend: see ``sound_weights`` of conjugate tours."""
        images = [change for change, one in zip(self.changes, used, strict=True) if one]
        errors = np.array(self.errors)[used]
        gradient = self.fit.gradient(self.start).ravel()
        steepness = float(np.sqrt(gradient @ gradient / len(gradient)))
        gram = np.zeros((len(images) + 1, len(images) + 1))
        gram[0, 1:] = gram[1:, 0] = slopes[used]
        worth = self.fit.curvature
        for _ in range(DOUBTS):
            gram[1:, 1:] = self.gram[np.ix_(used, used)] + np.diag(worth * errors)
            w = np.zeros(len(self.changes))
            w[used] = best_weights(self.fit, self.start, images, gram)
            gain = known - self._value(slopes, w)
            pretended = steepness * math.sqrt(float(errors @ w[used] ** 2))
            if not pretended > PRETENDED * gain:
                return w
            worth *= DOUBTED
        return np.zeros(len(self.changes))

    def _value(self, slopes: Array, w: Array) -> float:
        """f at these weights, but for a constant."""
        moved = np.zeros_like(self.start)
        for weight, change in zip(w, self.changes, strict=True):
            if weight:
                moved += weight * change
        penalty = float(slopes @ w + w @ self.gram @ w / 2)
        return self.fit.objective(self.start + moved, penalty)
