"""SVFL, all clients at once: the plain version, with which tests compare its parties."""

from __future__ import annotations

from collections.abc import Sequence

from mtcd.methods.method import resolved_stepsize
from mtcd.methods.svfl.svfl import SVFL
from mtcd.models.glm.model import LinearProblem
from mtcd.models.glm.reference import Objective, Theta, zeros
from mtcd.network.changes import Absence
from mtcd.protocol.batches import Batches


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
        resolved_stepsize(method),
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
            Z_k = Z.copy()
            for _ in range(Q):
                after = f.step(k, new[k], Z_k, eta)
                Z_k = Z_k + f.h(k, after) - f.h(k, new[k])
                new[k] = after
        iterates.append(new)
    return iterates
