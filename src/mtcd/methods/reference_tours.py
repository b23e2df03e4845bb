"""Accelerated tours, all clients at once: the plain version of ``touring_parties.py`` and the accelerations."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from mtcd.methods.anderson import MOST_PATIENCE, SLOWER, best_weights
from mtcd.methods.conjugate import NOISE
from mtcd.methods.eras import through_changes
from mtcd.methods.momentum import next_momentum
from mtcd.methods.mtcd import MTCD
from mtcd.methods.optimal import Along, optimal_weights
from mtcd.methods.reference import Objective, Theta, next_present, token_roaming, weighted, zeros
from mtcd.methods.roaming import plan_roaming
from mtcd.model.linear import LinearProblem
from mtcd.network.topology import Network
from mtcd.network.walks import NOWHERE
from mtcd.objective.penalty import Penalty

Array = NDArray[np.float64]
State = tuple[Array, Theta]  # the token and the model
Round = Callable[[int, Theta, Array], tuple[Theta, Array]]


def accelerated_stcd(problem: LinearProblem, network: Network, method: MTCD, seed: int, tours: int) -> list[Theta]:
    """STCD on a tour with acceleration, all clients at once: theta at the start and at the end of every tour."""
    roaming = plan_roaming(network, 1, None, method.walk, method.start, seed, None)
    roaming = through_changes(roaming, network, None, whole_tours=True)
    f, Q, eta = Objective(problem, None), method.local_updates, method.settled_stepsize()
    at, home = 0, roaming.first(0, 0)  # hops that are done; where the token is then

    def tour(t: int, theta: Theta, Z: Array) -> tuple[Theta, Array]:
        nonlocal at, home
        start, length = at, next(s for s in itertools.count(1) if roaming.ends_tour(at + s))

        def next_client(s: int, k: int) -> int:
            return next_present(roaming, start + s + 1, k, NOWHERE)

        theta, Z, home = token_roaming(theta, Z, home, f, length, Q, eta, next_client)
        at += length
        return theta, Z

    return accelerated(problem, tour, method, tours, lambda t: roaming.begins_era(at))


def accelerated_mtcd(problem: LinearProblem, network: Network, method: MTCD, seed: int, T: int) -> list[Theta]:
    """MTCD with a token per cluster, touring from its first client, and acceleration at the syncs."""
    clusters = method.token_clusters(network, seed) or ()
    starts = [cluster[0] for cluster in clusters]
    roaming = plan_roaming(network, len(clusters), clusters, method.walk, starts, seed, method.hops)
    roaming = through_changes(roaming, network, clusters, whole_tours=True)
    f, S, Q, eta = Objective(problem, None), method.hops or 0, method.local_updates, method.settled_stepsize()

    def iteration(t: int, theta: Theta, Z: Array) -> tuple[Theta, Array]:
        new, total = list(theta), Z.copy()
        for gamma, cluster in enumerate(clusters):

            def next_client(s: int, k: int, gamma: int = gamma) -> int:
                return roaming.next(gamma, t, s + 1, k, NOWHERE)

            first = roaming.first(gamma, t)
            if first == NOWHERE:  # all have left
                continue
            end, Z_gamma, _ = token_roaming(theta, Z, first, f, S, Q, eta, next_client)
            total += Z_gamma - Z
            for k in cluster:
                new[k] = end[k]
        return new, total

    return accelerated(problem, iteration, method, T, roaming.begins_era)


def accelerated(
    problem: LinearProblem, one_round: Round, method: MTCD, rounds: int, begins_era: Callable[[int], bool]
) -> list[Theta]:
    """theta at the start and after every round that is not on trial; each starts where the acceleration says.

    Where other clients are there from the next round on, what was before is forgotten.
    """
    theta = zeros(problem)
    start: State = (Objective(problem, None).token(theta), theta)
    make = SCHEMES[method.acceleration or ""]
    scheme = make(problem, method.depth, start)
    iterates = [theta]
    t, trial = 0, False
    while len(iterates) <= rounds:
        theta, Z = one_round(t, start[1], start[0])
        iterates += [] if trial else [theta]
        t += 1
        if begins_era(t):
            start = (Z, theta)
            scheme = make(problem, method.depth, start)
        else:
            start = scheme.next_start((Z, theta), problem.evaluate(theta))
        trial = isinstance(scheme, PlainAnderson) and scheme.anchor is not None
    return iterates


def mixed(c: tuple[float, ...], states: list[State]) -> State:
    """sum_i c_i (Z_i, theta_i)."""
    return weighted(c, [Z for Z, _ in states]), weighted(c, [theta for _, theta in states])


class PlainAnderson:
    """Extrapolation over the last M + 1 rounds, and a step back where it did not help."""

    def __init__(self, problem: LinearProblem, M: int, start: State) -> None:
        self.M = self.patience = M
        self.done = [start]
        self.anchor: tuple[State, float] | None = None

    def next_start(self, end: State, value: float) -> State:
        anchor, self.anchor = self.anchor, None
        if anchor is not None and not value < anchor[1]:  # undo
            self.patience = min(SLOWER * self.patience, MOST_PATIENCE)
            self.done = [anchor[0]]
            return anchor[0]
        self.patience = self.M if anchor is not None else self.patience
        self.done.append(end)
        if anchor is not None or len(self.done) <= self.patience + 1:
            return end
        last = self.done[-self.M - 2 :]
        c = best_weights([after[0] - before[0] for before, after in itertools.pairwise(last)])
        self.anchor = (end, value)
        self.done = [mixed(c, last[1:])]
        return self.done[0]


class PlainMomentum:
    """Further along the way of the last round, unless it went up."""

    def __init__(self, problem: LinearProblem, M: int, start: State) -> None:
        self.a, self.last, self.value = 1.0, start, np.inf

    def next_start(self, end: State, value: float) -> State:
        if value > self.value and self.a > 1.0:
            self.a = 1.0
            return self.last
        b, self.a = next_momentum(self.a)
        before, self.last, self.value = self.last, end, value
        return mixed((-b, 1.0 + b), [before, end])


class PlainConjugate:
    """The best mix of where the round ended and where the last M started."""

    def __init__(self, problem: LinearProblem, M: int, start: State) -> None:
        self.problem, self.M, self.starts = problem, M, [start]

    def next_start(self, end: State, value: float) -> State:
        (Z, theta), rs = end, self.problem.penalties
        ways = [[s_k - theta_k for s_k, theta_k in zip(s, theta, strict=True)] for _, s in self.starts]
        bend = [[sum(map(Penalty.product, rs, a, b)) for a in ways] for b in ways]
        slope = [sum(map(Penalty.product, rs, theta, way)) for way in ways]
        along = Along.of(self.problem.fit, Z, [s for s, _ in self.starts], np.array(slope), np.array(bend))
        w = optimal_weights(along, None)
        if along.value(np.zeros(len(w))) - along.value(w) <= NOISE * abs(value):
            w[:] = 0.0
        start = mixed((*w.tolist(), 1.0 - w.sum()), [*self.starts, end])
        self.starts = [*self.starts, start][-self.M :]
        return start


SCHEMES: dict[str, type[PlainAnderson] | type[PlainMomentum] | type[PlainConjugate]] = {
    "anderson": PlainAnderson,
    "momentum": PlainMomentum,
    "conjugate": PlainConjugate,
}
