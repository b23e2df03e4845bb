"""``python -m benchmarks.mutants --count 300 --seed 0``: a random sample of mutants, and which of them no test notices.

Results are kept in ``runs/mutants``: what is stopped goes on from there; survivors are tried again when tests change.
"""

from __future__ import annotations

import argparse
import hashlib
import random
from collections import Counter
from itertools import accumulate
from pathlib import Path
from typing import Any

import torch

from benchmarks.mutants.mutations import MARK, Mutation, all_mutations
from benchmarks.mutants.near import GPU_ONLY, NEAR
from benchmarks.mutants.results import Results, report
from benchmarks.mutants.trying import Bench

ROOT = Path(__file__).parents[2]
SPARE = 20  # seconds of processor time on top of twice what the tests take: reading the test files takes some


def tests_for(bench: Bench, mutation: Mutation, seconds: float) -> list[tuple[str, float]]:
    """Tests near the package that call the function; outside of functions, all that call something of the module.

    The quickest ones, until they together take so many seconds; the second case of a parametrised test counts as
    taking twice its time, the third three times, so that a hundred quick cases of one test leave time for others.
    """
    module = mutation.path.removeprefix("src/")
    wanted, anything = f"{module}:{mutation.function}", f"{module}:" if not mutation.function else "\0"
    known = {name: facts for test in NEAR[mutation.package] for name, facts in bench.knows(f"tests/{test}.py").items()}
    called = {name: any(c == wanted or c.startswith(anything) for c in calls) for name, (_, calls) in known.items()}
    cases, order = Counter[str](), []
    for spent, name in sorted((spent, name) for name, (spent, _) in known.items() if called[name]):
        cases[name.partition("[")[0]] += 1
        order.append((spent * cases[name.partition("[")[0]], spent, name))
    order.sort()
    ends = accumulate(spent for _, spent, _ in order)
    return [(name, spent) for (_, spent, name), end in zip(order, ends, strict=True) if end - spent < seconds]


def try_out(bench: Bench, results: Results, mutation: Mutation, seconds: float) -> dict[str, Any]:
    """Whether tests notice it."""
    source = mutation.mutated(ROOT)
    key = hashlib.sha256(f"{mutation.path} {source}".encode()).hexdigest()[:16]
    if (known := results.get(key, seconds)) is not None:
        return known
    tests = tests_for(bench, mutation, seconds)
    limit = int(SPARE + 2 * sum(spent for _, spent in tests))
    ended = bench.attempt(mutation.path, source, tests, limit) if tests else None
    killer = next((line for line in ended.said.splitlines() if line.startswith("FAILED ")), "") if ended else ""
    return results.add(
        key,
        seconds,
        place=f"{mutation.path}:{mutation.line}",
        package=mutation.package,
        killed=ended is not None and ended.status != "passed",
        how=ended.status if ended else "no test calls it",
        killer=killer.removeprefix("FAILED "),
        spent=round(ended.seconds, 1) if ended else 0.0,
        diff=mutation.diff(ROOT),
    )


def main() -> None:
    """Sample, try, report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", default="300", help="how many mutants, or all")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--seconds", type=float, default=120.0, help="of tests for each mutant, at most")
    parser.add_argument("--packages", nargs="*", default=list(NEAR), choices=list(NEAR), help="which to mutate")
    parser.add_argument("--modules", nargs="*", default=[""], help="only modules whose path has one of these in it")
    asked = parser.parse_args()
    place = ROOT / "runs" / "mutants"
    place.mkdir(parents=True, exist_ok=True)
    mutations = [one for one in all_mutations(ROOT, asked.packages) if any(part in one.path for part in asked.modules)]
    if torch.cuda.device_count() == 0:  # unlike is_available, this does not set CUDA up before the forks
        mutations = [one for one in mutations if one.path not in GPU_ONLY]
        print(f"No GPU here: {', '.join(GPU_ONLY)} are left out.")
    count = len(mutations) if asked.count == "all" else min(int(asked.count), len(mutations))
    sample = random.Random(asked.seed).sample(mutations, count)
    marked = len(all_mutations(ROOT, asked.packages, marked=True))
    print(f"{count} of {len(mutations)} mutants of {', '.join(asked.packages)}")
    print(f"{marked} more are on lines that say why these change nothing ({MARK.strip()})", flush=True)
    bench, results = Bench(ROOT, place), Results(place / "results.jsonl", ROOT / "tests")
    rows: list[dict[str, Any]] = []
    try:
        for number, mutation in enumerate(sample, 1):
            row = try_out(bench, results, mutation, asked.seconds)
            rows.append(row)
            verdict = "killed" if row["killed"] else "SURVIVED"
            print(f"{number:5} {verdict:9}{row['spent']:6} s  {row['place']} {mutation.operator}", flush=True)
    except KeyboardInterrupt:
        print("Interrupted; the next run goes on from here.")
    report(rows)


if __name__ == "__main__":
    main()
