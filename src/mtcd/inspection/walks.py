"""Properties of a walk for mtcd inspect: spectral gap, mixing time, hitting time and cover time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from mtcd.core.terminal.findings import TheoryFinding, finding, not_known
from mtcd.network.topology import Network
from mtcd.network.walks.facts import Chain, Facts, TourTimes
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
    where = ""
    if len(walks) > 1:
        where = ", in the slowest cluster"

    known = [facts for region, walk in walks if (facts := facts_of(walk, network, region))]
    if len(known) < len(walks):
        yield not_known("mixing_time", "mixing time")
        yield not_known("hitting_time", "hitting time")
        yield not_known("cover", "cover time")
        return

    # a tour has no randomness to mix, but exact times
    tours = [times for facts in known if (times := facts.tour())]
    if tours:
        yield from _touring(tours, where)
        return

    no_mixing = known[0].no_mixing  # a training has one walk, so that all clusters agree
    if no_mixing:
        yield TheoryFinding("mixing_time", "mixing time", None, "none", no_mixing)
        sizes = [len(region) for region, _ in walks]
        yield from _getting_about(_hitting_by_link(sizes, known), where)
        return

    chains: list[Chain] = []
    # larger matrices take gigabytes: the numbers are left out then
    if network.edges <= LINKS:
        chains = [chain for facts in known if (chain := facts.chain())]
    yield from _mixing(chains, where, lone)
    yield from _getting_about(_hitting(chains), where)


def _hitting_by_link(sizes: Sequence[int], known: Sequence[Facts]) -> list[tuple[int, float]]:
    """Size and longest hitting time of each cluster, for walks that are chains on links; empty if
    that takes too long."""
    if sum(facts.hitting_work() for facts in known) > LINK_WORK:
        return []
    return [(size, facts.hitting_time()) for size, facts in zip(sizes, known, strict=True)]


def _hitting(chains: Sequence[Chain]) -> list[tuple[int, float]]:
    """The same for walks that are chains on clients."""
    if _work(chains) > HITTING_WORK:
        return []
    return [(chain.share.size, longest_hitting_time(chain)) for chain in chains]


def _work(chains: Sequence[Chain]) -> float:
    """The multiplications of one product of matrices, for all chains."""
    return sum(float(chain.share.size) ** 3 for chain in chains)


def _mixing(chains: list[Chain], where: str, lone: bool) -> Iterator[TheoryFinding]:
    """Spectral gap and mixing time; for stcd also pi_min and the mixing time that equation (5)
    uses."""
    # only a reversible walk has real eigenvalues, and with them a spectral gap
    if all(is_reversible(P, share) for P, share in chains):
        most = MIXING_WORK
        gaps = [spectral_gap(P, share) for P, share in chains]
        forgets = (
            "the rate at which the walk converges to its stationary distribution (0: not at all, as "
            "in a disconnected network or where a walk that never stays alternates between two "
            f"halves; 1: in one hop){where}"
        )
        yield finding("spectral_gap", "spectral gap", min(gaps, default=None), forgets)
    else:
        most = SQUARING_WORK
        gaps = []
        why = "the walk is not reversible: see mixing time"
        yield TheoryFinding("spectral_gap", "spectral gap", None, "none", why)

    pi_min = min((float(share.min()) for _, share in chains), default=None)
    # the usual 1/4
    distances = [DISTANCE]
    if lone and pi_min is not None:
        distances.append(pi_min / 2)  # that of equation (5)

    # a gap of 0 never mixes, which needs no work to know
    exact: list[float | None] = [None] * len(distances)
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
        lows, highs = zip(*bounds, strict=True)
        shown = f"{max(lows):.3g} to {max(highs):.3g} hops"
        meaning = f"{near}; bounds from the gap"
        yield TheoryFinding("mixing_time", "mixing time", None, shown, meaning)
    else:
        yield finding("mixing_time", "mixing time", exact[0], near, " hop(s)")
    if not lone:
        return

    meaning = "the least share of its time that the walk spends at a client"
    yield finding("pi_min", "pi_min", pi_min, meaning)
    bound = math.inf
    if gaps and pi_min:
        _, bound = mixing_bounds(gaps[0], pi_min, pi_min / 2)
    yield _lone_mixing(exact[-1], bound)


def _lone_mixing(exact: float | None, bound: float) -> TheoryFinding:
    key, title = "mixing_time_pi_min", "mixing time, pi_min/2"
    near = "the same to a total variation of pi_min/2, the tau of equation (5)"
    if exact is None and math.isfinite(bound):
        # equation (5) grows with tau: an upper bound keeps its promise true
        most = math.ceil(bound)
        meaning = f"{near}; an upper bound from the spectral gap"
        return TheoryFinding(key, title, most, f"at most {most:,} hops", meaning)
    return finding(key, title, exact, near, " hop(s)")


def _getting_about(times: list[tuple[int, float]], where: str) -> Iterator[TheoryFinding]:
    """Hitting and cover time from the size and longest hitting time of each cluster; empty where
    left out."""
    hitting = max((time for _, time in times), default=None)
    cover = max((cover_bound(time, K) for K, time in times), default=None)
    yield finding(
        "hitting_time",
        "hitting time",
        hitting,
        f"on average, from one client to another, for the two that take longest{where}",
        " hop(s)",
    )
    yield finding(
        "cover",
        "cover time",
        cover,
        "the most that it takes on average until every client has been visited: hitting time times "
        f"1 + 1/2 + ... + 1/(K - 1){where}",
        " hop(s)",
    )


def _touring(tours: Sequence[TourTimes], where: str) -> Iterator[TheoryFinding]:
    length, wait, cover = map(max, zip(*tours, strict=True))
    longest = ""
    if len(tours) > 1:
        longest = ", in the largest cluster"

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
        f"place of a mixing time, for it does not forget its start{where}",
        " hop(s)",
    )
    yield finding(
        "cover",
        "cover time",
        cover,
        "the most until every client has been visited, wherever the tour starts; no chance in "
        f"it{where}",
        " hop(s)",
    )
