"""``python -m benchmarks.mutants --count 300 --seed 0``: a random sample of mutants, and which of
them no test notices; ``--slips`` draws from the catalogue of slips that people make instead.

Results are kept in ``runs/mutants``: what is stopped goes on from there; survivors are tried again
when tests change.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import sys
from pathlib import Path

import torch

from benchmarks.mutants.bench import Bench
from benchmarks.mutants.change import Change
from benchmarks.mutants.equivalent import LIST, SLIPS, stale_lines
from benchmarks.mutants.forks import Outcome
from benchmarks.mutants.mutations import GPU_ONLY, PACKAGES, all_mutations
from benchmarks.mutants.results import Results, kept_scores, report
from benchmarks.mutants.slips import Slip, all_slips

ROOT = Path(__file__).parents[2]


def key_of(mutation: Change) -> str:
    """What a result is kept under: another source is another mutant."""
    return hashlib.sha256(f"{mutation.path} {mutation.mutated(ROOT)}".encode()).hexdigest()[:16]


def keep(results: Results, mutation: Change, outcome: Outcome, seconds: float) -> None:
    """Keep and show whether tests notice it."""
    killer = next((line for line in outcome.said.splitlines() if line.startswith("KILLED BY ")), "")
    uncalled = outcome.status == "passed" and (not outcome.said or "ASKED 0" in outcome.said)
    row = results.add(
        key_of(mutation),
        seconds,
        place=f"{mutation.path}:{mutation.line}",
        kind="slip" if isinstance(mutation, Slip) else "random",
        operator=mutation.operator,
        package=mutation.package,
        killed=outcome.status != "passed",
        how="no test calls it" if uncalled else outcome.status,
        killer=killer.removeprefix("KILLED BY "),
        spent=round(outcome.seconds, 1),
        diff=mutation.diff(ROOT),
    )
    verdict = "killed" if row["killed"] else "SURVIVED"
    print(f"{verdict:9}{row['spent']:6} s  {row['place']} {mutation.operator}", flush=True)


def sample_of(asked: argparse.Namespace) -> list[Change]:
    """The mutants to try."""
    changes: list[Change]
    if asked.slips:
        changes = [*all_slips(ROOT, asked.packages)]
        listed = len(all_slips(ROOT, asked.packages, equivalent=True))
    else:
        changes = [*all_mutations(ROOT, asked.packages)]
        listed = len(all_mutations(ROOT, asked.packages, equivalent=True))

    changes = [one for one in changes if any(part in one.path for part in asked.modules)]
    # unlike is_available, this does not set CUDA up before the forks
    if torch.cuda.device_count() == 0:
        changes = [one for one in changes if one.path not in GPU_ONLY]
        print(f"No GPU here: {', '.join(GPU_ONLY)} are left out.")

    count = len(changes) if asked.count == "all" else min(int(asked.count), len(changes))
    what, file = ("slips", SLIPS) if asked.slips else ("mutants", LIST)
    print(f"{count} of {len(changes)} {what} of {', '.join(asked.packages)}")
    print(f"{listed} more are listed as changing nothing ({file.name})")
    for stale in stale_lines(ROOT):
        print(f"not in the source any more: {stale}")
    sys.stdout.flush()

    return random.Random(asked.seed).sample(changes, count)


def main() -> None:
    """Sample, try, report."""
    if sys.version_info >= (3, 12):
        # one profile serves all threads there: nothing tells which test a call belongs to
        raise SystemExit("Mutation tests record calls by thread, which needs Python 3.11.")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", default="300", help="how many mutants, or all")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument(
        "--seconds", type=float, default=120.0, help="of tests for each mutant, at most"
    )
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count(), help="how many to try at a time"
    )
    parser.add_argument(
        "--packages", nargs="*", default=PACKAGES, choices=PACKAGES, help="which to mutate"
    )
    parser.add_argument(
        "--modules", nargs="*", default=[""], help="only modules whose path has one of these in it"
    )
    parser.add_argument(
        "--tests", nargs="*", default=["tests"], help="only tests of these files or folders"
    )
    parser.add_argument(
        "--slips", action="store_true", help="draw from the catalogue of slips (slips.py)"
    )
    asked = parser.parse_args()
    place = ROOT / "runs" / "mutants"
    place.mkdir(parents=True, exist_ok=True)
    sample, results = sample_of(asked), Results(place / "results.jsonl", ROOT / "tests")
    waiting = [one for one in sample if results.get(key_of(one), asked.seconds) is None]
    try:
        for mutation, outcome in Bench(ROOT, place, asked.jobs, asked.tests).try_all(
            waiting, asked.seconds
        ):
            keep(results, mutation, outcome, asked.seconds)
    except KeyboardInterrupt:
        print("Interrupted; the next run goes on from here.")
    rows = [results.get(key_of(one), asked.seconds) for one in sample]
    report((row for row in rows if row is not None), "operator" if asked.slips else "package")
    kept_scores(results)


if __name__ == "__main__":
    main()
