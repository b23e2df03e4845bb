"""The paper's two algorithms, line by line: no messages, no ledger, no optimisation.

Read it beside the paper. Tests compare the parties of ``methods/mtcd`` with it: the iterates must
be the same. (The plain version of a feature is its ``reference.py``; f is in
``models/glm/reference.py``.) Every token has its own full copy of theta here, Z is recomputed from
all representations at every iteration, and Q local updates are Q gradient steps. Line numbers are
those of the paper.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mtcd.core.arrays import Array
from mtcd.methods.method import resolved_stepsize
from mtcd.methods.mtcd.mtcd import MTCD
from mtcd.methods.mtcd.roaming import plan_roaming, through_changes
from mtcd.models.glm.model import LinearProblem
from mtcd.models.glm.reference import Objective, Theta, next_present, weighted, zeros
from mtcd.network.topology import Network
from mtcd.network.walks import NOWHERE
from mtcd.protocol.batches import Batches
from mtcd.protocol.transports.transport import make_transport

NextClient = Callable[[int, int], int]
ChooseWeights = Callable[[LinearProblem, Theta, Sequence[Theta], Sequence[set[int]]], Array]
"""The weights of a sync, from theta^t, the ends of the tokens and the clients that each visited."""
Travelled = Callable[[Array], Array]
"""Encodes and decodes a token, as the transport does between two parties."""


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
        if k != before:
            Z = travelled(Z)
    return theta, Z, k


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

    first, eta, Q = roaming.first(0, 0), resolved_stepsize(method), method.local_updates
    return token_roaming(
        theta, f.token(theta), first, f, S, Q, eta, next_client, transported(method)
    )[0]


def transported(method: MTCD) -> Travelled:
    """The transport of the method, for line 10."""
    transport = make_transport(method.transport)
    if transport is None:
        return np.copy
    return lambda Z: np.asarray(transport.decode(transport.encode(Z)))


def mtcd(
    problem: LinearProblem,
    network: Network,
    method: MTCD,
    seed: int,
    T: int,
    choose: ChooseWeights | None = None,
) -> list[Theta]:
    """Algorithm 2: theta^0, ..., theta^T. ``choose``: where the server chooses the weights."""
    clusters = method.token_clusters(network, seed)
    tokens = method.tokens or 1
    if clusters is not None:
        tokens = len(clusters)
    roaming = plan_roaming(network, tokens, clusters, method.walk, method.start, seed, method.hops)
    roaming = through_changes(roaming, network, clusters)
    batches = Batches(problem.samples, method.batch, seed)

    S, Q, eta = method.hops, method.local_updates, resolved_stepsize(method)
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
            end = theta
            if first != NOWHERE:  # unless all clients of the cluster are absent
                end, _, _ = token_roaming(theta, Z, first, f, S, Q, eta, next_client)  # line 9
            ends.append(end)
            visited.append(set(trail))  # with NOWHERE, which is no client
        if choose is not None:
            w = choose(problem, theta, ends, visited)
            changes = [[end[k] - theta_k for end in ends] for k, theta_k in enumerate(theta)]
            iterates.append(
                [theta_k + weighted(w.tolist(), changes[k]) for k, theta_k in enumerate(theta)]
            )
            continue

        combined = []
        for k in range(network.size):  # lines 10, 11
            copies, came = [end[k] for end in ends], [k in seen for seen in visited]
            combined.append(combine(method.combine_rule, theta[k], copies, came))
        iterates.append(combined)
    return iterates


def combine(rule: str, start: Array, copies: list[Array], came: list[bool]) -> Array:
    """sum_gamma w_k,gamma theta_k(gamma), with the weights of the rule; ``came``: the tokens that
    visited client k."""
    if not any(came):
        return start  # all copies are theta^t
    # equal among the visitors, which is one-hot for a single one
    weights = [seen / sum(came) for seen in came]
    if rule == "average":
        weights = [1 / len(copies)] * len(copies)
    return np.asarray(sum(w * copy for w, copy in zip(weights, copies, strict=True)))
