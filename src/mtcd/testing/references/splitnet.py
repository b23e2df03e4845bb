"""The paper's two algorithms for split networks, line by line, and SVFL: no messages, no ledger, no
optimisation.

Read it beside the paper. Tests compare the parties of ``models/splitnet/parties.py`` with it: the
weights must be the same. Modules serve as functions, h_k(theta_k; x); weights are plain tensors by
name, and nothing is changed in place. A token holds all K representations, and H is recomputed from
them on every use. For modules without dropout and batch norm. Line numbers are those of the paper.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.func import functional_call

from mtcd.protocol.batches import Batches

Weights = dict[str, Tensor]
Parts = list[Tensor]
NextClient = Callable[[int, int], int]
NOWHERE = -1


class Walking(Protocol):
    """Starts and next clients of tokens: see ``methods/mtcd/roaming.py``."""

    def first(self, token: int, iteration: int) -> int:
        """k ~ P_gamma, the client where token gamma starts."""

    def next(self, token: int, t: int, hop: int, client: int, previous: int) -> int:
        """The client that follows ``client``."""


@dataclass(frozen=True)
class PartyWeights:
    """The parameters of one party; with momentum, the velocity of each too."""

    weights: Weights
    velocity: Weights

    @staticmethod
    def of(module: nn.Module) -> PartyWeights:
        """The parameters of a module, with zero velocity."""
        weights = {
            name: p.detach().clone() for name, p in module.named_parameters() if p.requires_grad
        }
        return PartyWeights(weights, {name: torch.zeros_like(p) for name, p in weights.items()})

    def step(self, gradient: Weights, eta: float, momentum: float) -> PartyWeights:
        """The block after one step along this gradient, with momentum."""
        velocity = {name: momentum * self.velocity[name] + g for name, g in gradient.items()}
        return PartyWeights(
            {name: p - eta * velocity[name] for name, p in self.weights.items()}, velocity
        )


Theta = list[PartyWeights]


@dataclass(frozen=True, eq=False)
class Task:
    """What is trained: modules as functions, each client's features in order, the labels."""

    representations: Sequence[nn.Module]
    fusion: nn.Module
    aggregation: str
    loss: Callable[[Tensor, Tensor], Tensor]
    features: Sequence[Tensor]
    labels: Tensor

    def start(self) -> tuple[Theta, PartyWeights]:
        """The parameters at the start: theta^0 and theta_0^0."""
        return [PartyWeights.of(module) for module in self.representations], PartyWeights.of(
            self.fusion
        )

    def aggregate(self, parts: Parts) -> Tensor:
        """H of all representations."""
        if self.aggregation == "concat":
            return torch.cat(parts, dim=1)
        total = torch.stack(parts).sum(dim=0)
        if self.aggregation == "mean":
            return total / len(parts)
        return total


class SplitObjective:
    """f on a mini-batch."""

    def __init__(self, task: Task, batches: Batches, t: int) -> None:
        rows = torch.arange(len(task.labels))
        if batches.size is not None:
            rows = torch.as_tensor(batches.rows(t))
        self.task = task
        self.features = [x[rows] for x in task.features]
        self.labels = task.labels[rows]

    def h(self, k: int, weights: Weights) -> Tensor:
        """The representation of client k."""
        h: Tensor = functional_call(self.task.representations[k], weights, (self.features[k],))
        return h

    def parts(self, theta: Theta) -> Parts:
        """The representations of all clients, in their order."""
        return [self.h(k, block.weights).detach() for k, block in enumerate(theta)]

    def value(self, parts: Parts, theta_0: Weights) -> Tensor:
        """f, from the representations."""
        outputs = functional_call(self.task.fusion, theta_0, (self.task.aggregate(parts),))
        return self.task.loss(outputs, self.labels)

    def gradients(
        self, k: int | None, parts: Parts, theta_k: Weights, theta_0: Weights
    ) -> tuple[Weights, Weights]:
        """The gradient of f in theta_k, the others fixed in ``parts``, and in theta_0; without k,
        in theta_0 only."""
        theta_k, theta_0 = _leaves(theta_k), _leaves(theta_0)
        if k is not None:
            # the others are fixed, as they are numbers in the token
            parts = [*parts[:k], self.h(k, theta_k), *parts[k + 1 :]]
        wanted = [*theta_k.values(), *theta_0.values()]
        if not wanted:  # neither has parameters, which autograd does not take
            return {}, {}
        found = iter(
            torch.autograd.grad(self.value(parts, theta_0), wanted, materialize_grads=True)
        )
        return {name: next(found) for name in theta_k}, {name: next(found) for name in theta_0}


def _leaves(weights: Weights) -> Weights:
    return {name: p.detach().requires_grad_() for name, p in weights.items()}


@dataclass(frozen=True)
class Settings:
    """The settings: Q local updates of ``stepsize(t)``, with ``momentum``, and the number of
    ``fusion_updates``."""

    local_updates: int
    stepsize: Callable[[int], float]
    batches: Batches
    fusion_updates: int
    momentum: float


def token_roaming(
    theta: Theta,
    parts: Parts,
    theta_0: PartyWeights,
    k: int,
    f: SplitObjective,
    S: int,
    how: Settings,
    t: int,
    then: NextClient,
) -> Theta:
    """Algorithm 1, TokenRoaming: S visits with Q local updates each."""
    theta, parts = list(theta), list(parts)  # line 5
    for s in range(S):  # line 6
        for _ in range(how.local_updates):  # line 7, at client k
            gradient, _ = f.gradients(k, parts, theta[k].weights, theta_0.weights)
            theta[k] = theta[k].step(gradient, how.stepsize(t), how.momentum)  # line 8
            parts[k] = f.h(k, theta[k].weights).detach()  # line 9
        k = then(s, k)  # line 10
    return theta


def improved_fusion(
    theta_0: PartyWeights, parts: Parts, f: SplitObjective, how: Settings, t: int
) -> PartyWeights:
    """The server's part while tokens roam: steps of theta_0 on Z^t."""
    for _ in range(how.fusion_updates):
        theta_0 = theta_0.step(
            f.gradients(None, parts, {}, theta_0.weights)[1], how.stepsize(t), how.momentum
        )
    return theta_0


def mtcd(
    task: Task, roaming: Walking, how: Settings, tokens: int, S: int, rule: str, T: int
) -> list[tuple[Theta, PartyWeights]]:
    """Algorithm 2: (theta, theta_0) at t = 0, ..., T."""
    iterates = [task.start()]
    for t in range(T):  # line 2
        theta, theta_0 = iterates[-1]
        f = SplitObjective(task, how.batches, t)  # line 4
        Z = f.parts(theta)  # lines 5, 6
        ends: list[Theta] = []
        visited: list[set[int]] = []
        for gamma in range(tokens):  # line 7
            trail = [NOWHERE]

            def then(
                s: int, k: int, gamma: int = gamma, t: int = t, trail: list[int] = trail
            ) -> int:
                trail.append(k)
                return roaming.next(gamma, t, s + 1, k, trail[-2])

            # lines 8, 9
            ends.append(
                token_roaming(theta, Z, theta_0, roaming.first(gamma, t), f, S, how, t, then)
            )
            visited.append(set(trail))

        new_0 = improved_fusion(theta_0, Z, f, how, t)
        came = [[k in seen for seen in visited] for k in range(len(theta))]
        # line 11
        new = [combine(rule, [end[k] for end in ends], came[k]) for k in range(len(theta))]
        iterates.append((new, new_0))
    return iterates


def combine(rule: str, copies: Sequence[PartyWeights], came: Sequence[bool]) -> PartyWeights:
    """sum_gamma w_gamma theta_k(gamma): 1/Gamma each, or equal among the visitors; other copies are
    theta^t."""
    weights = [1 / len(copies)] * len(copies)
    if rule != "average" and any(came):
        weights = [seen / sum(came) for seen in came]

    def mix(parts: Sequence[Mapping[str, Tensor]]) -> Weights:
        pairs = list(zip(weights, parts, strict=True))
        names = parts[0]
        return {
            name: torch.stack([w * part[name] for w, part in pairs]).sum(dim=0) for name in names
        }

    return PartyWeights(
        mix([copy.weights for copy in copies]), mix([copy.velocity for copy in copies])
    )


def svfl(task: Task, how: Settings, rounds: int) -> list[tuple[Theta, PartyWeights]]:
    """FedBCD: every client takes Q steps on the same Z, with the other clients' parameters
    stale."""
    iterates = [task.start()]
    for t in range(rounds):
        theta, theta_0 = iterates[-1]
        f = SplitObjective(task, how.batches, t)
        Z = f.parts(theta)
        new = [
            token_roaming(theta, Z, theta_0, k, f, 1, how, t, lambda s, k: k)[k]
            for k in range(len(theta))
        ]
        iterates.append((new, improved_fusion(theta_0, Z, f, how, t)))
    return iterates


def stcd(
    task: Task,
    roaming: Walking,
    how: Settings,
    fusing: frozenset[int],
    S: int,
    first_pass: bool = True,
) -> tuple[Theta, PartyWeights]:
    """Algorithm 1 without a server: theta_0 is updated at some clients, each with its own velocity
    of theta_0.

    Without a ``first_pass`` the token sets out with nothing in it.
    """
    theta, theta_0 = task.start()
    f = SplitObjective(task, how.batches, 0)
    parts = f.parts(theta)  # line 2
    if not first_pass:
        parts = [torch.zeros_like(part) for part in parts]

    # the velocity stays with the party: only theta_0 itself travels with the token
    velocities = dict.fromkeys(fusing, theta_0.velocity)
    eta = how.stepsize(0)  # without syncs there is no schedule
    k, previous = roaming.first(0, 0), NOWHERE
    for s in range(S):
        for _ in range(how.local_updates):
            here, there = f.gradients(k, parts, theta[k].weights, theta_0.weights)
            theta[k] = theta[k].step(here, eta, how.momentum)
            if k in fusing:
                theta_0 = PartyWeights(theta_0.weights, velocities[k]).step(
                    there, eta, how.momentum
                )
                velocities[k] = theta_0.velocity
        parts[k] = f.h(k, theta[k].weights).detach()
        k, previous = roaming.next(0, 0, s + 1, k, previous), k
    return theta, theta_0
