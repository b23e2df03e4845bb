"""Accelerated tours, ours: each tour starts from a combination of the last ones. For linear
representations.

A tour maps the model at its start to the model at its end. The home client has the token, and with
it f, at the end of each tour. It chooses weights c, and

    theta_k <- sum_i c_i theta_k^(i)      over models that client k stores, and the same sum for the
    token.

Only c travels, with the token: each client applies it at its next visit, before its update. The
token is changed at once, so it equals the aggregate of the models that the clients will then hold.
With a token per cluster, each touring its cluster between two syncs, the server does the same over
syncs.

The choice of c: ``conjugate.py`` (optimal, for smooth r), ``momentum.py`` (good with l1 too),
``anderson.py``, or a plugin.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import ClassVar

import numpy as np

from mtcd.core.arrays import Array
from mtcd.core.errors import ConfigError
from mtcd.methods.method import resolved_stepsize
from mtcd.methods.mtcd.combine import RULES
from mtcd.methods.mtcd.features import ACCELERATIONS, AccelerationKind, Clusters, Roles
from mtcd.methods.mtcd.mtcd import MTCD
from mtcd.methods.mtcd.roaming import (
    Roaming,
    StartAt,
    plan_roaming,
    through_changes,
    tour_length,
)
from mtcd.methods.tours.instruction import Instruction
from mtcd.network.topology import Network
from mtcd.network.walks import WALKS
from mtcd.protocol.model import Fit
from mtcd.protocol.state import Stateful
from mtcd.protocol.transports.transport import TRANSPORTS
from mtcd.theory.stepsize import Smoothness, StepsizeRule

__all__ = ["ACCELERATIONS", "Acceleration", "Memory"]


class Memory(Stateful):
    """The state of a client: its parameters at the ends, or the starts, of the last tours."""

    state_fields = ("tour", "snapshots")

    def __init__(self) -> None:
        self.tour = 0
        self.snapshots: list[Array] = []

    def apply(self, theta: Array, instruction: Instruction) -> Array:
        """theta_k at the start of this tour; theta_k unchanged at further visits in it."""
        if instruction.tour == self.tour:
            return theta
        new = self.preview(theta, instruction)
        snapshots = [*self.snapshots, new if instruction.starts else theta]
        self.tour, self.snapshots = instruction.tour, snapshots[len(snapshots) - instruction.keep :]
        return new

    def preview(self, theta: Array, instruction: Instruction) -> Array:
        """The result of ``apply``, without its effect."""
        if instruction.tour == self.tour or not instruction.weights:
            return theta
        last = [*self.snapshots, theta][-len(instruction.weights) :]
        # weights sum to 1: differences from one of them round less where weights are large
        base = last[-2:][0]  # but for rounding, any of them gives the same
        change: Array | int = 0
        for c, one in zip(instruction.weights, last, strict=True):
            change = change + c * (one - base)
        return np.asarray(base + change)


class Acceleration(Stateful, AccelerationKind):
    """The state of the home client, or of the server; ``state_fields`` names what must survive a
    restart.

    ``depth`` is the most tours that it may combine, ``z`` the first token, ``penalty`` r of the
    first model, ``fit`` the loss with the labels, ``tour`` the number of the first tour. Above 0,
    ``stepsize`` is that of the first tour, and the acceleration chooses the others: see ``adapts``.

    When clients leave or join, a new acceleration starts at the end of the tour, and ``tour``
    counts on: an instruction without weights makes the clients drop their snapshots.
    """

    smooth_only = False
    """Whether it needs r exactly, which is not available with l1."""
    default_depth: ClassVar[int] = 5
    """The default of ``method.depth``."""
    best_home = False
    """Whether tours begin, by default, at the client from which all others are visited soonest."""
    adaptive_depth: ClassVar[int] = 5
    """The default of ``method.depth`` if it adapts."""

    def __init__(
        self,
        depth: int,
        z: Array,
        penalty: float,
        fit: Fit,
        tour: int = 0,
        stepsize: float = 0.0,
    ) -> None:
        self.tour = tour

    @classmethod
    def first_stepsize(cls, smoothness: Smoothness) -> StepsizeRule:
        """The step size of the first tour, if it adapts."""
        raise ConfigError(f"{cls.__name__} does not choose step sizes: give method.stepsize.")

    @classmethod
    def check_settings(cls, method: MTCD) -> None:
        if not WALKS[method.walk].repeats:
            raise ConfigError(
                "method.acceleration needs a walk that repeats itself: set walk: tour."
            )

        if method.hops is None:
            return
        if not RULES[method.combine_rule].one_visitor or method.batch is not None:
            raise ConfigError(
                "method.acceleration of mtcd is for a token per cluster and the full batch."
            )

    @classmethod
    def most_starts(cls, method: MTCD) -> int:
        if method.depth is not None:
            return method.depth
        return cls.adaptive_depth if method.chooses_steps else cls.default_depth

    @classmethod
    def roaming(
        cls, method: MTCD, network: Network, tokens: int, clusters: Clusters, seed: int
    ) -> Roaming:
        start = method.start
        if start is None and clusters is not None:
            start = [cluster[0] for cluster in clusters]  # every tour starts at the same client

        roaming = plan_roaming(network, tokens, clusters, method.walk, start, seed, method.hops)
        if cls.best_home and method.start is None:
            homes = [StartAt([walk.best_start()]) for walk in roaming.walks]
            roaming = replace(roaming, starts=homes)
        roaming = through_changes(roaming, network, clusters, whole_tours=True)

        if method.hops is not None:
            longest = max(map(tour_length, roaming.all_walks()))
            if method.hops < longest:
                raise ConfigError(
                    f"method.hops is {method.hops}, but the longest tour of a cluster has "
                    f"{longest}: give that."
                )
        return roaming

    @classmethod
    def roles(cls, method: MTCD) -> Roles:
        from mtcd.methods.tours.parties import Tours  # which imports this module

        first = resolved_stepsize(method) if method.adaptive else 0.0
        unit = TRANSPORTS[method.transport].unit
        return Tours(method.acceleration or "", cls, cls.most_starts(method), first, unit)

    def count_rounding(self, unit: float) -> None:
        """Called at the start where a transport rounds: it is wrong by this share of every change.

        Most accelerations need not know.
        """

    def opening(self) -> Instruction:
        """The instruction of the first tour."""
        return Instruction(self.tour)

    @abstractmethod
    def end_tour(self, z: Array, objective: float, penalty: float, products: Array) -> Instruction:
        """The instruction of the next tour, at the end of one; ``z`` becomes the token of the new
        models, in place.

        ``products``: the sums that the clients added to the token, as the last instruction
        requested.
        """
