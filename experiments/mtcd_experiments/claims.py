"""The claims of the paper about its figures, each with its check. ``checks.py`` has the checks."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from mtcd_experiments.accuracy_checks import (
    as_accurate_per_epoch,
    cheaper_per_epoch,
    cheaper_to_accuracy,
)
from mtcd_experiments.checks import (
    Check,
    best_changes,
    cheaper,
    does_not_fall_along,
    falls_along,
    gets_below,
    middle_wins,
    not_always_faster,
    rises_along,
    slower_along,
    slower_but_cheaper,
    times_less,
)
from mtcd_experiments.reading import FigureReader, NotThereError, Verdict
from mtcd_experiments.results import Results


@dataclass(frozen=True)
class Claim:
    """One row of the table: the claim, the measured numbers, and whether it holds ('open': not
    decided)."""

    figure: str
    says: str
    measured: str
    holds: Verdict


def check_claims(results: Mapping[str, Results]) -> list[Claim]:
    """All claims about the figures that were run. Those whose cases or curves are gone from a file
    are left out."""
    claims = []
    for name, found in results.items():
        for says, check in CLAIMS.get(name, ()):
            with suppress(NotThereError):
                measured, holds = check(FigureReader(found))
                claims.append(Claim(name, says, measured, holds))
    return claims


NETWORKS = ("complete", "random-0.4", "random-0.2", "grid", "cycle", "path")
TOKENS = ("average-1", "average-2", "average-4", "average-8", "average-16")
HOPS = (1, 2, 4, 16, 64)
HOP_CURVES = tuple(f"hops-{S}" for S in HOPS)
UPDATES = tuple(f"updates-{Q}" for Q in (1, 20, 100, 500, 2500))
SYNCS = ("mtcd-16", "mtcd-64", "mtcd-256", "mtcd-1024")

RIDGE = tuple(f"ridge-{name}" for name in (*NETWORKS, "path-80"))
SPARSE = tuple(f"sparse-{name}" for name in ("complete", "grid", "cycle", "path"))
FAR_APART = ("ridge-cycle", "ridge-path", "ridge-path-80")


def _against_svfl(*ours: str) -> list[tuple[str, Check]]:
    """The claims of the paper about neural networks."""
    return [
        (
            "Per epoch, MTCD is about as accurate as SVFL (at most 2 points behind)",
            as_accurate_per_epoch(ours, "svfl"),
        ),
        (
            "An epoch of MTCD costs less communication than one of SVFL",
            cheaper_per_epoch(ours, "svfl"),
        ),
        (
            "MTCD comes to the same accuracy at a lower communication cost",
            cheaper_to_accuracy(ours, "svfl"),
        ),
    ]


# '(Ours)' marks what the paper does not say, but what its readers will ask
CLAIMS: dict[str, list[tuple[str, Check]]] = {
    "ridge-topologies": [
        ("STCD needs less communication than DCPA on every network", cheaper("stcd", "dcpa")),
        (
            "Per iteration, STCD is not ahead of DCPA on every network",
            not_always_faster("stcd", "dcpa"),
        ),
        ("STCD slows down as the network gets less connected", slower_along(NETWORKS, "stcd")),
        (
            "(Ours) STCD needs less also where DCPA's step sizes are chosen well",
            cheaper("stcd", "dcpa-auto"),
        ),
    ],
    "sparse-logistic": [
        (
            "STCD needs less communication than DCPA on both networks, for each data set",
            cheaper("stcd", "dcpa"),
        ),
        (
            "STCD is slower on the path than on the random network",
            slower_along(("random-0.4", "path"), "stcd"),
        ),
        (
            "The same on BASEHOCK",
            slower_along(("basehock-random-0.4", "basehock-path"), "stcd"),
        ),
        (
            "Proximal steps for the l1 penalty work, though the theory does not cover them",
            gets_below("stcd", 0.1),
        ),
        (
            "(Ours) STCD needs less also where DCPA's step sizes are chosen well",
            cheaper("stcd", "dcpa-auto"),
        ),
    ],
    "path80": [
        (
            "MTCD (Γ=2, S=64) is slower per iteration than SVFL and DCPA, but costs less",
            slower_but_cheaper("methods", "mtcd-64", ("svfl", "dcpa")),
        ),
        (
            "Which method costs least changes with R_C",
            best_changes("methods", ("stcd", "mtcd-64", "svfl", "dcpa")),
        ),
        (
            "(Ours) The same where DCPA's step sizes are chosen well",
            best_changes("methods", ("stcd", "mtcd-64", "svfl", "dcpa-auto")),
        ),
        (
            "The fewer the hops between syncs, the fewer iterations",
            rises_along("hops", SYNCS, "iterations"),
        ),
        (
            "The fewer the hops between syncs, the higher the cost",
            rises_along("hops", SYNCS[::-1], "cost"),
        ),
    ],
    "path40-ratios": [
        (
            "Semi-decentralised training costs less than client-server and decentralised training",
            middle_wins("path", ("mtcd-1", "mtcd-2", "mtcd-4"), ("svfl", "stcd"), (20, 10, 5)),
        ),
        (
            "(Ours) The same where SVFL's step is as small as the paper's for Q = 20 (Q·η = 1e-5)",
            middle_wins(
                "path", ("mtcd-1", "mtcd-2", "mtcd-4"), ("svfl-small", "stcd"), (20, 10, 5)
            ),
        ),
    ],
    "modelnet10": _against_svfl("mtcd-complete", "mtcd-path"),
    "cifar10": _against_svfl("mtcd"),
    "ablation-tokens": [
        (
            "More tokens are faster, until staleness stops it; best step size each",
            falls_along(TOKENS),
        ),
        ("(Ours) The same at one step size for all", falls_along(("same-1", "same-4"))),
        (
            "(Ours) The same with visitors' weights",
            falls_along(("average-1", "visitors-4", "visitors-16")),
        ),
        ("(Ours) More tokens cost less", falls_along(TOKENS, "cost")),
    ],
    "ablation-hops": [
        ("Per hop, more hops between syncs are not faster", does_not_fall_along(HOP_CURVES)),
        ("More hops between syncs need fewer syncs", falls_along(HOP_CURVES, per=HOPS)),
        (
            "More hops between syncs cost less, until staleness stops it",
            falls_along(HOP_CURVES, "cost"),
        ),
    ],
    "beyond": [
        (
            "Ridge, path and cycle: accelerated tours send at least 100 times fewer messages "
            "between clients than STCD",
            times_less("ours", ["stcd"], dict.fromkeys(FAR_APART, 100.0), "messages"),
        ),
        (
            "Ridge, the other networks: at least 10 times fewer",
            times_less(
                "ours",
                ["stcd"],
                dict.fromkeys([c for c in RIDGE if c not in FAR_APART], 10.0),
                "messages",
            ),
        ),
        (
            "Sparse logistic, path and cycle: at least 5 times fewer",
            times_less(
                "ours-l1",
                ["stcd-l1"],
                dict.fromkeys(("sparse-cycle", "sparse-path"), 5.0),
                "messages",
            ),
        ),
        (
            "Ridge: fewer messages than conjugate gradients on a spanning tree",
            times_less("ours", ["tree-cg"], dict.fromkeys(RIDGE, 1.0), "messages"),
        ),
        (
            "Ridge: nowhere do they cost more than STCD or MTCD",
            times_less("ours", ["stcd", "mtcd"], dict.fromkeys(RIDGE, 1.0), "cost"),
        ),
        (
            "Sparse logistic: nowhere do they cost more than STCD or MTCD",
            times_less("ours-l1", ["stcd-l1", "mtcd-l1"], dict.fromkeys(SPARSE, 1.0), "cost"),
        ),
        (
            "Ridge: nor than SVFL, plain or accelerated, or DCPA",
            times_less("ours", ["svfl", "svfl-ours", "dcpa"], dict.fromkeys(RIDGE, 1.0), "cost"),
        ),
        (
            "Sparse logistic: nor than SVFL, plain or accelerated, or DCPA",
            times_less(
                "ours-l1",
                ["svfl-l1", "svfl-ours-l1", "dcpa-l1"],
                dict.fromkeys(SPARSE, 1.0),
                "cost",
            ),
        ),
        (
            "Ridge: accelerated rounds of SVFL cost at least 5 times less than plain ones",
            times_less("svfl-ours", ["svfl"], dict.fromkeys(RIDGE, 5.0), "cost"),
        ),
        (
            "Sparse logistic: accelerated rounds of SVFL cost at least 5 times less than plain ones",
            times_less("svfl-ours-l1", ["svfl-l1"], dict.fromkeys(SPARSE, 5.0), "cost"),
        ),
    ],
    "ablation-local-updates": [
        ("More local updates are faster, until more do not help", falls_along(UPDATES)),
        ("(Ours) More local updates cost less", falls_along(UPDATES, "cost")),
    ],
}
