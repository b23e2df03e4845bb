"""What the key holder of sealed tours computes: the scores Z, and the best mix of the last tours.

With a loss l(z, y) = a(z) - y z, f along the mix needs of the labels only the sums <y, Z> and <y,
d> of the scores and of the change d of a tour; of the parameters only the penalty's inner products.
Everything is updated by increments: each new move is a combination of d and of earlier moves, with
the same weights at the clients.

A server knows these sums up to a rounding, and not of all tours (``label_sums.py``). A tour lowers
f by itself, so that a mix is needed only where it is sure to be better: where it is not, the next
tour starts at the end of the last.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from mtcd.core.arrays import Array
from mtcd.methods.subspace import best_weights
from mtcd.models.glm.fit import LabelFit
from mtcd.models.losses import Loss
from mtcd.privacy.sealed.bfv.cipher import Integers
from mtcd.privacy.sealed.scales import power_below
from mtcd.protocol.state import Stateful

TRUSTED = 1e-4
"""The share of f(0) that rounded sums over labels may seem to lower f by: larger weights cost as
much as they gain."""
CAUTION = 2.0
"""By so many times the error of its sums over labels must a mix be better than the end of the
tour."""
MARGIN = 3.0
"""So many times the error of <y, Z> is f above its estimate, at most."""
FEIGNED = 1e-6
"""The share of f by which rounding errors may seem to lower it."""


class Steering(Stateful):
    """The scores at the start of the tour, the moves from tour to tour, and sums about both."""

    state_fields: ClassVar[tuple[str, ...]] = (
        "scores",
        "moves",
        "products",
        "labels",
        "doubts",
        "noise",
        "weights",
        "stretch",
        "constant",
    )

    def __init__(
        self,
        loss: Loss,
        samples: int,
        depth: int,
        start: float,
        constant: float,
        resolution: float = 0.0,
        clients: int = 1,
    ) -> None:
        """Begin at 0.

        Parameters
        ----------
        loss : Loss
            The loss.
        samples : int
            N.
        depth : int
            The most moves that are kept.
        start : float
            f(0) or more.
        constant : float
            At least the part of f that depends on the labels alone.
        resolution : float
            Sums over labels are rounded to multiples of it; 0 if they are exact.
        clients : int
            K.
        """
        self.resolution, self.clients = resolution, clients
        self.fit, self.start, self.constant = LabelFit(loss, np.zeros(samples)), start, constant
        self.depth = depth
        self.scores = np.zeros(samples)
        self.moves: list[Array] = []
        self.products = np.zeros((1, 1))
        """The penalty's inner products of theta and the moves."""
        self.labels = np.zeros(1)
        """<y, Z>, and <y, .> of the moves' scores."""
        self.doubts = np.zeros((1, 1))
        """The squares and products of the largest errors of these sums, from rounding."""
        self.noise = np.zeros((0, 0))
        """The covariance of the rounding errors in the scores of the moves."""
        self.weights = np.zeros(0)
        """Of the mix from which the tour starts: of the last change, and of the moves before."""

        self.stretch = 1.0
        """The factor by which the last move is kept."""

    def released(self, values: Integers, client: int, t: int) -> Integers:
        """What the key holder answers, of a masked gradient that it has decrypted in tour t."""
        return values

    def slope(self) -> Array:
        """a'(Z): the derivative of the loss but for the labels."""
        return self.fit.gradient(self.scores)

    def objective(self) -> float:
        """f, once ``constant`` is known exactly."""
        return (
            self.fit.objective(self.scores, self.products[0, 0] / 2 - self.labels[0])
            + self.constant
        )

    def most_objective(self) -> float:
        """f, or more, where the sums over labels are rounded."""
        return self.objective() + MARGIN * float(np.sqrt(self.doubts[0, 0]))

    def correct(self, change: Array, sums: Array, label_sum: float | None) -> None:
        """End a tour in which the clients took off their rounding errors (see ``block.py``): move
        to its end."""
        P = self._measured(sums)
        if label_sum is None:
            label_sum = self._least_label_sum(change, P)

        # Its errors were just taken off: as a direction, weights would bring them back.
        # this tour is no direction of later mixes: only theta changes, to theta + change
        T = np.delete(np.eye(len(P)), 1, axis=0)  # theta + change, and the moves before
        T[0, 1] = 1.0
        self.weights = np.eye(len(self.moves) + 1)[0]
        self.scores = self.scores + change
        self.products, self.labels = T @ P @ T.T, self.labels + label_sum * self.weights
        self.doubts = T @ self._doubts() @ T.T

    def end_tour(
        self, change: Array, sums: Array, label_sum: float | None, rounding: float
    ) -> None:
        """Choose the weights with which f is least, and move there. f never rises: all 0 stay where
        they are.

        ``change``: of the scores in the tour; ``sums``: the penalty's inner products, as
        ``SealedBlock`` adds them up; ``label_sum``: <y, change>, None if it is not told;
        ``rounding``: the variance of the rounding errors in the change.
        """
        m = len(self.moves)
        P = self._measured(sums)
        directions, noise, doubts = [change, *self.moves], np.zeros((m + 1, m + 1)), self._doubts()
        noise[0, 0], noise[1:, 1:] = rounding, self.noise

        # without the sum f is not known along the change, but it is lower at its end
        if label_sum is None:
            # The end of the tour: it lowers f whatever the labels are.
            y = np.insert(self.labels, 1, self._least_label_sum(change, P))
            w = np.eye(m + 1)[0]
        else:
            y = np.insert(self.labels, 1, label_sum)
            w = self._best(directions, P, y, noise, doubts[1:, 1:])
        self.weights = w
        # All 0: every client stays where it was, and the next tour begins there.
        if not w.any():
            return
        move = np.asarray(sum(a * v for a, v in zip(w, directions, strict=True)))
        self.scores = self.scores + move
        # late moves are tiny: stretched, their inner products are large against their rounding
        self.stretch = self._stretch(move, float(w @ P[1:, 1:] @ w))

        # theta + move, the move, and the moves before, as combinations of theta, change, moves
        T = np.zeros((m + 2, m + 2))
        T[0, 0], T[0, 1:], T[1, 1:] = 1.0, w, self.stretch * w
        T[2:, 2:] = np.eye(m)
        # One entry for theta, and one for each move that is kept.
        kept = 1 + self.depth  # at most
        self.products = (T @ P @ T.T)[:kept, :kept]
        self.labels = (T @ y)[:kept]
        self.doubts = (T @ doubts @ T.T)[:kept, :kept]
        self.noise = (T[1:, 1:] @ noise @ T[1:, 1:].T)[: kept - 1, : kept - 1]
        self.moves = [self.stretch * move, *self.moves][: self.depth]

    def _doubts(self) -> Array:
        """The errors of the sums over labels: of <y, Z>, of the change, which is half of a step at
        most, of moves."""
        doubts = np.insert(np.insert(self.doubts, 1, 0.0, axis=0), 1, 0.0, axis=1)
        # Half a step of the rounding is the largest error of one sum.
        doubts[1, 1] = (self.resolution / 2) ** 2
        return doubts

    def _least_label_sum(self, change: Array, P: Array) -> float:
        """At least <y, change>, but for rounding, where it is not told: f is at most what follows
        from it.

        Client k, at the derivative g_k, moves to where X_k^T (g_k + c D_k) + r'(theta_k) is 0. Sums
        over all clients give <g, D> = -c/2 (|D|^2 + sum_k |D_k|^2) - <theta, change> - <change,
        change>, with the penalty's inner products. The sum over k is not known here, but |D|^2 / K
        at least.
        """
        curvature, squared = self.fit.curvature, float(change @ change)
        lowered = curvature / 2 * squared * (1 + 1 / self.clients)
        return float(self.slope() @ change) + lowered + float(P[0, 1] + P[1, 1])

    def _measured(self, sums: Array) -> Array:
        """The penalty's inner products of theta, change and moves: as measured, and of older moves
        as known before.

        Those of the latest move are measured, not computed from older ones, whose rounding errors
        it would enlarge.
        """
        # Measured by the clients in this tour, exactly but for integers.
        m = len(self.moves)
        with_theta, with_latest, with_change = (
            sums[: m + 1],
            sums[m + 1 : 2 * m + 1],
            sums[2 * m + 1 : 3 * m + 3],
        )
        known = self.products.copy()
        known[0, :] = known[:, 0] = with_theta
        if m:
            known[1, 1:] = known[1:, 1] = with_latest
        return np.insert(
            np.insert(known, 1, np.delete(with_change, 1), axis=0), 1, with_change, axis=1
        )

    def _stretch(self, move: Array, penalty: float) -> float:
        """The factor, a power of two, by which a move is kept: the size at which it changes f by
        about f(0)."""
        # Whatever is larger decides how far f moves: the loss or the penalty.
        largest = max(self.fit.curvature * float(move @ move), penalty)
        if largest <= 0:
            return 1.0
        return power_below(np.sqrt(self.start / largest))

    def _best(
        self, directions: list[Array], P: Array, y: Array, noise: Array, doubts: Array
    ) -> Array:
        """The weights of the change and the moves.

        The scores of a direction contain rounding errors, which the clients' parameters do not
        have. Large weights would make use of them: a random direction lowers f by |g|^2 / (2 N c),
        here but not at the clients. So they are made to cost as much curvature as limits that to a
        share ``FEIGNED`` of f. Errors of the sums over labels are limited in the same way, to a
        share ``TRUSTED`` of f(0). Where f then falls no further than at the end of the tour, or not
        surely further, the next one starts there.
        """
        # To stay, and to go to the end of the tour: what a mix has to beat.
        w, end = np.zeros(len(directions)), np.eye(len(directions))[0]
        at_start, at_end = self._value(w, directions, P, y), self._value(end, directions, P, y)
        derivative = 2 * self.fit.curvature * max(at_start + self.constant, 0.0)  # |g|^2 at most
        gram = _without_labels(P, y)
        # As if the directions were more curved than they are, by what errors could feign.
        gram[1:, 1:] += self.fit.curvature / FEIGNED * noise + doubts / max(
            TRUSTED * self.start, 1e-280
        )
        w = best_weights(self.fit, self.scores, directions, gram)
        # How much the comparison may be wrong, from the sums over labels.
        doubt = CAUTION * np.sqrt(max(0.0, (w - end) @ doubts @ (w - end)))
        if w.any() and self._value(w, directions, P, y) + doubt < at_end:
            return w
        # A tour lowers f, but its scores are rounded: a rise within that is no rise.
        allowed = np.sqrt(derivative * noise[0, 0]) + CAUTION * np.sqrt(doubts[0, 0])
        if at_end <= at_start + allowed:
            return np.asarray(end)
        return np.zeros(len(directions))  # rounding has made the tour worse: do without it

    def _value(self, w: Array, directions: list[Array], P: Array, y: Array) -> float:
        """f at these weights."""
        v = np.insert(w, 0, 1.0)
        scores = self.scores + sum(a * d for a, d in zip(w, directions, strict=True))
        return self.fit.objective(np.asarray(scores), float(v @ P @ v / 2 - y @ v))


def _without_labels(P: Array, y: Array) -> Array:
    """The inner products with the sums over labels taken off, such that half of <theta, theta> is
    r(theta) - <y, Z>.

    Those of the directions are made positive semidefinite, which rounding may have undone.
    """
    gram = P.copy()
    # Projected: the solver needs a convex function.
    values, axes = np.linalg.eigh(P[1:, 1:])
    gram[1:, 1:] = (axes * np.maximum(values, 0.0)) @ axes.T
    gram[0, 1:] -= y[1:]
    gram[1:, 0] -= y[1:]
    gram[0, 0] -= 2 * y[0]
    return gram
