"""Sealed tours to a gap of 1e-3: messages, megabytes and CPU seconds, by the number of parties.

The table has 3,700 samples and 57 columns of two classes, standardised: spambase where a file of it
is given (`python -m benchmarks.sealed spambase.csv`, label last), else a stand-in with skewed,
correlated columns. CPU time is that of all parties together, key generation and preparation
included.
"""

from __future__ import annotations

import csv
import sys
import time
from pathlib import Path

import numpy as np

import mtcd
from mtcd.core.arrays import Array

SAMPLES, COLUMNS = 3700, 57
PARTIES = (2, 3, 8)
L2 = (10.0, 1.0)


def stand_in(seed: int = 0) -> tuple[Array, Array]:
    """Skewed columns with a few common factors, and labels of a logistic model."""
    rng = np.random.default_rng(seed)
    factors = rng.standard_normal((SAMPLES, 8)) @ rng.standard_normal((8, COLUMNS)) / np.sqrt(8)
    X = np.exp(0.8 * (0.6 * factors + 0.8 * rng.standard_normal((SAMPLES, COLUMNS))))
    X = (X - X.mean(0)) / X.std(0)
    scores = X @ (rng.standard_normal(COLUMNS) * 0.6)
    return X, (rng.random(SAMPLES) < 1 / (1 + np.exp(-scores))).astype(float)


def from_file(path: Path) -> tuple[Array, Array]:
    """The first samples, in a random order, of a table of numbers whose last column is the
    label."""
    rows = [
        row
        for row in csv.reader(path.read_text().splitlines())
        if row and not row[0].startswith("@")
    ]
    table = np.random.default_rng(0).permutation(np.array(rows, float))[:SAMPLES]
    X = table[:, :-1]
    return (X - X.mean(0)) / X.std(0), table[:, -1]


def measure(X: Array, y: Array, parties: int, l2: float, gap: float = 1e-3) -> dict[str, float]:
    """One sealed training on the complete network with a server."""
    data = mtcd.split(X, y, clients=parties)
    sealed = mtcd.Privacy(mode="sealed")
    model, method = mtcd.Glm("logistic", l2=l2), mtcd.MTCD(walk="tour")
    # computes f* beforehand
    mtcd.train(data, model, "complete", mtcd.STCD(), mtcd.Stop(gap=1e9), metrics=())
    start = time.process_time()
    run = mtcd.train(
        data,
        model,
        "complete",
        method,
        mtcd.Stop(gap=gap, iterations=200),
        privacy=sealed,
        metrics=(),
    )
    seconds = time.process_time() - start
    return {
        "tours": run.final.iteration,
        "messages": sum(run.ledger.messages("sent").values()),
        "MB": sum(run.ledger.bytes("sent").values()) / 1e6,
        "CPU s": seconds,
        "gap": run.final.gap or 0.0,
    }


def main() -> None:
    """Print the table."""
    X, y = from_file(Path(sys.argv[1])) if len(sys.argv) > 1 else stand_in()
    print(f"N = {len(y)}, d = {X.shape[1]}, gap 1e-3")
    print("| l2 | K | tours | messages | MB | CPU s | gap |\n|---|---|---|---|---|---|---|")
    for l2 in L2:
        for parties in PARTIES:
            m = measure(X, y, parties, l2)
            print(
                f"| {l2:g} | {parties} | {m['tours']:.0f} | {m['messages']:.0f} | {m['MB']:.1f} | "
                f"{m['CPU s']:.1f} | "
                f"{m['gap']:.1e} |"
            )


if __name__ == "__main__":
    main()
