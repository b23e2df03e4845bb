"""Conjugate tours: each starts at the minimum of f over all combinations of the end of the last one
and the starts of the last M tours,

    theta <- argmin over a, b of f(s + a d + sum_i b_i (s_i - s)),

s the start of this tour, d its change, s_i the starts of the M - 1 tours before. Every client makes
two updates a tour, at its first visit and at its last, so that all blocks count alike. For squared
loss and small steps a tour is then a step of the method of conjugate gradients; with larger steps,
one with the tour as preconditioner. The combination never raises f, and with local steps up to
1/L_k no tour does, so nothing has to be undone.

f at a combination is computed as for optimal sync (``methods/optimal_weights.py``): the loss
from the tokens; r, which must be smooth, from inner products of the models, to which each client
adds its part. (The home client could compute them from those of earlier tours, but the rounding
error would grow with every combination.) Products with d are those of differences: a small step
changes the models by little, and differences of products would lose it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from mtcd.core.arrays import Array
from mtcd.methods.optimal_weights import LARGEST, Along, optimal_weights
from mtcd.methods.tours.acceleration import ACCELERATIONS, Acceleration
from mtcd.methods.tours.instruction import SURVEYED, TOUR, Instruction
from mtcd.methods.tours.rounding import Rounding
from mtcd.methods.tours.survey import FIRST, MANY, Survey, steps_in_words
from mtcd.protocol.model import Fit
from mtcd.theory.stepsize import Smoothness, StepsizeRule

# where f would fall by less than this share, rounding decides on the weights, and they would
# enlarge it: no mix then
NOISE = 1e-10
# the largest weight of d, which may be as small as the step size
FURTHEST = 1e4
# Tokens drift from the models by rounding, up to FURTHEST times its unit. Differences of this share
# of a token or less, of starts and of d, may be drift and not models: weights would enlarge it from
# tour to tour.
DRIFT, ROUNDING = 1e-7, 1e-12
# the share of a gain that errors of the tokens may pretend; until it is no more, errors count
# DOUBTED times as much, up to DOUBTS times
PRETENDED, DOUBTED, DOUBTS = 0.1, 100.0, 6


@ACCELERATIONS.register("conjugate")
class Conjugate(Acceleration):
    """Stores the starts of the last ``depth`` tours: the tokens, and the inner products of the
    models.

    With a ``stepsize`` it is adaptive: the first tour takes this small one and surveys the columns;
    ``survey.py`` chooses those of the others.
    """

    state_fields = (
        "tour",
        "stepsize",
        "depth",
        "_surveying",
        "_plain",
        "_starts",
        "_products",
        "_rounding",
    )
    smooth_only = True
    best_home = True  # all clients then receive the weights soonest
    adapts = True
    adaptive_depth = MANY
    planned = frozenset({"smooth"})

    def __init__(
        self, depth: int, z: Array, penalty: float, fit: Fit, tour: int, stepsize: float
    ) -> None:
        super().__init__(depth, z, penalty, fit, tour)
        self.depth, self.fit, self.stepsize = depth, fit, stepsize
        self._surveying = stepsize > 0
        self._plain = stepsize  # the least step of tours that start at the end of the last
        self._starts = [z.copy()]
        # of the starts; those of the last are complete when its tour ends
        self._products = np.zeros((1, 1))
        self._rounding = Rounding(z)

    @classmethod
    def first_stepsize(cls, smoothness: Smoothness) -> StepsizeRule:
        return StepsizeRule(
            FIRST / float(smoothness.blocks.sum()),
            "that of the first tour, which chooses the others",
        )

    @classmethod
    def chosen(cls, slots: Mapping[str, Any], smoothness: Smoothness) -> str:
        instruction = slots.get(TOUR.name)
        if instruction is None or instruction.survey or not instruction.stepsize:
            return ""
        taken = steps_in_words(instruction.stepsize, smoothness)
        return (
            f"Conjugate tours chose their steps in the first one: {taken} at an update. Messages "
            "have one aggregate; acceleration: twin has two, and needs fewer of them, as a rule."
        )

    def restore(self, state: dict[str, Any]) -> None:
        if "_rounding" not in state:  # of a version that kept no account
            starts = state["_starts"]
            state = {**state, "_rounding": Rounding(starts[-1], starts=len(starts)).state()}
        super().restore(state)

    def count_rounding(self, unit: float) -> None:
        self._rounding.unit = unit

    def opening(self) -> Instruction:
        return Instruction(
            self.tour, keep=1, starts=True, stepsize=self.stepsize, survey=self._surveying
        )

    def end_tour(self, z: Array, objective: float, penalty: float, products: Array) -> Instruction:
        self.tour += 1
        fresh = self._rounding.fresh(self._starts[-1], z)
        along = self._along(z, products)
        if self._surveying:
            self._adapt(along, Survey(*products[-SURVEYED:].tolist()))
        w = sound_weights(along, self._rounding.of_changes(fresh))
        if w[-1] == 1.0:  # the end of the tour itself: small steps alone would make no progress
            self.stepsize = max(self.stepsize, self._plain)
        z[...] = along.aggregate(w)
        weights = (*w[:-1].tolist(), 1.0 - float(w.sum()), float(w[-1]))
        self._store(z, w, fresh)
        return Instruction(
            self.tour, weights, keep=len(self._starts), starts=True, stepsize=self.stepsize
        )

    def _along(self, z: Array, products: Array) -> Along:
        """f along the differences of the starts from the last, and along the change of the tour."""
        kept = len(self._starts)
        *earlier, last = self._starts
        self._products[-1, :] = self._products[:, -1] = products[:kept]
        with_change, itself = products[kept : 2 * kept], products[2 * kept]
        return along_tour(self.fit, last, [*earlier, z], self._products, with_change, itself)

    def _adapt(self, along: Along, survey: Survey) -> None:
        self._surveying = False
        chosen = survey.choose(along, self.stepsize, self.fit.curvature)
        if chosen is not None:
            self.stepsize, self._plain, depth = chosen
            self.depth = min(self.depth, depth)

    def _store(self, start: Array, w: Array, fresh: float) -> None:
        move = (start - self._starts[-1]).ravel()
        self._rounding.add(w, fresh, float(move @ move), self.depth)
        self._starts = [*self._starts, start.copy()][-self.depth :]
        kept = len(self._starts)
        grown = np.pad(self._products, (0, 1))
        self._products = grown[-kept:, -kept:]


def along_tour(
    fit: Fit, start: Array, ends: list[Array], G: Array, with_change: Array, itself: float
) -> Along:
    """f along s_i - s for the earlier starts, and along the change d of the tour.

    ``ends``: the tokens of the earlier starts, and the one at the end of the tour. ``G``: inner
    products of the starts, s last. ``with_change``: of d with s_i - s, and with s.
    """
    among = G[:-1, :-1] - G[:-1, -1:] - G[-1:, :-1] + G[-1, -1]
    bend = np.block(
        [[among, with_change[:-1, None]], [with_change[None, :-1], np.array([[itself]])]]
    )
    return Along.of(fit, start, ends, np.append(G[:-1, -1] - G[-1, -1], with_change[-1]), bend)


def sound_weights(along: Along, errors: Array) -> Array:
    """The weights that minimise f, as far as f falls by more than errors of the tokens can pretend.

    ``errors``: the covariance of those of the changes (``rounding.py``). Along a combination whose
    error is e, f seems to change by the slope of the loss times e, and rises by the curvature times
    |e|^2 / 2. The latter is added to f, more of it until the former is a small share of the gain.
    """
    end = np.zeros(along.changes.shape[1])
    end[-1] = 1.0
    slope = along.fit.gradient(along.start).ravel()
    steepness = float(np.sqrt(slope @ slope / len(slope)))
    worth = along.fit.curvature
    for _ in range(DOUBTS):
        doubted = replace(along, bend=along.bend + worth * errors)
        w = mixing_weights(doubted)
        gain = doubted.value(end) - doubted.value(w)
        pretended = steepness * math.sqrt(max(float(w @ errors @ w), 0.0))
        if not pretended > PRETENDED * gain or w[-1] == 1.0:
            return w
        worth *= DOUBTED
    return end


def mixing_weights(along: Along) -> Array:
    """The weights that minimise f; those of the end of the tour if the decrease is within
    rounding."""
    w = np.zeros(along.changes.shape[1])
    end = w.copy()
    end[-1] = 1.0
    largest, least = np.full(len(w), LARGEST), np.full(len(w), DRIFT)
    largest[-1], least[-1] = FURTHEST, ROUNDING
    size = np.abs(along.start + along.changes[:, -1].reshape(along.start.shape)).max()
    used = np.abs(along.changes).max(axis=0) > least * size
    if not used[-1]:
        return end
    w[used] = optimal_weights(along.among(used), largest[used])
    at_end = along.value(end)
    return w if at_end - along.value(w) > NOISE * abs(at_end) else end
