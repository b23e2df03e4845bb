"""What the theory says of a setting of mtcd or stcd before it runs: numbers, each with what it means."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from mtcd.config.build import Setup
from mtcd.methods.mtcd import MTCD
from mtcd.methods.roaming import StartAt
from mtcd.methods.token_parties import Plan
from mtcd.network.topology import Network
from mtcd.theory.breakeven import Comparison
from mtcd.theory.mixing import mixing_bounds, mixing_time, spectral_gap, stationary
from mtcd.theory.visits import DENSE_SHARE, Roam, inside, lazy_walk, least_visits, start_bound, uniform_roam, walk_bound

# a second or two each; beyond, inspect says that it leaves the number out
VISIT_WORK = 8e9
MIXING_WORK = 1e9
LINKS = 1_000_000
LEFT_OUT = "left out: it would take long here"


class Finding(NamedTuple):
    """A number (None: there is none, and ``shown`` says why), how people see it, and what it means."""

    key: str
    title: str
    value: float | None
    shown: str
    meaning: str


def theory_of(setup: Setup, method: MTCD, plan: Plan) -> list[Finding]:
    """Everything the theory says of this setting: ``method`` is that of ``setup``, settled as ``plan``."""
    network = setup.network
    clusters = method.token_clusters(network, setup.config.seed)
    regions = [tuple(range(network.size))] * plan.tokens if clusters is None else list(clusters)
    found: list[Finding] = []
    if method.walk != "lazy":
        found.append(Finding("pi", "pi, mixing", None, "not computed", "known for the lazy walk only"))
    else:
        if plan.hops is not None:
            roams = [_roam(region, start) for region, start in zip(regions, plan.roaming.starts, strict=True)]
            found += _visits(network, roams, plan.hops, overlap=clusters is None and plan.tokens > 1)
        found += _mixing(network, sorted(set(regions)))
    if plan.hops is None:
        found.append(Finding("breakeven_cost", "pi, break-even", None, "none", "they are about syncs: stcd has none"))
    else:
        comparison = Comparison(network.size, plan.tokens, plan.hops, plan.local_updates, method.batch is None)
        found += _breakeven(comparison, setup.costs.ratio)
    return found


def as_plain(found: Sequence[Finding]) -> dict[str, Any]:
    """For JSON: value and meaning by key; a value that is infinite or left out is null."""
    return {f.key: {"title": f.title, "value": f.value, "shown": f.shown, "meaning": f.meaning} for f in found}


def _finding(key: str, title: str, value: float | None, meaning: str, unit: str = "") -> Finding:
    if value is None:
        return Finding(key, title, None, LEFT_OUT, meaning)
    if math.isinf(value):
        return Finding(key, title, None, "infinite", meaning)
    return Finding(key, title, value, (f"{value:,}" if isinstance(value, int) else f"{value:.4g}") + unit, meaning)


def _roam(region: tuple[int, ...], start: StartAt) -> Roam:
    if start.cumulative is None:
        return uniform_roam(region)
    weights = np.zeros(len(region))
    place = {k: i for i, k in enumerate(region)}
    np.add.at(weights, [place[k] for k in start.clients], np.diff([0.0, *start.cumulative]))
    return Roam(region, tuple((weights / weights.sum()).tolist()))


def _visits(network: Network, roams: Sequence[Roam], S: int, overlap: bool) -> Iterator[Finding]:
    exact = least_visits(network, roams, S) if _work(network, roams, S) <= VISIT_WORK else None
    yield _finding(
        "pi",
        "pi",
        exact and exact.per_token,
        "the least chance that a token visits a client in one iteration, exactly; the theorems promise progress "
        "in proportion to it",
    )
    if overlap:
        yield _finding(
            "pi_any_token",
            "pi, any token",
            exact and exact.any_token,
            "the same for a visit by at least one token; the theorem for overlapping tokens rests on the former",
        )
    yield _finding(
        "pi_start_bound", "pi, from starts", start_bound(roams), "the paper's bound p_0: the least likely start"
    )
    yield _finding(
        "pi_walk_bound",
        "pi, from walks",
        walk_bound(network, roams, S),
        "the paper's bound p_0 (1 + d_max)^-S from the likeliest start; 0 where S may not be above the diameter",
    )


def _work(network: Network, roams: Sequence[Roam], S: int) -> float:
    """Multiplications that the exact pi takes; those of dense products count less, being quicker."""
    total = 0.0
    for roam in set(roams):
        K = len(roam.clients)
        entries = K + sum(len(network.neighbours[k]) for k in roam.clients)
        total += S * K * (entries if entries <= DENSE_SHARE * K * K else K * K / 8)
    return total


def _mixing(network: Network, regions: Sequence[tuple[int, ...]]) -> Iterator[Finding]:
    where = "" if len(regions) == 1 else ", in the slowest cluster"
    gap: float | None = None
    hops: float | None = None
    low: float | None = None
    high: float | None = None
    if network.edges <= LINKS:
        chains = [(P, stationary(P)) for P in (lazy_walk(inside(network, region)) for region in regions)]
        gaps = [spectral_gap(P, share) for P, share in chains]
        bounds = [mixing_bounds(g, float(share.min())) for g, (_, share) in zip(gaps, chains, strict=True)]
        gap, low, high = min(gaps), max(b[0] for b in bounds), max(b[1] for b in bounds)
        if gap == 0 or sum(len(region) ** 3 for region in regions) <= MIXING_WORK:
            hops = max(mixing_time(P, share) for P, share in chains)
    yield _finding(
        "spectral_gap",
        "spectral gap",
        gap,
        f"how much of what a walk remembers of its start a hop wipes out (0: nothing, 1: all){where}",
    )
    near = f"until where a token is says little of where it started (total variation 1/4){where}"
    if hops is not None or high is None:
        yield _finding("mixing_time", "mixing time", hops, near, " hop(s)")
    else:
        shown = f"{low:.3g} to {high:.3g} hops"
        yield Finding("mixing_time", "mixing time", None, shown, f"{near}; bounds from the gap")


def _breakeven(comparison: Comparison, ratio: float) -> Iterator[Finding]:
    cost, time = comparison.cost_ratio, comparison.time_ratio
    if math.isinf(cost):
        never = "with as many tokens as clients no message to the server is saved"
        yield _finding("breakeven_cost", "break-even, cost", cost, never)
        yield _finding("breakeven_time", "break-even, time", time, never)
        return
    verdict = "no dearer" if ratio >= cost else "dearer"
    saved = "(2K - 2Γ)" if comparison.full_batch else "(K - Γ)"
    yield _finding(
        "breakeven_cost",
        "break-even, cost",
        cost,
        f"S Γ/{saved}, the R_C from which an iteration costs no more than a client-server round; "
        f"with R_C = {ratio:g} it is {verdict}",
    )
    yield _finding(
        "breakeven_time",
        "break-even, time",
        time,
        f"S/{saved}, the same for time: how many hops a message to the server must last at least",
    )
