"""``python -m benchmarks.mutants --count 300 --seed 0``: a random sample of mutants, and which of them no test notices.

Results are kept in ``runs/mutants``: what is stopped goes on from there; survivors are tried again when tests change.
"""

from __future__ import annotations

import argparse
import hashlib
import random
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

import torch

from benchmarks.mutants.mutations import MARK, Mutation, all_mutations
from benchmarks.mutants.near import GPU_ONLY, NEAR
from benchmarks.mutants.results import Results, report
from benchmarks.mutants.trying import LONGEST, Bench

ROOT = Path(__file__).parents[2]
SPARE = 20  # seconds of processor time on top of twice what the tests take: reading the test files takes some
QUICK = 2  # seconds: tests near the package that take no longer are asked first


def calling(bench: Bench, mutation: Mutation, files: Iterable[str], longest: float) -> dict[str, float]:
    """The tests of these files that call the function, and how long they take; outside of functions, all that call
    something of the module."""
    module = mutation.path.removeprefix("src/")
    wanted, anything = f"{module}:{mutation.function}", f"{module}:" if not mutation.function else "\0"
    return {
        name: spent
        for file in files
        for name, (spent, calls) in bench.knows(file).items()
        if spent <= longest and any(call == wanted or call.startswith(anything) for call in calls)
    }


def quickest(tests: dict[str, float], seconds: float) -> dict[str, float]:
    """The quickest ones, until they together take so many seconds.

    The second case of a parametrised test counts as taking twice its time, the third three times, so that a hundred
    quick cases of one test leave time for others.
    """
    cases, order = Counter[str](), []
    for spent, name in sorted((spent, name) for name, spent in tests.items()):
        cases[name.partition("[")[0]] += 1
        order.append((spent * cases[name.partition("[")[0]], spent, name))
    order.sort()
    ends = accumulate(spent for _, spent, _ in order)
    return {name: spent for (_, spent, name), end in zip(order, ends, strict=True) if end - spent < seconds}


def stages(bench: Bench, mutation: Mutation, seconds: float) -> Iterator[dict[str, float]]:
    """The tests to ask: quick ones near the package, for a quarter of the time; then the others of all files."""
    near = [f"tests/{test}.py" for test in NEAR[mutation.package]]
    first = quickest(calling(bench, mutation, near, QUICK), seconds / 4)
    yield first
    everywhere = calling(bench, mutation, test_files(), LONGEST)
    yield quickest({name: spent for name, spent in everywhere.items() if name not in first}, seconds)


def test_files() -> list[str]:
    """All of them, from the root of the repository."""
    return sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").glob("test_*.py"))


def try_out(bench: Bench, results: Results, mutation: Mutation, seconds: float) -> dict[str, Any]:
    """Whether tests notice it."""
    source = mutation.mutated(ROOT)
    key = hashlib.sha256(f"{mutation.path} {source}".encode()).hexdigest()[:16]
    if (known := results.get(key, seconds)) is not None:
        return known
    how, said, spent = "no test calls it", "", 0.0
    for tests in filter(None, stages(bench, mutation, seconds)):
        ended = bench.attempt(mutation.path, source, tests, int(SPARE + 2 * sum(tests.values())))
        how, said, spent = ended.status, ended.said, spent + ended.seconds
        if how != "passed":
            break
    killer = next((line for line in said.splitlines() if line.startswith("FAILED ")), "")
    return results.add(
        key,
        seconds,
        place=f"{mutation.path}:{mutation.line}",
        package=mutation.package,
        killed=how not in ("passed", "no test calls it"),
        how=how,
        killer=killer.removeprefix("FAILED "),
        spent=round(spent, 1),
        diff=mutation.diff(ROOT),
    )


def main() -> None:
    """Sample, try, report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", default="300", help="how many mutants, or all")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--seconds", type=float, default=120.0, help="of tests for each mutant, at most")
    parser.add_argument("--jobs", type=int, default=0, help="record all test files beforehand, so many at a time")
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
    if asked.jobs:
        bench.record(test_files(), asked.jobs)
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
