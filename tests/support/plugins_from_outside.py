"""A walk, a loss, an acceleration, a combination rule and a method as somebody outside the package
would write them.

Nothing here is registered: ``test_plugins.py`` does it, by calls and by entry points.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mtcd.methods.method import Method, Stepsize, resolved_stepsize
from mtcd.methods.mtcd.combine import Combine
from mtcd.methods.prices import Prices
from mtcd.methods.svfl.svfl import SVFLClient, SVFLServer
from mtcd.methods.tours.acceleration import Acceleration
from mtcd.methods.tours.instruction import Instruction
from mtcd.models.losses import Loss
from mtcd.network.topology import Network
from mtcd.network.walks import Walk
from mtcd.protocol.batches import Batches
from mtcd.protocol.model import Problem
from mtcd.protocol.party import Parties
from mtcd.theory.stepsize import Smoothness, StepsizeRules, theorem_limit


class SleepyWalk(Walk):
    """Stays half of the time, else to any neighbour."""

    shared = True
    planned = "candidate"

    def next(self, client: int, previous: int, start: int, t: int, hop: int, draw: float) -> int:
        near = self._inside(client)
        return near[int((2 * draw - 1) * len(near))] if draw >= 0.5 and near else client

    def transitions(self, client: int) -> Mapping[int, float]:
        near = self._inside(client)
        share = 0.5 / len(near) if near else 0.0
        return {client: 1 - share * len(near), **dict.fromkeys(near, share)}


@dataclass(frozen=True)
class LogCosh(Loss):
    """l = log cosh(z - y): between squared and absolute errors."""

    curvature = 1.0

    def value(self, z: Any, y: Any) -> float:
        r = np.abs(z - y)
        return float((r + np.log1p(np.exp(-2 * r)) - np.log(2)).sum())

    def gradient(self, z: Any, y: Any) -> Any:
        return np.tanh(z - y)

    def hessian_product(self, z: Any, y: Any, v: Any) -> Any:
        return v / np.cosh(z - y) ** 2


class HeavyBall(Acceleration):
    """Goes on by a fifth of what the last tour changed, always."""

    state_fields = ("tour", "_last", "_ended")
    uses_depth = False
    planned = frozenset({"smooth"})

    def __init__(
        self, depth: int, z: Any, penalty: float, fit: Any, tour: int = 0, stepsize: float = 0.0
    ) -> None:
        super().__init__(depth, z, penalty, fit, tour)
        self._last, self._ended = z.copy(), False

    def end_tour(self, z: Any, objective: float, penalty: float, products: Any) -> Instruction:
        self.tour += 1
        before, self._last = self._last, z.copy()
        if not self._ended:
            self._ended = True
            return Instruction(self.tour, keep=1)
        z += 0.2 * (z - before)
        return Instruction(self.tour, (-0.2, 1.2), keep=1)


class Bolder(Combine):
    """w = 2/(Gamma + 1): between averaging and adding up."""

    planned = frozenset({"crossing"})

    def weight(self, visitors: int, tokens: int) -> float:
        return 2.0 / (tokens + 1)


@dataclass(frozen=True)
class Decaying(Method):
    """SVFL whose step size shrinks from round to round, by the factor ``decay``."""

    decay: float
    local_updates: int = 2
    stepsize: Stepsize = "auto"
    labels: list[str] = field(default_factory=lambda: ["plain"])

    batch = None

    @property
    def kind(self) -> str:
        return "decaying"

    def describe(self) -> str:
        return f"Decaying, {self.decay:g}"

    def with_stepsize(self, stepsize: float) -> Decaying:
        return replace(self, stepsize=stepsize)

    def stepsize_at(self, t: int, batches: Batches) -> float:
        return resolved_stepsize(self) * self.decay**t

    def stepsize_rules(self, smoothness: Smoothness) -> StepsizeRules:
        return StepsizeRules(theorem_limit(smoothness, 1, self.local_updates))

    def prices(self, network: Network, tokens: int = 1) -> Prices:
        return Prices(uplinks=network.size, downlinks=network.size)

    def parties(self, problem: Problem, network: Network, seed: int) -> Parties:
        batches = Batches(problem.samples, None, seed)
        made: Any = self
        clients = [SVFLClient(k, problem.client(k), made, batches) for k in range(network.size)]
        server = SVFLServer(network, batches.zeros(problem.outputs), batches)
        return Parties(clients, server, server.start_round())
