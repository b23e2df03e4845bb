"""A hop against the bare matrix-vector products in it, and a sync against the hops it follows.

The floor visits the same blocks in the same order and does the two products that no method can
avoid, into memory that is there already: X^T z and X g.
"""

from __future__ import annotations

import itertools

import numpy as np

from benchmarks.timing import best_of, report
from mtcd.data.synthetic import synthetic
from mtcd.engines.local import LocalEngine
from mtcd.methods.method import Method
from mtcd.methods.mtcd.mtcd import MTCD, STCD
from mtcd.methods.mtcd.roaming import plan_roaming
from mtcd.models.glm.model import Glm, LinearProblem
from mtcd.network.topology import Network, make_network
from mtcd.protocol.ledger.ledger import Ledger


class Endless:
    """A training that goes on: ``advance`` delivers so many settled moments."""

    def __init__(self, problem: LinearProblem, network: Network, method: Method) -> None:
        self.moments = LocalEngine(method.parties(problem, network, 0), Ledger()).run()
        self.advance(1)

    def advance(self, moments: int) -> None:
        for _ in itertools.islice(self.moments, moments):
            pass


def trail(network: Network, hops: int) -> list[int]:
    """The clients that STCD visits with seed 0."""
    roaming = plan_roaming(network, 1, None, "lazy", None, 0, None)
    clients = [roaming.first(0, 0)]
    for hop in range(1, hops):
        clients.append(roaming.next(0, 0, hop, clients[-1], -1))
    return clients


def products(problem: LinearProblem, clients: list[int], repeats: int = 1) -> None:
    """The floor: the two products of each visit, ``repeats`` times."""
    z, out = np.zeros(problem.samples), np.empty(problem.samples)
    transposed = {k: problem.blocks[k].T for k in set(clients)}
    g = {k: np.empty(X.shape[0]) for k, X in transposed.items()}
    for k in clients:
        for _ in range(repeats):
            np.dot(transposed[k], z, out=g[k])
            np.dot(problem.blocks[k], g[k], out=out)


def hop(
    name: str, problem: LinearProblem, network: Network, method: Method, hops: int, repeats: int = 1
) -> None:
    """One line of the report: a hop of STCD."""
    clients, training = trail(network, hops), Endless(problem, network, method)
    training.advance(hops)  # builds what each visited client keeps
    ours, floor = best_of(
        lambda: training.advance(hops), lambda: products(problem, clients, repeats)
    )
    report(name, ours / hops, floor / hops)


def sync(
    name: str, problem: LinearProblem, network: Network, tokens: int, hops: int, floor: float
) -> float:
    """Seconds of a visit of MTCD with its share of the syncs; tokens start at the same twenty
    clients."""
    start = {name: 1.0 if k < 20 else 1e-12 for k, name in enumerate(network.clients)}
    method = MTCD(tokens=tokens, hops=hops, local_updates=20, stepsize=1e-6, start=start)
    training = Endless(problem, network, method)
    training.advance(200)  # builds what each visited client keeps
    (seconds,) = best_of(lambda: training.advance(40))
    per_visit = seconds / (40 * tokens * hops)
    report(
        name, per_visit, floor or per_visit, note="floor: the same with 40 clients" if floor else ""
    )
    return per_visit


def main() -> None:
    """All lines."""
    ridge, stcd = Glm("ridge", alpha=10.0), STCD(local_updates=20, stepsize=1e-6)
    data = synthetic("ridge", 1000, 2000, 40)
    problem, path = ridge.problem(data), make_network("path", data.clients)
    hop("ridge N=1000 d_k=50 K=40 Q=20, a hop", problem, path, stcd, 4000)

    narrow = synthetic("ridge", 1000, 200, 40)
    small = sync(
        "ridge d_k=5 K=40, MTCD 2x4, a visit with its share of sync",
        *_on_cycle(ridge, narrow),
        2,
        4,
        0.0,
    )
    hop("ridge N=1000 d_k=5 K=40 Q=20, a hop", *_on_cycle(ridge, narrow), stcd, 4000)
    wide = synthetic("ridge", 1000, 50_000, 10_000)
    hop("ridge N=1000 d_k=5 K=10,000 Q=20, a hop", *_on_cycle(ridge, wide), stcd, 4000)
    sync(
        "ridge d_k=5 K=10,000, MTCD 2x4, a visit with its share",
        *_on_cycle(ridge, wide),
        2,
        4,
        small,
    )

    logistic = synthetic("logistic", 6000, 1000, 8)
    problem, path = (
        Glm("logistic", l1=1.0).problem(logistic),
        make_network("path", logistic.clients),
    )
    hop(
        "logistic N=6000 d_k=125 Q=30, a hop",
        problem,
        path,
        STCD(local_updates=30, stepsize=1e-5),
        20,
        repeats=30,
    )


def _on_cycle(model: Glm, data: object) -> tuple[LinearProblem, Network]:
    return model.problem(data), make_network("cycle", data.clients)  # type: ignore[arg-type, attr-defined]


if __name__ == "__main__":
    main()
