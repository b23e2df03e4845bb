"""``python -m benchmarks.planner [--only TEXT] [--budget 60] [--by-hand FILE]``: what a plan takes
of the best of a grid by hand, in 20 cases of cost and 20 of time, and the CPU seconds of a plan."""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from time import process_time

import numpy as np

from benchmarks.planner.by_hand import amount, best
from benchmarks.planner.cases import COST, LARGE, TARGET, TIME, Planned
from mtcd.planner.planning import plan

NEAR = 1.3


def best_of(case: Planned, file: Path) -> tuple[float, str]:
    """The best by hand, which is kept in a file: it takes longer than all plans."""
    known = {}
    if file.exists():
        known = json.loads(file.read_text())
    if str(case) not in known:
        known[str(case)] = best(case)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(known, indent=1))
    least, name = known[str(case)]
    return least, name


def planned(case: Planned, budget: float) -> tuple[float, str, float]:
    """What the proposed method takes, its settings, and the CPU seconds of the plan."""
    _ = case.wires
    began = process_time()
    found = plan(case.setup, target=TARGET, budget=budget, links=case.wires)
    seconds = process_time() - began - found.optimum_seconds
    return amount(case, found.chosen.method), repr(found.chosen.method), seconds


def table(cases: Sequence[Planned], budget: float, file: Path, details: bool) -> list[float]:
    """A row for each case; the ratios."""
    print("| case | by hand | plan | ratio | CPU s |\n|---|---|---|---|---|")
    ratios = []
    for case in cases:
        by_hand, name = best_of(case, file)
        if budget <= 0:
            continue
        took, proposed, seconds = planned(case, budget)
        ratios.append(took / by_hand)
        print(f"| {case} | {by_hand:.4g} | {took:.4g} | {ratios[-1]:.2f} | {seconds:.1f} |")
        if details:
            print(f"  by hand: {name}\n  plan:    {proposed}")
        print(end="", flush=True)
    if ratios:
        high = np.quantile(ratios, 0.95, method="higher")
        near = np.mean(np.array(ratios) <= NEAR)
        print(
            f"\nMedian {np.median(ratios):.2f}, 95% {high:.2f}, worst {max(ratios):.2f}; "
            f"{near:.0%} within {NEAR}.\n"
        )
    return ratios


def main(arguments: list[str] | None = None) -> None:
    """Both tables, and the CPU seconds for a larger problem."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--budget", type=float, default=30.0, help="CPU seconds; 0: by hand only")
    parser.add_argument("--by-hand", type=Path, default=Path("runs/planner/by-hand.json"))
    parser.add_argument("--details", action="store_true", help="show the settings")
    given = parser.parse_args(arguments)

    # of trainings that diverge: a grid by hand has some
    warnings.simplefilter("ignore")
    for title, cases in (("Cost", COST), ("Time", TIME)):
        chosen = [case for case in cases if given.only in str(case)]
        if chosen:
            print(f"{title}\n")
            table(chosen, given.budget, given.by_hand, given.details)
    if given.budget > 0 and given.only in str(LARGE):
        _, proposed, seconds = planned(LARGE, given.budget)
        print(f"{LARGE}, N = 1,000, d = 2,000: {seconds:.1f} CPU s: {proposed}")


if __name__ == "__main__":
    main()
