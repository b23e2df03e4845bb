"""Accelerated roaming, ours: after a tour, the next one starts from a mix of the last. For linear representations.

A tour is a map from the model at its start to the model at its end. The home client sees the token at the ends of
tours, and with it f. It chooses weights c, and

    theta_k <- sum_i c_i theta_k^(i)      over models that client k remembers, and the same sum for the token.

Only c travels, with the token: each client applies it when it is next visited, before its update, and the token
is changed at once, so that it equals the aggregate of the models that the clients are about to hold.
With a token per cluster, each touring its cluster between two syncs, the server does the same over syncs.

How c is chosen: ``conjugate.py`` (the best there is, where r is smooth), ``momentum.py`` (good with l1 too) and
``anderson.py``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from mtcd.protocol.keeping import Keeper
from mtcd.protocol.token import Instruction

Array = NDArray[np.float64]


class Memory(Keeper):
    """A client's side: its parameters at the ends, or the starts, of the last tours."""

    kept = ("tour", "snapshots")

    def __init__(self) -> None:
        self.tour = 0
        self.snapshots: list[Array] = []

    def catch_up(self, theta: Array, instruction: Instruction) -> Array:
        """theta_k at the start of this tour; the same at every further visit in it."""
        if instruction.tour == self.tour:
            return theta
        new = self.preview(theta, instruction)
        kept = [*self.snapshots, new if instruction.starts else theta]
        self.tour, self.snapshots = instruction.tour, kept[len(kept) - instruction.keep :]
        return new

    def preview(self, theta: Array, instruction: Instruction) -> Array:
        """What ``catch_up`` will return."""
        if instruction.tour == self.tour or not instruction.weights:
            return theta
        last = [*self.snapshots, theta][-len(instruction.weights) :]
        base = last[-2:][0]  # weights sum to 1: differences from one of them round less where weights are large
        return np.asarray(base + sum(c * (one - base) for c, one in zip(instruction.weights, last, strict=True)))


class Acceleration(Keeper, ABC):
    """The home client's side, or the server's. ``z`` is the first token, ``tour`` the number of the first tour.

    When clients leave or join it is made anew, at the end of a tour, and ``tour`` counts on: clients that hear
    of a tour without weights forget what was before.
    """

    smooth_only = False
    """Whether it must know r exactly, which it cannot with l1."""

    def __init__(self, tour: int) -> None:
        self.tour = tour

    def opening(self) -> Instruction:
        """What the clients hear in the first tour."""
        return Instruction(self.tour)

    @abstractmethod
    def end_tour(self, z: Array, objective: float, penalty: float, products: Array) -> Instruction:
        """At the end of a tour: what the clients shall do; ``z`` becomes the token of their new models, in place.

        ``products``: what the clients added to the token, as the instruction says.
        """
