"""Accelerated roaming, ours: after a tour, the next one starts from a mix of the last. For linear representations.

A tour is a map from the model at its start to the model at its end. The home client sees the token at the ends of
tours, and with it f. It chooses weights c, and

    theta_k <- sum_i c_i theta_k^(i)      over models that client k remembers, and the same sum for the token.

Only c travels, with the token: each client applies it when it is next visited, before its update, and the token
is changed at once, so that it equals the aggregate of the models that the clients are about to hold.
With a token per cluster, each touring its cluster between two syncs, the server does the same over syncs.

How c is chosen: ``conjugate.py`` (the best there is, where r is smooth), ``momentum.py`` (good with l1 too),
``anderson.py``, or a plugin.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from mtcd.arrays import Array
from mtcd.errors import ConfigError
from mtcd.protocol.model import Fit
from mtcd.protocol.state import Stateful
from mtcd.protocol.token import Instruction
from mtcd.registry import Registry
from mtcd.theory.stepsize import Smoothness, StepsizeRule


class Memory(Stateful):
    """A client's side: its parameters at the ends, or the starts, of the last tours."""

    state_fields = ("tour", "snapshots")

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


class Acceleration(Stateful, ABC):
    """The home client's side, or the server's: ``state_fields`` names what of it must survive a restart.

    ``depth`` is the most tours that it may mix, ``z`` the first token, ``penalty`` r of the first model, ``fit`` the
    loss with the labels, ``tour`` the number of the first tour. Above 0, ``stepsize`` is that of the first tour, and
    the acceleration chooses the others: see ``adapts``.

    When clients leave or join it is made anew, at the end of a tour, and ``tour`` counts on: clients that hear
    of a tour without weights forget what was before.
    """

    smooth_only = False
    """Whether it must know r exactly, which it cannot with l1."""
    uses_depth = True
    """Whether it remembers several tours, so that ``method.depth`` means something."""
    default_depth: ClassVar[int] = 5
    """How many it mixes at most, unless ``method.depth`` says."""
    best_home = False
    """Whether tours begin where all other clients are visited soonest, unless ``method.start`` says."""
    adapts = False
    """Whether it chooses step sizes and numbers of local updates itself, where ``method.stepsize`` is auto."""
    adaptive_depth: ClassVar[int] = 5
    """The same where it adapts."""
    planned: ClassVar[frozenset[str]] = frozenset()
    """The objectives for which ``mtcd plan`` tries it: smooth, nonsmooth, or both."""

    def __init__(self, depth: int, z: Array, penalty: float, fit: Fit, tour: int = 0, stepsize: float = 0.0) -> None:
        self.tour = tour

    @classmethod
    def first_stepsize(cls, smoothness: Smoothness) -> StepsizeRule:
        """Where it adapts: the step size of the first tour."""
        raise ConfigError(f"{cls.__name__} does not choose step sizes: give method.stepsize.")

    def opening(self) -> Instruction:
        """What the clients hear in the first tour."""
        return Instruction(self.tour)

    @abstractmethod
    def end_tour(self, z: Array, objective: float, penalty: float, products: Array) -> Instruction:
        """At the end of a tour: what the clients shall do; ``z`` becomes the token of their new models, in place.

        ``products``: what the clients added to the token, as the instruction says.
        """


ACCELERATIONS: Registry[type[Acceleration]] = Registry(
    Acceleration,
    "mtcd.accelerations",
    "mtcd.methods.accelerations",
    "method.acceleration: nothing is called '{}';",
)
