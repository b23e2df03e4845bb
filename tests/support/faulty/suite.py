"""The long suite: federations of 8 to 16 parties, by every method, over several networks, and more
than 200 faults."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from faulty.plans import Plan
from faulty.runs import (
    Happened,
    Say,
    run_to_the_limit,
    run_trees,
    run_undisturbed,
    run_with_faults,
    run_without_server,
    run_without_some,
)
from faulty.sealed import check_sealed

LOGISTIC = {"kind": "logistic", "l2": 0.3}
RIDGE = {"kind": "ridge", "alpha": 3.0}
STCD = {"kind": "stcd"}
CLUSTERS = {"kind": "mtcd", "tokens": 2, "hops": 8, "clusters": "auto", "stepsize": 0.004}
AVERAGE = {"kind": "mtcd", "tokens": 2, "hops": 8, "combine": "average", "local_updates": 3}
VISITORS = {"kind": "mtcd", "tokens": 2, "hops": 8, "combine": "visitors", "stepsize": 0.004}
OPTIMAL = {"kind": "mtcd", "tokens": 2, "hops": 8, "combine": "optimal", "local_updates": 3}
MEMORY = {
    "kind": "mtcd",
    "tokens": 3,
    "hops": 6,
    "clusters": "balanced",
    "walk": "tour",
    "combine": "memory",
    "local_solver": "newton",
}
TOUR = {"kind": "stcd", "walk": "tour"}
CONJUGATE = {**TOUR, "acceleration": "conjugate"}
TWIN = {**TOUR, "acceleration": "twin"}
DCPA = {"kind": "dcpa"}
TREE_CG = {"kind": "tree-cg", "degree": 3}
ACCELERATED = {"kind": "svfl", "acceleration": "conjugate"}
NETWORK = {"kind": "split", "client": "mlp", "optimiser": {"kind": "SGD", "momentum": 0.5}}
SPLIT_MTCD = {"kind": "mtcd", "tokens": 2, "hops": 8, "clusters": "auto", "stepsize": 0.02}
# auto is smaller where nobody knows all data
SVFL = {"kind": "svfl", "local_updates": 2, "stepsize": 0.003}
TREES = {"kind": "trees", "loss": "logistic", "min_samples": 5, "learning_rate": 0.1, "depth": 3}
GRID, CYCLE, COMPLETE, PATH = (
    {"kind": "grid"},
    {"kind": "cycle"},
    {"kind": "complete"},
    {"kind": "path"},
)
MASKED, DOUBLE_MASKED = {"aggregation": "masked"}, {"aggregation": "double-masked"}


def chords(parties: int) -> dict[str, Any]:
    """A cycle in which every second one is also linked with the one opposite."""
    around = [[k, (k + 1) % parties] for k in range(parties)]
    across = [[k, k + parties // 2] for k in range(0, parties // 2, 2)]
    return {"links": [[f"p{a}", f"p{b}"] for a, b in around + across]}


def plan(
    method: dict[str, Any],
    network: dict[str, Any],
    parties: int,
    model: dict[str, Any],
    **rest: Any,
) -> Plan:
    return Plan(method, network, parties, model, **{"samples": 60, **rest})


Run = Callable[[Path, Say], Happened]


def _struck(made: Plan, faults: int, seed: int, early: bool = False) -> Run:
    return lambda folder, say: run_with_faults(folder, made, faults, seed, early, say)


def _away(made: Plan, away: tuple[int, ...]) -> Run:
    return lambda folder, say: run_without_some(folder, made, away, say)


def _alone(made: Plan, kills: int) -> Run:
    return lambda folder, say: run_without_server(folder, made, kills, say)


def _ending(made: Plan, kills: int, seed: int) -> Run:
    return lambda folder, say: run_to_the_limit(folder, made, kills, seed, say)


def _networks(
    method: dict[str, Any], network: dict[str, Any], iterations: int, faults: int, seed: int
) -> Run:
    from faulty.networks import check_networks

    made = plan(method, network, 8, NETWORK, iterations=iterations)
    return lambda folder, say: run_undisturbed(folder, made, faults, seed, check_networks, say)


def _sealed(
    method: dict[str, Any],
    network: dict[str, Any],
    parties: int,
    faults: int,
    seed: int,
    **rest: Any,
) -> Run:
    made = plan(
        {**method, "walk": "tour"}, network, parties, LOGISTIC, privacy={"mode": "sealed"}, **rest
    )
    return lambda folder, say: run_undisturbed(folder, made, faults, seed, check_sealed, say)


def _trees(method: dict[str, Any], network: dict[str, Any], faults: int, seed: int) -> Run:
    made = plan(method, network, 4, TREES)
    return lambda folder, say: run_trees(folder, made, faults, seed, say)


SUITE: dict[str, Run] = {
    "stcd, cycle with chords, K=8": _struck(plan(STCD, chords(8), 8, LOGISTIC), 25, 1),
    "stcd, cycle, K=8, struck from the start": _struck(
        plan(STCD, CYCLE, 8, RIDGE, alignment="psi"), 20, 2, True
    ),
    "stcd, grid, K=12": _struck(plan(STCD, GRID, 12, RIDGE), 25, 3),
    "stcd, complete, K=10": _struck(plan(STCD, COMPLETE, 10, RIDGE), 20, 4),
    "mtcd, clusters, erdos-renyi, K=16": _struck(
        plan(CLUSTERS, {"kind": "erdos-renyi", "p": 0.4}, 16, RIDGE), 25, 5
    ),
    "mtcd, clusters, cycle, K=8, struck from the start": _struck(
        plan(CLUSTERS, CYCLE, 8, RIDGE, alignment="psi"), 20, 6, True
    ),
    "mtcd, average, grid, K=9": _struck(plan(AVERAGE, GRID, 9, LOGISTIC), 25, 7),
    "mtcd, average, complete, K=12": _struck(plan(AVERAGE, COMPLETE, 12, RIDGE), 20, 8),
    "mtcd, visitors, cycle with chords, K=8": _struck(plan(VISITORS, chords(8), 8, RIDGE), 25, 9),
    "mtcd, mini-batches, K=8": _struck(plan({**CLUSTERS, "batch": 20}, COMPLETE, 8, RIDGE), 20, 13),
    "mtcd, optimal sync, grid, K=8": _struck(plan(OPTIMAL, GRID, 8, RIDGE), 12, 14),
    "mtcd, weights for each cluster, solved blocks, grid, K=8": _struck(
        plan(MEMORY, GRID, 8, LOGISTIC), 12, 31
    ),
    "stcd, tour, cycle with chords, K=8": _struck(plan(TOUR, chords(8), 8, RIDGE), 12, 15),
    "stcd, accelerated tour, cycle, K=8": _struck(plan(CONJUGATE, CYCLE, 8, RIDGE), 12, 16),
    "stcd, twin tour, cycle, K=8": _struck(plan(TWIN, CYCLE, 8, LOGISTIC), 12, 32),
    "dcpa, cycle, K=8": _struck(plan(DCPA, CYCLE, 8, RIDGE), 12, 17),
    "tree-cg, complete, K=8": _struck(plan(TREE_CG, COMPLETE, 8, RIDGE), 12, 29),
    "svfl accelerated, K=8": _struck(plan(ACCELERATED, CYCLE, 8, RIDGE), 12, 30),
    "svfl, K=8": _struck(plan(SVFL, CYCLE, 8, RIDGE), 20, 10),
    "split networks, mtcd, K=8": _networks({**SPLIT_MTCD, "batch": 20}, COMPLETE, 3000, 10, 18),
    "split networks, stcd, K=8": _networks({"kind": "stcd", "stepsize": 0.02}, CYCLE, 3000, 10, 19),
    "masked, svfl, K=8": _struck(plan(SVFL, CYCLE, 8, RIDGE, privacy=MASKED), 12, 22),
    "masked, mtcd, clusters, K=8": _struck(
        plan(CLUSTERS, COMPLETE, 8, RIDGE, privacy=MASKED), 12, 23
    ),
    "masked, mtcd, mini-batches, K=8": _struck(
        plan({**CLUSTERS, "batch": 20}, COMPLETE, 8, RIDGE, privacy=MASKED), 12, 24
    ),
    "double-masked, svfl, K=8": _struck(plan(SVFL, CYCLE, 8, RIDGE, privacy=DOUBLE_MASKED), 16, 27),
    "double-masked, mtcd, mini-batches, K=8": _struck(
        plan({**CLUSTERS, "batch": 20}, COMPLETE, 8, RIDGE, privacy=DOUBLE_MASKED), 16, 28
    ),
    "sealed, the server has the key, K=4": _sealed(
        {"kind": "mtcd"}, COMPLETE, 4, 15, 25, iterations=60, features=30, samples=400
    ),
    "sealed, the label holder has the key, K=3": _sealed(
        STCD, PATH, 3, 10, 26, iterations=40, features=80, samples=200
    ),
    "trees, stcd, cycle, K=4": _trees(STCD, CYCLE, 8, 20),
    "trees, mtcd, average, complete, K=4": _trees({**AVERAGE, "local_updates": 1}, COMPLETE, 8, 21),
    "stcd, one never comes back": _away(plan(STCD, chords(8), 8, RIDGE), (3,)),
    "stcd, two never come back": _away(plan(STCD, COMPLETE, 8, RIDGE), (3, 6)),
    "mtcd, clusters, one never comes back": _away(plan(CLUSTERS, COMPLETE, 8, RIDGE), (3,)),
    "mtcd, average, two never come back": _away(plan(AVERAGE, COMPLETE, 8, RIDGE), (2, 5)),
    "mtcd, average, the server is away": _alone(plan(AVERAGE, GRID, 8, RIDGE), 5),
    "mtcd, clusters, the server is away": _alone(plan(CLUSTERS, COMPLETE, 8, RIDGE), 5),
    "stcd, killed at the end": _ending(plan(STCD, chords(8), 8, RIDGE, iterations=1500), 12, 11),
    "mtcd, killed at the end": _ending(plan(AVERAGE, GRID, 8, RIDGE, iterations=400), 12, 12),
}
