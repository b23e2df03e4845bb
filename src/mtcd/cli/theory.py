"""What the theory says of a setting of mtcd or stcd before it runs: numbers, each with what it means."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from mtcd.cli.findings import LEFT_OUT, Finding, finding
from mtcd.cli.theory_walk import walk_findings
from mtcd.config.build import Setup
from mtcd.methods.combine import OPTIMAL
from mtcd.methods.hosting import Plan
from mtcd.methods.mtcd import MTCD
from mtcd.methods.roaming import StartAt
from mtcd.network.topology import Network
from mtcd.network.walks import NonBacktrackingWalk, RandomTourWalk, TourWalk, Walk
from mtcd.theory.bounds import Guarantee
from mtcd.theory.breakeven import Comparison
from mtcd.theory.starts import Roam, uniform_roam
from mtcd.theory.stepsize import Smoothness
from mtcd.theory.touring import random_tour_work
from mtcd.theory.visits import DENSE_SHARE, least_visits, start_bound, walk_bound

VISIT_WORK = 8e9  # a second or two; beyond, inspect says that it leaves the number out


def theory_of(setup: Setup, method: MTCD, plan: Plan) -> list[Finding]:
    """Everything the theory says of this setting: ``method`` is that of ``setup``, settled as ``plan``."""
    network = setup.network
    clusters = method.token_clusters(network, setup.config.seed)
    regions = [tuple(range(network.size))] * plan.tokens if clusters is None else list(clusters)
    walks = plan.roaming.walks
    found: list[Finding] = []
    if plan.hops is not None:
        roams = [_roam(region, start) for region, start in zip(regions, plan.roaming.starts, strict=True)]
        found += _visits(network, roams, walks, plan.hops, overlap=clusters is None and plan.tokens > 1)
    found += walk_findings(network, dict(zip(regions, walks, strict=True)))
    if plan.hops is None:
        found.append(Finding("breakeven_cost", "pi, break-even", None, "none", "they are about syncs: stcd has none"))
    else:
        comparison = Comparison(network.size, plan.tokens, plan.hops, plan.local_updates, method.batch is None)
        found += _breakeven(comparison, setup.costs.ratio)
    return found


def _roam(region: tuple[int, ...], start: StartAt) -> Roam:
    if start.cumulative is None:
        return uniform_roam(region)
    weights = np.zeros(len(region))
    place = {k: i for i, k in enumerate(region)}
    np.add.at(weights, [place[k] for k in start.clients], np.diff([0.0, *start.cumulative]))
    return Roam(region, tuple((weights / weights.sum()).tolist()))


def _visits(network: Network, roams: Sequence[Roam], walks: Sequence[Walk], S: int, overlap: bool) -> Iterator[Finding]:
    quick = sum(_work(network, roam, walk, S) for roam, walk in dict(zip(roams, walks, strict=True)).items())
    exact = least_visits(network, roams, S, walks) if quick <= VISIT_WORK else None
    yield finding(
        "pi",
        "pi",
        exact and exact.per_token,
        "the least chance that a token visits a client in one iteration, exactly; the theorems promise progress "
        "in proportion to it",
    )
    if overlap:
        yield finding(
            "pi_any_token",
            "pi, any token",
            exact and exact.any_token,
            "the same for a visit by at least one token; the theorem for overlapping tokens rests on the former",
        )
    yield finding(
        "pi_start_bound", "pi, from starts", start_bound(roams), "the paper's bound p_0: the least likely start"
    )
    if walks[0].length is None:  # no tour
        yield finding(
            "pi_walk_bound",
            "pi, from walks",
            walk_bound(network, roams, S),
            "the paper's bound p_0 (1 + d_max)^-S from the likeliest start; 0 where S may not be above the diameter",
        )


def _work(network: Network, roam: Roam, walk: Walk, S: int) -> float:
    """Multiplications that the exact pi takes; those of dense products count less, others more, as they are slow."""
    K = len(roam.clients)
    if isinstance(walk, TourWalk):
        return 10.0 * min(S, len(walk.tour)) * K
    if isinstance(walk, RandomTourWalk):
        place = {k: i for i, k in enumerate(roam.clients)}
        return 4 * random_tour_work([[place[j] for j in walk.tree[k]] for k in roam.clients], S)
    links = sum(len(network.neighbours[k]) for k in roam.clients)
    if isinstance(walk, NonBacktrackingWalk):
        return 10.0 * S * K * links
    entries = K + links
    return float(S) * K * (entries if entries <= DENSE_SHARE * K * K else K * K / 8)


def guarantee(found: Sequence[Finding], method: MTCD, smoothness: Smoothness, stepsize: float) -> Iterator[Finding]:
    """What the theorems promise with the full batch: 2 Delta/(eta pi T), with the exact pi of the walk."""
    pi = next((f for f in found if f.key == "pi"), None)
    limit = method.stepsize_limit(smoothness)
    ours = method.combine_rule == OPTIMAL
    if pi is None or pi.shown == LEFT_OUT or method.hops is None or method.batch or ours or not limit.proven:
        return
    problem, eta = smoothness.problem, min(stepsize, limit.value)
    start = problem.fit.objective(np.zeros(problem.labels.shape), 0.0)
    which = "this step size" if stepsize <= limit.value else "the step-size limit (for the larger one chosen, nothing)"
    meaning = (
        "what the theorems promise: the mean of |grad f|^2 over T iterations is no more, 2 Δ/(η π T) with η = "
        f"{which} and Δ = f(θ⁰) - f* taken as f(θ⁰) = {start:.4g}"
    )
    if not pi.value:
        yield Finding("guarantee", "guarantee", None, "none", "some client is never visited: pi is 0")
        return
    promise = Guarantee(start, eta, pi.value, method.hops, method.local_updates, smoothness.overall).after(1)
    yield Finding("guarantee", "guarantee", promise, f"{promise:.4g}/T", meaning)


def _breakeven(comparison: Comparison, ratio: float) -> Iterator[Finding]:
    cost, time = comparison.cost_ratio, comparison.time_ratio
    if math.isinf(cost):
        never = "with as many tokens as clients no message to the server is saved"
        yield finding("breakeven_cost", "break-even, cost", cost, never)
        yield finding("breakeven_time", "break-even, time", time, never)
        return
    verdict = "no dearer" if ratio >= cost else "dearer"
    saved = "(2K - 2Γ)" if comparison.full_batch else "(K - Γ)"
    yield finding(
        "breakeven_cost",
        "break-even, cost",
        cost,
        f"S Γ/{saved}, the R_C from which an iteration costs no more than a client-server round; "
        f"with R_C = {ratio:g} it is {verdict}",
    )
    yield finding(
        "breakeven_time",
        "break-even, time",
        time,
        f"S/{saved}, the same for time: how many hops a message to the server must last at least",
    )
