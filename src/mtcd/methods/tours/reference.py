"""Accelerated tours, all clients at once: the plain version of ``methods/tours``."""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import numpy as np

from mtcd.core.arrays import Array
from mtcd.methods.method import resolved_stepsize
from mtcd.methods.mtcd.checks import MAJORISE
from mtcd.methods.mtcd.features import ACCELERATIONS
from mtcd.methods.mtcd.mtcd import MTCD
from mtcd.methods.optimal_weights import Along
from mtcd.methods.tours.anderson import MOST_PATIENCE, SLOWER, best_weights
from mtcd.methods.tours.conjugate import along_tour, sound_weights
from mtcd.methods.tours.momentum import next_momentum
from mtcd.methods.tours.rounding import Rounding
from mtcd.methods.tours.survey import Survey
from mtcd.models.glm.model import LinearProblem
from mtcd.models.glm.penalty import Penalty
from mtcd.models.glm.reference import Objective, Theta, next_present, weighted, zeros
from mtcd.network.topology import Network
from mtcd.network.walks import NOWHERE

State = tuple[Array, Theta]  # the token and the model
Round = Callable[[int, "Scheme", State], tuple[Theta, State]]
"""From the start of a tour, or of the tours between two syncs: the model that is reported, and the
end."""


def accelerated_stcd(
    problem: LinearProblem, network: Network, method: MTCD, seed: int, tours: int
) -> list[Theta]:
    """STCD on a tour with acceleration, all clients at once: theta at the start and at the end of
    every tour."""
    roaming = method.plan(problem.samples, problem.outputs, network, seed).roaming
    f = Objective(problem, None)
    at, home = 0, roaming.first(0, 0)  # hops made; the client that has the token then

    def tour(t: int, scheme: Scheme, start: State) -> tuple[Theta, State]:
        nonlocal at, home
        clients = [home]
        while not roaming.ends_tour(hop := at + len(clients)):
            last = clients[-1]  # on a tour the hop alone tells who is next
            clients.append(next_present(roaming, hop, last, NOWHERE))
        at += len(clients)
        home = next_present(roaming, at, clients[-1], NOWHERE)
        done = visits(f, scheme, start, clients, clients[:1])
        closes = scheme.twice and not roaming.begins_view(at)  # with the last update at home
        return done[1], update(f, scheme, done, clients[0], 1) if closes else done

    return accelerated(problem, tour, method, tours, lambda t: roaming.begins_view(at))


def accelerated_mtcd(
    problem: LinearProblem, network: Network, method: MTCD, seed: int, T: int
) -> list[Theta]:
    """MTCD with a token per cluster, touring from its home, and acceleration at the syncs."""
    clusters = method.token_clusters(network, seed) or ()
    roaming = method.plan(problem.samples, problem.outputs, network, seed).roaming
    f, S = Objective(problem, None), method.hops
    assert S is not None

    def iteration(t: int, scheme: Scheme, start: State) -> tuple[Theta, State]:
        Z, theta = start
        new, total = list(theta), Z.copy()
        for gamma, cluster in enumerate(clusters):
            clients = [roaming.first(gamma, t)]
            if clients == [NOWHERE]:  # all are absent
                continue
            for s in range(1, S):
                last = clients[-1]  # on a tour the hop alone tells who is next
                clients.append(roaming.next(gamma, t, s, last, NOWHERE))
            Z_gamma, end = visits(f, scheme, start, clients, [])
            total += Z_gamma - Z
            for k in cluster:
                new[k] = end[k]
        return new, (total, new)

    return accelerated(problem, iteration, method, T, roaming.begins_view)


def visits(
    f: Objective, scheme: Scheme, start: State, clients: Sequence[int], later: Sequence[int]
) -> State:
    """A local update at every visit; where the scheme makes two a tour, at the first and the last
    visit of each."""
    state = start
    for place, k in enumerate(clients):
        first, last = k not in clients[:place], k not in [*clients[place + 1 :], *later]
        state = update(f, scheme, state, k, first + last if scheme.twice else 1)
    return state


def update(f: Objective, scheme: Scheme, state: State, k: int, times: int) -> State:
    """``times`` local updates of client k."""
    Z, theta = state[0], list(state[1])
    Q, eta = scheme.steps(k)
    for _ in range(times * Q):
        new = f.step(k, theta[k], Z, eta)
        Z = Z + f.h(k, new) - f.h(k, theta[k])
        theta[k] = new
    return Z, theta


def accelerated(
    problem: LinearProblem,
    one_round: Round,
    method: MTCD,
    rounds: int,
    begins_view: Callable[[int], bool],
) -> list[Theta]:
    """theta at the start and after every round that is not on trial; the acceleration chooses each
    start.

    When a membership view begins, the acceleration restarts.
    """
    theta = zeros(problem)
    start: State = (Objective(problem, None).token(theta), theta)
    make = SCHEMES[method.acceleration or ""]
    scheme = make(problem, method, start)
    iterates = [theta]
    t, trial = 0, False
    while len(iterates) <= rounds:
        reported, end = one_round(t, scheme, start)
        iterates += [] if trial else [reported]
        t += 1
        if begins_view(t):
            start = end
            scheme = make(problem, method, start)
        else:
            start = scheme.next_start(end, problem.evaluate(end[1]))
        trial = isinstance(scheme, PlainAnderson) and scheme.anchor is not None
    return iterates


def mixed(c: tuple[float, ...], states: list[State]) -> State:
    """sum_i c_i (Z_i, theta_i)."""
    return weighted(c, [Z for Z, _ in states]), weighted(c, [theta for _, theta in states])


class Scheme(ABC):
    """An acceleration: the start and the steps of the next round."""

    twice = False
    """Whether every client makes two updates a tour, however often it is visited."""

    def __init__(self, problem: LinearProblem, method: MTCD, start: State) -> None:
        self.problem, self.M = problem, ACCELERATIONS[method.acceleration or ""].most_starts(method)
        self.majorise = method.local_solver == MAJORISE
        self.reach, self.Q, self.eta = 0.0, method.local_updates, resolved_stepsize(method)

    def steps(self, k: int) -> tuple[int, float]:
        """The number and the size of the steps of an update of client k."""
        if not self.reach:
            return self.Q, self.eta
        client = self.problem.client(k)
        L = client.smoothness
        Q = max(1, math.ceil(min(self.reach * L, client.most_steps(self.majorise))))
        return Q, min(self.reach / Q, 1.0 / L) if L else self.reach

    @abstractmethod
    def next_start(self, end: State, value: float) -> State:
        """The start of the next round, from the end of one, where f has this value."""


class PlainAnderson(Scheme):
    """Extrapolation over the last M + 1 rounds, undone if f did not fall."""

    def __init__(self, problem: LinearProblem, method: MTCD, start: State) -> None:
        super().__init__(problem, method, start)
        self.patience = self.M
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
        start = mixed(c, last[1:])
        self.done = [start]
        return start


class PlainMomentum(Scheme):
    """Further along the change of the last round, unless f rose."""

    def __init__(self, problem: LinearProblem, method: MTCD, start: State) -> None:
        super().__init__(problem, method, start)
        self.a, self.last, self.value = 1.0, start, np.inf

    def next_start(self, end: State, value: float) -> State:
        if value > self.value and self.a > 1.0:
            self.a = 1.0
            return self.last
        b, self.a = next_momentum(self.a)
        before, self.last, self.value = self.last, end, value
        return mixed((-b, 1.0 + b), [before, end])


class PlainConjugate(Scheme):
    """The best combination of the end of the round and the last M starts; ``adaptive``: steps are
    chosen after the first round."""

    twice = True

    def __init__(self, problem: LinearProblem, method: MTCD, start: State) -> None:
        super().__init__(problem, method, start)
        self.starts, self.surveying = [start], method.adaptive
        self.reach = self.plain = self.eta if method.adaptive else 0.0
        self.rounding = Rounding(start[0])

    def next_start(self, end: State, value: float) -> State:
        *earlier, (Z, s) = self.starts
        change = [after - before for after, before in zip(end[1], s, strict=True)]
        G = np.array([[self.product(a, b) for _, a in self.starts] for _, b in self.starts])
        ways = [[a - b for a, b in zip(theta, s, strict=True)] for _, theta in earlier]
        with_change = np.array([self.product(change, way) for way in [*ways, s]])
        tokens = [*(token for token, _ in earlier), end[0]]
        along = along_tour(
            self.problem.fit, Z, tokens, G, with_change, self.product(change, change)
        )
        if self.surveying:
            sums = np.sum([self.problem.client(k).survey() for k in range(len(s))], axis=0)
            self.survey(Survey(*sums.tolist()), along)
        fresh = self.rounding.fresh(Z, end[0])
        w = sound_weights(along, self.rounding.of_changes(fresh))
        if w[-1] == 1.0:  # the end of the tour itself
            self.reach = max(self.reach, self.plain)
        theta = [
            s[k] + w[-1] * change[k] + sum(b * way[k] for b, way in zip(w[:-1], ways, strict=True))
            for k in range(len(s))
        ]
        start = along.aggregate(w), theta
        self.rounding.add(w, fresh, float(np.sum((start[0] - Z) ** 2)), self.M)
        self.starts = [*self.starts, start][-self.M :]
        return start

    def survey(self, columns: Survey, along: Along) -> None:
        """Choose the steps of all rounds but the first."""
        self.surveying = False
        chosen = columns.choose(along, self.reach, self.problem.fit.curvature)
        if chosen is not None:
            self.reach, self.plain, self.M = *chosen[:2], min(self.M, chosen[2])

    def product(self, a: Theta, b: Theta) -> float:
        """The inner product behind r."""
        return float(sum(map(Penalty.product, self.problem.penalties, a, b)))


SCHEMES: dict[str, type[PlainAnderson] | type[PlainMomentum] | type[PlainConjugate]] = {
    "anderson": PlainAnderson,
    "momentum": PlainMomentum,
    "conjugate": PlainConjugate,
}
