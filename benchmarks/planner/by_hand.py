"""A grid by hand: methods and settings that somebody who knows them all would try. It shares no
code with the candidates of the planner."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import mtcd
from benchmarks.planner.cases import TARGET, Planned
from mtcd.core.errors import MtcdError
from mtcd.models.glm.block_smoothness import BlockSmoothness
from mtcd.network.tours import closed_walk
from mtcd.planner.simulate import simulate
from mtcd.theory.stepsize import descent_limit

BLOCKS = (3, 100, 10_000, 10_000_000)
"""Q: from gradient steps to blocks that are solved."""
MOST = 60_000
"""Iterations, at most."""


def grid(case: Planned) -> Iterator[Any]:
    """The methods, those first that often are best."""
    K, l1 = case.problem.clients, bool(case.l1)
    setup = case.setup
    smoothness = BlockSmoothness(setup.model.problem(setup.data))
    step = descent_limit(smoothness).value
    together = 1.0 / smoothness.overall

    if l1:
        for name in ("momentum", "anderson"):
            for Q in (1, 10, 100):
                yield mtcd.STCD(Q, step, "tour", acceleration=name, depth=10)
        for Q in (1, 10, 100):
            yield mtcd.STCD(Q, step, "tour")
            yield mtcd.SVFL(Q, 1.0 * together / Q)
            for tokens in (2, 4):
                settings = {"local_updates": Q, "stepsize": step, "acceleration": "momentum"}
                yield _clustered(case, tokens, settings)
        yield mtcd.SVFL(1, together, acceleration="momentum")
        yield mtcd.SVFL(1, together, acceleration="anderson")
        return

    conjugate: dict[str, Any] = {"acceleration": "conjugate", "local_solver": "majorise"}
    yield mtcd.STCD(walk="tour", **conjugate)
    for Q in BLOCKS:
        yield mtcd.STCD(Q, step, "tour", depth=20, **conjugate)
    yield mtcd.STCD(walk="tour", acceleration="twin")
    if not setup.model.loss.quadratic:
        newton: dict[str, Any] = {"acceleration": "conjugate", "local_solver": "newton"}
        yield mtcd.STCD(1, step, "tour", depth=20, **newton)
        yield mtcd.SVFL(1, step, depth=20, **newton)
    for part in (0.2, 0.02):
        yield mtcd.STCD(1, part * step, "tour", depth=20, **conjugate)
    yield mtcd.TreeCG()
    if case.wires is not None:
        yield mtcd.TreeCG(degree=K)
        yield mtcd.TreeCG(degree=2)

    yield mtcd.SVFL(acceleration="conjugate")
    for Q in BLOCKS:
        yield mtcd.SVFL(Q, step, depth=20, **conjugate)
    yield mtcd.SVFL(1, together)

    for tokens in (2, 4, 8, 20):
        if tokens > K:
            continue
        for Q in (3, 100, 10_000):
            majorised = {"local_updates": Q, "stepsize": step, "local_solver": "majorise"}
            yield _clustered(case, tokens, majorised | {"acceleration": "conjugate", "depth": 20})
            yield _clustered(case, tokens, majorised | {"combine": "memory"})
        yield _clustered(
            case, tokens, {"local_updates": 100, "stepsize": step, "combine": "optimal"}
        )


def _clustered(case: Planned, tokens: int, settings: dict[str, Any]) -> Any:
    """With a token for each cluster, which goes round it once between two syncs."""
    touring = mtcd.MTCD(tokens, 1, clusters="auto", walk="tour")
    clusters = touring.token_clusters(case.setup.network, case.setup.config.seed)
    tours = [len(closed_walk(case.setup.network, sorted(cluster))) for cluster in clusters or ()]
    return replace(touring, hops=max(tours), **settings)


def amount(case: Planned, method: Any, most: float = math.inf) -> float:
    """The cost, or the simulated seconds, to the target; infinite if it takes more than ``most``."""
    stop = mtcd.Stop(gap=TARGET, iterations=MOST)
    if math.isfinite(most):
        stop = replace(stop, **{"cost" if case.wires is None else "seconds": most})
    setup = replace(case.setup, method=method, method_given=True, stop=stop)
    try:
        if case.wires is None:
            run = setup.train()
        else:
            if method.has_server and not case.wires.has_server:
                return math.inf
            run = simulate(setup, case.wires).run
    except (MtcdError, ArithmeticError):  # it cannot work here
        return math.inf
    if run.status != "converged":
        return math.inf
    return run.final.cost if case.wires is None else run.final.seconds


def best(case: Planned) -> tuple[float, str]:
    """The least of the grid, and its settings."""
    found: list[tuple[float, Any]] = []
    least = math.inf
    for method in grid(case):
        took = amount(case, method, 1.2 * least)
        if math.isfinite(took):
            found.append((took, method))
            least = min(least, took)

    found.sort(key=lambda one: one[0])
    # half the bytes: where links are slow, for the best few
    if case.wires is not None:
        for _, method in found[:3]:
            with suppress(MtcdError, TypeError):  # trees have one form of numbers
                halved = replace(method, transport="delta32")
                found.append((amount(case, halved, least), halved))
    took, method = min(found, key=lambda one: one[0])
    return took, repr(method)
