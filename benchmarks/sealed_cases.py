"""Sealed tours on 13 problems: does training still arrive where it should, with the caps on tours?

``python -m benchmarks.sealed_cases [CASE ...]`` (half an hour on one core for all): a line for each
case with the tours to a gap of 1e-4, or with the gap at the cap, and the tours that the same
training takes without a cap. Cases go from 200 to 50,000 samples, from 2 to 8 parties, and have
columns that are scaled by factors from 1e-6 to 1e6. With the real cipher; ``--clear`` without
encryption, which computes the same integers and takes minutes.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import mtcd
from mtcd.privacy.sealed.settings import SealedTours

GAP = 1e-4
FACTORS = 8
MOST = 400
"""Tours that a training without a cap may take."""


@dataclass(frozen=True)
class Case:
    """A problem and where its key is."""

    name: str
    samples: int
    parties: int
    columns: int
    kind: str = "logistic"
    server: bool = True
    l2: float = 1.0
    own: float = 0.6
    """The share of each column that it has for itself; the rest is in eight common factors."""
    spread: float = 0.0
    """Columns are multiplied by 10^u, with u uniform from -spread to spread."""


CASES = (
    Case("small, 2 parties", 200, 2, 12),
    Case("small, 2 parties", 200, 2, 12, server=False),
    Case("small, 8 parties", 200, 8, 24),
    Case("small, 8 parties", 200, 8, 24, server=False),
    Case("ridge", 1000, 3, 30, "ridge"),
    Case("ridge", 1000, 3, 30, "ridge", server=False),
    Case("as large as spambase", 3700, 3, 57),
    Case("as large as spambase", 3700, 3, 57, server=False),
    Case("8 parties", 5000, 8, 80),
    Case("8 parties", 5000, 8, 80, server=False),
    Case("columns from 1e-6 to 1e6", 2000, 4, 40, spread=6.0),
    Case("common factors, hardly more", 2000, 4, 60, l2=0.01, own=0.1),
    Case("many samples", 50_000, 4, 40),
)


def data_of(case: Case, seed: int = 0) -> mtcd.VerticalData:
    """The table, split over the parties."""
    rng = np.random.default_rng(seed)
    factors = rng.standard_normal((case.samples, FACTORS))
    common = factors @ rng.standard_normal((FACTORS, case.columns)) / np.sqrt(FACTORS)
    X = rng.standard_normal((case.samples, case.columns))
    X = case.own * X + np.sqrt(1 - case.own**2) * common

    scores = X @ rng.standard_normal(case.columns) / np.sqrt(case.columns) * 2
    noise = rng.logistic(size=case.samples)
    y = scores + noise if case.kind == "ridge" else (scores + noise > 0).astype(int)
    X = X * 10.0 ** rng.uniform(-case.spread, case.spread, case.columns)
    return mtcd.split(X, y, clients=case.parties)


def trained(case: Case, capped: bool, scheme: str) -> tuple[int, float]:
    """The tours of a training, and its gap at the end."""
    data = data_of(case)
    method = SealedTours(server=case.server, scheme=scheme)  # type: ignore[arg-type]
    if not capped:
        method = Uncapped(**vars(method))
    run = mtcd.train(
        data,
        mtcd.Glm(case.kind, l2=case.l2),
        "complete",
        method,
        mtcd.Stop(gap=GAP, iterations=MOST),
        metrics=(),
    )
    assert run.final.gap is not None
    return run.final.iteration, run.final.gap


class Uncapped(SealedTours):
    """Tours for as long as they are asked for: to compare with, not to be used."""

    def most_tours(self, columns: Sequence[int]) -> int:
        return MOST


def line(case: Case, scheme: str) -> str:
    """What became of a case."""
    started = time.process_time()
    tours, gap = trained(case, True, scheme)
    seconds = time.process_time() - started
    arrived = gap <= GAP
    cap = SealedTours(server=case.server).most_tours([len(x[0]) for x in data_of(case).blocks])
    where = f"{tours} tours" if arrived else f"gap {gap:.1e} at the cap"
    without, at = (tours, gap) if arrived else trained(case, False, "clear")
    beyond = "" if arrived else (f"{without}" if at <= GAP else f"gap {at:.1e} after {without}")
    key = "server" if case.server else "label holder"
    return (
        f"| {case.name} | {key} | {case.samples} | {case.parties} | {case.columns} | {case.l2:g} | {cap} | "
        f"{where} | {beyond} | {seconds:.1f} |"
    )


def main() -> None:
    """A table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", type=int, help="by number, from 1; default: all")
    parser.add_argument("--clear", action="store_true", help="without encryption")
    given = parser.parse_args()
    print(
        "| case | key at | N | K | columns | l2 | cap | to a gap of 1e-4 | without a cap | CPU s |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for number, case in enumerate(CASES, 1):
        if not given.cases or number in given.cases:
            print(line(case, "clear" if given.clear else "bfv"), flush=True)


if __name__ == "__main__":
    main()
