"""What inspect says of a walk: how fast it forgets its start, and how long until it has been everywhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mtcd.cli.findings import Finding, finding
from mtcd.network.topology import Network
from mtcd.network.walks import MetropolisWalk, NonBacktrackingWalk, RandomTourWalk, TourWalk, Walk
from mtcd.theory.chains import Chain, cover_bound, inside, lazy_chain, longest_hitting_time, metropolis_chain
from mtcd.theory.links import longest_link_hitting_time
from mtcd.theory.mixing import mixing_bounds, mixing_time, spectral_gap
from mtcd.theory.touring import random_tour_cover, random_tour_wait, tour_cover, tour_wait

Region = tuple[int, ...]

# a second or two each; beyond, inspect says that it leaves the number out
MIXING_WORK = 1e9
LINK_WORK = 4e9
TOUR_WORK = 1e8
LINKS = 1_000_000


def walk_findings(network: Network, walks: Mapping[Region, Walk]) -> Iterator[Finding]:
    """``walks`` has the walk in each cluster, or the one over all clients."""
    where = "" if len(walks) == 1 else ", in the slowest cluster"
    walk = next(iter(walks.values()))
    if isinstance(walk, TourWalk | RandomTourWalk):
        yield from _touring(list(walks.values()), where)
    elif isinstance(walk, NonBacktrackingWalk):
        depends = "where it goes depends on where it came from, so it is no Markov chain on clients: see hitting time"
        yield Finding("mixing_time", "mixing time", None, "none", depends)
        regions = [inside(network, region) for region in walks]
        work = sum(region.size * (2.0 * region.edges) ** 3 for region in regions)
        quick_regions = regions if work <= LINK_WORK else []
        yield from _getting_about([(r.size, longest_link_hitting_time(r)) for r in quick_regions], where)
    else:
        chains = None
        if network.edges <= LINKS:
            make = metropolis_chain if isinstance(walk, MetropolisWalk) else lazy_chain
            chains = [make(inside(network, region)) for region in walks]
        small = sum(len(region) ** 3 for region in walks) <= MIXING_WORK
        yield from _mixing(chains, small, where)
        quick_chains = chains if chains and small else []
        yield from _getting_about([(chain.share.size, longest_hitting_time(chain)) for chain in quick_chains], where)


def _mixing(chains: list[Chain] | None, small: bool, where: str) -> Iterator[Finding]:
    gap: float | None = None
    hops: float | None = None
    low: float | None = None
    high: float | None = None
    if chains is not None:
        gaps = [spectral_gap(P, share) for P, share in chains]
        bounds = [mixing_bounds(g, float(share.min())) for g, (_, share) in zip(gaps, chains, strict=True)]
        gap, low, high = min(gaps), max(b[0] for b in bounds), max(b[1] for b in bounds)
        if gap == 0 or small:
            hops = max(mixing_time(P, share) for P, share in chains)
    yield finding(
        "spectral_gap",
        "spectral gap",
        gap,
        "how much of what a walk remembers of its start a hop wipes out (0: nothing, in a network in pieces or where "
        f"a walk that never stays alternates between two halves; 1: all){where}",
    )
    near = f"until where a token is says little of where it started (total variation 1/4){where}"
    if hops is not None or high is None:
        yield finding("mixing_time", "mixing time", hops, near, " hop(s)")
    else:
        shown = f"{low:.3g} to {high:.3g} hops"
        yield Finding("mixing_time", "mixing time", None, shown, f"{near}; bounds from the gap")


def _getting_about(times: list[tuple[int, float]], where: str) -> Iterator[Finding]:
    """From the size of each cluster and its longest hitting time; none of them where that would take long."""
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


def _touring(walks: list[Walk], where: str) -> Iterator[Finding]:
    waits, covers, length = [], [], 0
    for walk in walks:
        if isinstance(walk, TourWalk):
            waits.append(tour_wait(walk.tour))
            covers.append(tour_cover(walk.tour) if len(walk.tour) ** 2 <= TOUR_WORK else len(walk.tour))
        elif isinstance(walk, RandomTourWalk):
            waits.append(random_tour_wait(len(walk.tree)))
            covers.append(random_tour_cover(len(walk.tree)))
        length = max(length, walk.length or 0)
    longest = "" if len(walks) == 1 else ", in the largest cluster"
    yield finding("tour_length", "tour length", length, f"until a token is back at its start{longest}", " hop(s)")
    yield finding(
        "longest_wait",
        "longest wait",
        max(waits),
        "the most between two visits of a client, as long as the token goes on; what a tour has in place of a mixing "
        f"time, for it does not forget its start{where}",
        " hop(s)",
    )
    yield finding(
        "cover",
        "cover time",
        max(covers),
        f"the most until every client has been visited, wherever the tour starts; no chance in it{where}",
        " hop(s)",
    )
