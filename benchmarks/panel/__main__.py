"""``python -m benchmarks.panel [--only TEXT] [--most 30000]``: messages (and floats, in N) between
clients to gaps of 1e-4 and 1e-8, by methods as they come, by settings by hand, and by anchors on a
tree; then how far each method is from the best by hand and from the best anchor."""

from __future__ import annotations

import argparse

import numpy as np

from benchmarks.panel import anchors, tours
from benchmarks.panel.cases import CASES, Case
from mtcd.models.glm.optimum.optimum import optimum

GAPS = (1e-4, 1e-8)
Found = dict[str, list[tuple[int, int] | None]]
HAND = tuple(f"Q={Q:g}" for Q in tours.BY_HAND)
FAR = 1.25
"""A method loses a case if it takes more than so many times the messages of the best by hand."""


def measured(case: Case, most: int) -> Found:
    """What every method takes."""
    problem = case.model.problem(case.data)
    best = optimum(problem.blocks, problem.labels, problem.loss, problem.penalties).value
    found: Found = {}
    for name, method in tours.methods(case).items():
        found[name] = tours.arrivals(case, method, best, GAPS, most)
    for name in anchors.ANCHORS:
        found[name] = anchors.arrivals(case, name, best, GAPS, most)
    return found


def shown(arrived: tuple[int, int] | None, samples: int) -> str:
    """Messages, and floats in N."""
    if arrived is None:
        return "not reached"
    return f"{arrived[0]:,} ({arrived[1] / samples:,.0f})"


def best_of(found: Found, names: tuple[str, ...], gap: int, what: int) -> float:
    """The least of some methods; infinite if none arrives."""
    reached = [found[name][gap] for name in names]
    return min((float(one[what]) for one in reached if one is not None), default=np.inf)


def ratios(
    results: dict[str, Found], name: str, others: tuple[str, ...], gap: int, what: int
) -> dict[str, float]:
    """By case, what a method takes of the best of others. Cases that none of these reaches are
    left out."""
    found = {}
    for case, result in results.items():
        best = best_of(result, others, gap, what)
        if np.isfinite(best):
            found[case] = best_of(result, (name,), gap, what) / best
    return found


def summary(results: dict[str, Found], own: tuple[str, ...]) -> list[str]:
    """Medians, how many are near, the worst, and the losers."""
    lines = [
        "",
        "| method | against | gap | | median | 95% | within 1.25 | worst |",
        "|---" * 8 + "|",
    ]
    losers: list[str] = []
    for name in own:
        for label, others in (("by hand", HAND), ("anchors", tuple(anchors.ANCHORS))):
            for g, gap in enumerate(GAPS):
                for w, what in enumerate(("messages", "floats")):
                    by_case = ratios(results, name, others, g, w)
                    if not by_case:
                        continue
                    all_of_them = np.array(list(by_case.values()))
                    # a case that is not reached counts as infinite: no interpolation
                    high = np.quantile(all_of_them, 0.95, method="higher")
                    lines.append(
                        f"| {name} | {label} | {gap:g} | {what} | {np.median(all_of_them):.2f} | "
                        f"{high:.2f} | {np.mean(all_of_them <= FAR):.0%} | "
                        f"{all_of_them.max():.2f} |"
                    )
                    if what == "messages":
                        losers += [
                            f"- {name}, {gap:g}, {label}: {case}: {ratio:.2f}"
                            for case, ratio in by_case.items()
                            if ratio > FAR
                        ]
    return [*lines, "", "Losers:", *losers]


def main(cases: tuple[Case, ...] = CASES, arguments: list[str] | None = None) -> None:
    """The whole table, as Markdown."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--most", type=int, default=30_000, help="messages, at most")
    given = parser.parse_args(arguments)

    results: dict[str, Found] = {}
    for case in cases:
        if given.only not in str(case):
            continue
        found = results[str(case)] = measured(case, given.most)
        if len(results) == 1:
            print("| case | gap |", " | ".join(found), "|")
            print("|---" * (2 + len(found)) + "|")
        for g, gap in enumerate(GAPS):
            row = [shown(arrived[g], case.samples) for arrived in found.values()]
            print(f"| {case} | {gap:g} |", " | ".join(row), "|", flush=True)

    own = tuple(name for name in found if name not in HAND and name not in anchors.ANCHORS)
    print("\n".join(summary(results, own)))


if __name__ == "__main__":
    main()
