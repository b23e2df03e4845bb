"""The paper's two algorithms, line by line, and SVFL: no messages, no ledger, no optimisation.

Read it beside the paper. Tests compare the parties of ``methods/mtcd``, ``methods/optimal_sync``
and ``methods/svfl`` with it: the iterates must be the same. (The plain versions of DCPA and of
accelerated tours are in ``dcpa.py`` and ``tours.py``.) Every token has its own full copy of theta
here, Z is recomputed from all representations at every iteration, and Q local updates are Q
gradient steps. Line numbers are those of the paper.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mtcd.core.arrays import Array, Rows
from mtcd.methods.mtcd.mtcd import MTCD
from mtcd.methods.mtcd.roaming import Roaming, plan_roaming, through_changes
from mtcd.methods.optimal_weights import Along, optimal_weights
from mtcd.methods.svfl.svfl import SVFL
from mtcd.models.glm.model import LinearProblem
from mtcd.models.glm.penalty import Penalty
from mtcd.network.changes import Absence
from mtcd.network.topology import Network
from mtcd.network.walks import NOWHERE
from mtcd.protocol.batches import Batches
from mtcd.protocol.transports.registry import make_transport

Theta = list[Array]
NextClient = Callable[[int, int], int]
Travelled = Callable[[Array], Array]
"""Encodes and decodes a token, as the transport does between two parties."""


class Objective:
    """f on a mini-batch: N/B times its loss, plus the regularisers."""

    def __init__(self, problem: LinearProblem, rows: Rows | None) -> None:
        self.problem = problem
        self.rows = np.arange(problem.samples) if rows is None else rows
        self.y, self.loss = problem.labels[self.rows], problem.loss.at(self.rows)

    def h(self, k: int, theta_k: Array) -> Array:
        """The representation h_k = X_k theta_k on the batch."""
        return np.asarray(self.problem.blocks[k][self.rows] @ theta_k)

    def token(self, theta: Theta) -> Array:
        """The token of theta: the sum of all representations."""
        return np.asarray(sum(self.h(k, theta_k) for k, theta_k in enumerate(theta)))

    def step(self, k: int, theta_k: Array, Z: Array, eta: float) -> Array:
        """theta_k - eta * (partial gradient), then the prox of the regulariser's l1 part."""
        penalty, X = self.problem.penalties[k], self.problem.blocks[k][self.rows]
        scale = self.problem.samples / len(self.rows)
        gradient = scale * (X.T @ self.loss.gradient(Z, self.y))
        penalty.add_gradient(theta_k, gradient)
        new = theta_k - eta * gradient
        penalty.prox(new, eta)
        return np.asarray(new)


def token_roaming(
    theta: Theta,
    Z: Array,
    k: int,
    f: Objective,
    S: int,
    Q: int,
    eta: float,
    next_client: NextClient,
    travelled: Travelled = np.copy,
) -> tuple[Theta, Array, int]:
    """Algorithm 1, TokenRoaming: S visits with Q local updates each."""
    theta, Z = list(theta), Z.copy()  # line 5
    for s in range(S):  # line 6
        for _ in range(Q):  # line 7, at client k
            new = f.step(k, theta[k], Z, eta)  # line 8
            Z = Z + f.h(k, new) - f.h(k, theta[k])  # line 9
            theta[k] = new
        before, k = k, next_client(s, k)  # line 10
        Z = Z if k == before else travelled(Z)
    return theta, Z, k


def zeros(problem: LinearProblem) -> Theta:
    """theta^0 = 0."""
    return [problem.client(k).initial() for k in range(len(problem.blocks))]


def stcd(problem: LinearProblem, network: Network, method: MTCD, seed: int, S: int) -> Theta:
    """Algorithm 1: theta after S hops."""
    roaming = through_changes(
        plan_roaming(network, 1, None, method.walk, method.start, seed, None), network, None
    )
    theta, f = zeros(problem), Objective(problem, None)
    trail = [NOWHERE]

    def next_client(s: int, k: int) -> int:
        trail.append(k)
        return next_present(roaming, s + 1, k, trail[-2])

    first, eta, Q = roaming.first(0, 0), method.resolved_stepsize(), method.local_updates
    return token_roaming(
        theta, f.token(theta), first, f, S, Q, eta, next_client, transported(method)
    )[0]


def transported(method: MTCD) -> Travelled:
    """The transport of the method, for line 10."""
    transport = make_transport(method.transport)
    return (
        np.copy
        if transport is None
        else lambda Z: np.asarray(transport.decode(transport.encode(Z)))
    )


def next_present(roaming: Roaming, hop: int, k: int, previous: int) -> int:
    """The next present client; absent clients pass the token on."""
    k = roaming.next(0, 0, hop, k, previous)
    while roaming.is_away(k, hop):
        k = roaming.next(
            0, 0, hop, k, NOWHERE
        )  # no mutants: where clients are absent, the hop alone counts
    return k


def weighted(c: Sequence[float], parts: Sequence[Any]) -> Any:
    """sum_i c_i part_i, of tokens or of models."""
    if isinstance(parts[0], list):  # no mutants: all are alike
        return [weighted(c, blocks) for blocks in zip(*parts, strict=True)]
    return sum(weight * part for weight, part in zip(c, parts, strict=True))


def mtcd(problem: LinearProblem, network: Network, method: MTCD, seed: int, T: int) -> list[Theta]:
    """Algorithm 2: theta^0, ..., theta^T."""
    clusters = method.token_clusters(network, seed)
    tokens = (method.tokens or 1) if clusters is None else len(clusters)
    roaming = plan_roaming(network, tokens, clusters, method.walk, method.start, seed, method.hops)
    roaming = through_changes(roaming, network, clusters)
    batches = Batches(problem.samples, method.batch, seed)
    S, Q, eta = method.hops, method.local_updates, method.resolved_stepsize()
    assert S is not None
    iterates = [zeros(problem)]
    for t in range(T):  # line 2
        theta = iterates[-1]
        f = Objective(problem, batches.rows(t))  # line 4
        Z = f.token(theta)  # lines 5, 6
        ends, visited = [], []
        for gamma in range(tokens):  # line 7
            trail = [NOWHERE]

            def next_client(
                s: int, k: int, gamma: int = gamma, t: int = t, trail: list[int] = trail
            ) -> int:
                trail.append(k)
                return roaming.next(gamma, t, s + 1, k, trail[-2])

            first = roaming.first(gamma, t)  # line 8
            roams = first != NOWHERE  # NOWHERE: all clients of the cluster are absent
            # line 9
            ends.append(
                token_roaming(theta, Z, first, f, S, Q, eta, next_client)[0] if roams else theta
            )
            visited.append(set(trail))  # with NOWHERE, which is no client
        if method.combine_rule == "optimal":
            w = weights_of_optimal_sync(problem, theta, ends, visited)
            changes = [[end[k] - theta_k for end in ends] for k, theta_k in enumerate(theta)]
            iterates.append(
                [theta_k + weighted(w.tolist(), changes[k]) for k, theta_k in enumerate(theta)]
            )
            continue
        iterates.append(
            [
                combine(
                    method.combine_rule,
                    theta[k],
                    [end[k] for end in ends],
                    [k in seen for seen in visited],
                )
                for k in range(network.size)
            ]
        )  # lines 10, 11
    return iterates


def weights_of_optimal_sync(
    problem: LinearProblem, theta: Theta, ends: Sequence[Theta], visited: Sequence[set[int]]
) -> Array:
    """argmin_w f(theta + sum_gamma w_gamma (theta(gamma) - theta)); with l1, of a bound for it."""
    Z, rs = problem.aggregate(theta), problem.penalties
    changes = [[new - old for new, old in zip(end, theta, strict=True)] for end in ends]
    bend = [[sum(map(Penalty.product, rs, a, b)) for a in changes] for b in changes]
    slope = [
        sum(map(Penalty.product, rs, theta, change))
        + sum(map(Penalty.kink, rs, end))
        - sum(map(Penalty.kink, rs, theta))
        for change, end in zip(changes, ends, strict=True)
    ]
    along = Along.of(
        problem.fit, Z, [problem.aggregate(end) for end in ends], np.array(slope), np.array(bend)
    )
    most_met = max(sum(k in seen for seen in visited) for k in range(len(theta)))
    return optimal_weights(along, 1.0 / most_met if problem.nonsmooth else None)


def combine(rule: str, start: Array, copies: list[Array], came: list[bool]) -> Array:
    """sum_gamma w_k,gamma theta_k(gamma), with the weights of the rule; ``came``: the tokens that
    visited client k."""
    if not any(came):
        return start  # all copies are theta^t
    # average: 1/Gamma each; otherwise equal among the visitors, which is one-hot for a single one
    weights = [1 / len(copies) if rule == "average" else seen / sum(came) for seen in came]
    return np.asarray(sum(w * copy for w, copy in zip(weights, copies, strict=True)))


def svfl(
    problem: LinearProblem,
    method: SVFL,
    seed: int,
    rounds: int,
    away: Sequence[Absence] = ((0, frozenset()),),
) -> list[Theta]:
    """FedBCD: every present client takes Q steps on the same Z, with the other clients' parameters
    stale."""
    batches, Q, eta = (
        Batches(problem.samples, method.batch, seed),
        method.local_updates,
        method.resolved_stepsize(),
    )
    iterates = [zeros(problem)]
    for t in range(rounds):
        theta, f = iterates[-1], Objective(problem, batches.rows(t))
        Z, absent, new = (
            f.token(theta),
            [clients for begins, clients in away if begins <= t][-1],
            list(theta),
        )
        for k in set(range(len(theta))) - absent:
            new[k] = token_roaming(theta, Z, k, f, 1, Q, eta, lambda s, k: k)[0][k]
        iterates.append(new)
    return iterates
