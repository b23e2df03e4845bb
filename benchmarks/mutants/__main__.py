"""``python -m benchmarks.mutants --count 300 --seed 0``: a random sample of mutants, and which of them no test notices.

Results are kept in ``runs/mutants``: what is stopped goes on from there; survivors are tried again when tests change.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path
from typing import Any

from benchmarks.mutants.mutations import Mutation, all_mutations
from benchmarks.mutants.near import NEAR
from benchmarks.mutants.results import Results, report
from benchmarks.mutants.trying import Bench

ROOT = Path(__file__).parents[2]
SPARE = 30  # seconds on top of three times what the tests take


def tests_for(bench: Bench, mutation: Mutation) -> list[tuple[str, float]]:
    """Tests near the package that call the function; outside of functions, all that call something of the module."""
    module = mutation.path.removeprefix("src/")
    wanted = f"{module}:{mutation.function}"
    known = {name: facts for test in NEAR[mutation.package] for name, facts in bench.knows(f"tests/{test}.py").items()}
    exact = [(name, seconds) for name, (seconds, calls) in known.items() if wanted in calls]
    if mutation.function:
        return exact
    return [(name, spent) for name, (spent, calls) in known.items() if any(c.startswith(f"{module}:") for c in calls)]


def try_out(bench: Bench, results: Results, mutation: Mutation) -> dict[str, Any]:
    """Whether tests notice it."""
    source = mutation.mutated(ROOT)
    key = mutation.key(ROOT)
    if (known := results.get(key)) is not None:
        return known
    tests = tests_for(bench, mutation)
    limit = int(SPARE + 3 * sum(seconds for _, seconds in tests))
    ended = bench.attempt(mutation.path, source, tests, limit) if tests else None
    killer = next((line for line in ended.said.splitlines() if line.startswith("FAILED ")), "") if ended else ""
    return results.add(
        key,
        place=f"{mutation.path}:{mutation.line}",
        package=mutation.package,
        killed=ended is not None and ended.status != "passed",
        how=ended.status if ended else "no test calls it",
        killer=killer.removeprefix("FAILED "),
        seconds=round(ended.seconds, 1) if ended else 0.0,
        diff=mutation.diff(ROOT),
    )


def main() -> None:
    """Sample, try, report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", default="300", help="how many mutants, or all")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--packages", nargs="*", default=list(NEAR), choices=list(NEAR), help="which to mutate")
    asked = parser.parse_args()
    place = ROOT / "runs" / "mutants"
    place.mkdir(parents=True, exist_ok=True)
    mutations = all_mutations(ROOT, asked.packages)
    count = len(mutations) if asked.count == "all" else min(int(asked.count), len(mutations))
    sample = random.Random(asked.seed).sample(mutations, count)
    print(f"{count} of {len(mutations)} mutants of {', '.join(asked.packages)}", flush=True)
    bench, results, found = Bench(ROOT, place), Results(place / "results.jsonl", ROOT / "tests"), []
    try:
        for number, mutation in enumerate(sample, 1):
            row = try_out(bench, results, mutation)
            found.append(row)
            verdict = "killed" if row["killed"] else "SURVIVED"
            print(f"{number:5} {verdict:9}{row['seconds']:6} s  {row['place']} {mutation.operator}", flush=True)
    except KeyboardInterrupt:
        print("Interrupted; the next run goes on from here.")
    report(found)


if __name__ == "__main__":
    main()
