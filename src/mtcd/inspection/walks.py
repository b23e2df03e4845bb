"""Properties of a walk for mtcd inspect: spectral gap, mixing time, hitting time and cover time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from mtcd.core.terminal.findings import TheoryFinding, finding, not_known
from mtcd.network.topology import Network
from mtcd.network.walks.facts import Chain, TourTimes
from mtcd.network.walks.walk import Walk, facts_of
from mtcd.theory.mixing import (
    DISTANCE,
    cover_bound,
    is_reversible,
    longest_hitting_time,
    mixing_bounds,
    mixing_times,
    spectral_gap,
)

Region = tuple[int, ...]

# operations, one or two seconds each; with more, the number is left out
MIXING_WORK = 3e10
SQUARING_WORK = 1e9  # of walks that are not reversible
HITTING_WORK = 1e9
LINK_WORK = 4e9
LINKS = 1_000_000


def walk_findings(
    network: Network, walks: Sequence[tuple[Region, Walk]], lone: bool = False
) -> Iterator[TheoryFinding]:
    """What is known of the walks: mixing, hitting and cover times.

    Parameters
    ----------
    network
        The network.
    walks
        The walk in each cluster, or those over all clients.
    lone
        Whether it is the walk of stcd, whose theorem needs more.
    """
    where = "" if len(walks) == 1 else ", in the slowest cluster"
    known = [facts for region, walk in walks if (facts := facts_of(walk, network, region))]
    if len(known) < len(walks):
        yield not_known("mixing_time", "mixing time")
        yield not_known("hitting_time", "hitting time")
        yield not_known("cover", "cover time")
    elif tours := [times for facts in known if (times := facts.tour())]:
        yield from _touring(tours, where)
    elif known[0].no_mixing:
        yield TheoryFinding("mixing_time", "mixing time", None, "none", known[0].no_mixing)
        hitting = []
        if sum(facts.hitting_work() for facts in known) <= LINK_WORK:
            for (region, _), facts in zip(walks, known, strict=True):
                hitting.append((len(region), facts.hitting_time()))

        yield from _getting_about(hitting, where)
    else:
        chains: list[Chain] = []
        if network.edges <= LINKS:
            chains = [chain for facts in known if (chain := facts.chain())]
        yield from _mixing(chains, where, lone)

        hitting = []
        if _work(chains) <= HITTING_WORK:
            hitting = [(chain.share.size, longest_hitting_time(chain)) for chain in chains]
        yield from _getting_about(hitting, where)


def _work(chains: Sequence[Chain]) -> float:
    """The multiplications of one product of matrices, for all chains."""
    return sum(float(chain.share.size) ** 3 for chain in chains)


def _mixing(chains: list[Chain], where: str, lone: bool) -> Iterator[TheoryFinding]:
    """Spectral gap and mixing time; for stcd also pi_min and the mixing time that equation (5)
    uses."""
    reversible = all(is_reversible(P, share) for P, share in chains)
    gaps = [spectral_gap(P, share) for P, share in chains] if reversible else []
    forgets = (
        "the rate at which the walk converges to its stationary distribution (0: not at all, as in "
        "a disconnected "
        f"network or where a walk that never stays alternates between two halves; 1: in one "
        f"hop){where}"
    )
    if reversible:
        yield finding("spectral_gap", "spectral gap", min(gaps, default=None), forgets)
    else:
        yield TheoryFinding(
            "spectral_gap",
            "spectral gap",
            None,
            "none",
            "the walk is not reversible: see mixing time",
        )
    pi_min = min((float(share.min()) for _, share in chains), default=None)
    distances = [DISTANCE]
    if lone and pi_min is not None:
        distances.append(pi_min / 2)  # that of equation (5)

    exact: list[float | None] = [None] * len(distances)
    most = MIXING_WORK if reversible else SQUARING_WORK
    if 0.0 in gaps or (chains and _work(chains) <= most):
        times = [mixing_times(*chain, distances) for chain in chains]
        exact = [max(of_chains) for of_chains in zip(*times, strict=True)]

    near = (
        "until the position of a token is nearly independent of its start (total variation 1/4)"
        f"{where}"
    )
    bounds = []
    for gap, (_, share) in zip(gaps, chains, strict=False):  # no gaps of irreversible chains
        bounds.append(mixing_bounds(gap, float(share.min())))

    if exact[0] is None and bounds:
        shown = f"{max(b[0] for b in bounds):.3g} to {max(b[1] for b in bounds):.3g} hops"
        yield TheoryFinding(
            "mixing_time", "mixing time", None, shown, f"{near}; bounds from the gap"
        )
    else:
        yield finding("mixing_time", "mixing time", exact[0], near, " hop(s)")
    if lone:
        yield finding(
            "pi_min",
            "pi_min",
            pi_min,
            "the least share of its time that the walk spends at a client",
        )
        bound = math.inf
        if gaps and pi_min:
            _, bound = mixing_bounds(gaps[0], pi_min, pi_min / 2)
        yield _lone_mixing(exact[-1], bound)


def _lone_mixing(exact: float | None, bound: float) -> TheoryFinding:
    key, title = "mixing_time_pi_min", "mixing time, pi_min/2"
    near = "the same to a total variation of pi_min/2, the tau of equation (5)"
    if exact is None and math.isfinite(bound):
        most = math.ceil(bound)
        return TheoryFinding(
            key,
            title,
            most,
            f"at most {most:,} hops",
            f"{near}; an upper bound from the spectral gap",
        )
    return finding(key, title, exact, near, " hop(s)")


def _getting_about(times: list[tuple[int, float]], where: str) -> Iterator[TheoryFinding]:
    """Hitting and cover time from the size and longest hitting time of each cluster; empty where
    left out."""
    yield finding(
        "hitting_time",
        "hitting time",
        max(time for _, time in times) if times else None,
        f"on average, from one client to another, for the two that take longest{where}",
        " hop(s)",
    )
    yield finding(
        "cover",
        "cover time",
        max(cover_bound(time, K) for K, time in times) if times else None,
        "the most that it takes on average until every client has been visited: hitting time times "
        f"1 + 1/2 + ... + 1/(K - 1){where}",
        " hop(s)",
    )


def _touring(tours: Sequence[TourTimes], where: str) -> Iterator[TheoryFinding]:
    length, wait, cover = (max(times) for times in zip(*tours, strict=True))
    longest = "" if len(tours) == 1 else ", in the largest cluster"
    yield finding(
        "tour_length",
        "tour length",
        length,
        f"until a token is back at its start{longest}",
        " hop(s)",
    )
    yield finding(
        "longest_wait",
        "longest wait",
        wait,
        "the most between two visits of a client, as long as the token goes on; what a tour has in "
        "place of a mixing "
        f"time, for it does not forget its start{where}",
        " hop(s)",
    )
    yield finding(
        "cover",
        "cover time",
        cover,
        f"the most until every client has been visited, wherever the tour starts; no chance in "
        f"it{where}",
        " hop(s)",
    )
