"""What label differential privacy costs: ``MTCD_DATA=FOLDER python -m benchmarks.label_dp``.

Test AUC of logistic regression and of trees on tables of two parties or more, by the epsilon of the
labels. The trainings are those of ``mtcd.train``; test labels are the true ones. Tables whose files
are not in the folder are left out; that of scikit-learn is always there. Writes the table of
docs/privacy.md. With ``--soft 0.125``: logistic regression on soft labels of this standard
deviation, and on the labels themselves.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_svmlight_file
from sklearn.metrics import roc_auc_score

import mtcd
from benchmarks.leak_attacks import Matrix
from mtcd.privacy.label_privacy import LabelSource

EPSILONS = (1.0, 2.0, 4.0, 8.0, None)
TEST_SHARE = 0.3
STOP = mtcd.Stop(gap=1e-4, iterations=3000)
HOPS = 100
MOST_ROWS = 6000
"""Rows of a table that are drawn; all of smaller ones."""
Table = tuple[Matrix, Matrix, int]
"""The columns, labels of 0 and 1, and the number of parties."""


def joined(folder: Path, name: str, label: str, threshold: float) -> Table:
    """Two tables of parties, joined by their ids."""
    import polars as pl

    tables = [
        pl.read_parquet(folder / f"{name}_hetero_{role}.parquet") for role in ("guest", "host")
    ]
    both = tables[0].join(tables[1], on="id", suffix="_host").drop("id")
    y = (both[label].to_numpy() > threshold).astype(int)
    return both.drop(label).to_numpy().astype(float), y, 2


def credit(folder: Path) -> Table:
    """Who defaults on a credit: 30,000 people."""
    return joined(folder, "default_credit", "y", 0.5)


def visits(folder: Path) -> Table:
    """Who sees a doctor in two weeks: 5,190 people."""
    return joined(folder, "dvisits", "doctorco", 0.5)


def incomes(folder: Path) -> Table:
    """a9a: who earns more than 50,000 dollars; 10,000 people."""
    parts = [load_svmlight_file(str(folder / f"a9a_vertical_p{k}.gz")) for k in range(2)]
    # each part counts its columns from 1
    whole = np.hstack([np.asarray(X[:10_000].todense()) for X, _ in parts])
    y = parts[0][1][:10_000]
    return whole[:, whole.std(axis=0) > 0], (y > 0).astype(int), 2


def news(folder: Path) -> Table:
    """BASEHOCK: which of two news groups, from the 200 words that vary most."""
    with np.load(folder.parent / "basehock" / "basehock.npz") as file:
        X, y = np.asarray(file["X"], float), file["y"]
    often = np.sort(np.argsort(-X.std(axis=0))[:200])
    return np.log1p(X[:, often]), (y == y.max()).astype(int), 4


def air(folder: Path) -> Table:
    """Whether fine dust exceeds 75 at one station of Beijing, from what three others measure."""
    with np.load(folder.parent / "beijing_air" / "beijing_air.npz", allow_pickle=False) as file:
        # hours, stations and channels, of which fine dust is the first
        values = np.asarray(file["X"], float)
    hours = np.random.default_rng(0).permutation(len(values))[:12_000]
    X = np.hstack([values[hours, station, 2:] for station in (1, 2, 3)])
    y = values[hours, 0, 0]
    whole = np.isfinite(X).all(axis=1) & np.isfinite(y)
    return X[whole], (y[whole] > 75).astype(int), 3


def cancer(folder: Path) -> Table:
    """Which of 569 tumours is benign."""
    X, y = load_breast_cancer(return_X_y=True)
    return X, y, 3


TABLES: dict[str, tuple[Callable[[Path], Table], int]] = {
    "credit": (credit, 1),
    "doctor visits": (visits, 5),
    "569 tumours": (cancer, 10),
    "incomes (a9a)": (incomes, 1),
    "news (BASEHOCK)": (news, 1),
    "fine dust (Beijing)": (air, 1),
}
"""Each with the number of splits that are averaged."""


def scores(model: str, table: Table, epsilon: float | None, split: int) -> float:
    """The test AUC of one split, with draws of its own."""
    X, y, parties = table
    rng = np.random.default_rng(split)
    order = rng.permutation(len(y))[:MOST_ROWS]
    held = order[: int(TEST_SHARE * len(order))]
    kept = order[len(held) :]
    data = mtcd.split(X[kept], y[kept], clients=parties)
    privacy = None
    if epsilon is not None:
        noise = mtcd.LabelDP(epsilon=epsilon, insecure_seeded_draws=True)
        privacy = mtcd.Privacy(labels=noise)

    train = partial(mtcd.train, data, network="complete", metrics=(), privacy=privacy)
    if model == "logistic":
        run = train(mtcd.Glm("logistic", l2=1.0, intercept=True), stop=STOP, standardise=True)
    else:
        run = train(mtcd.Trees("logistic"), stop=mtcd.Stop(iterations=HOPS))
    return float(roc_auc_score(y[held], np.asarray(run.predict_proba(X[held]))[:, 1]))


def soft_scores(table: Table, soft: float | None, split: int) -> float:
    """The test AUC of logistic regression at the optimum for soft labels, which is that of sealed
    trainings."""
    X, y, parties = table
    rng = np.random.default_rng(split)
    order = rng.permutation(len(y))[:MOST_ROWS]
    held = order[: int(TEST_SHARE * len(order))]
    kept = order[len(held) :]
    labels: Any = y[kept]
    noise = None
    if soft is not None:
        noise = mtcd.SoftLabels(soft=soft, insecure_seeded_draws=True)
        labels = noise.released(labels, LabelSource())

    model = mtcd.Glm("logistic", l2=1.0, intercept=True, label_noise=noise)
    data = mtcd.split(X[kept], labels, clients=parties)
    run = mtcd.train(data, model, network="complete", metrics=(), stop=STOP, standardise=True)
    return float(roc_auc_score(y[held], np.asarray(run.decision_function(X[held]))))


def soft_lines(folder: Path, names: list[str], soft: float) -> Iterator[str]:
    """The rows of the table of soft labels, in Markdown."""
    for name in names:
        read, splits = TABLES[name]
        table = read(folder)
        found = [
            np.mean([soft_scores(table, one, split) for split in range(splits)])
            for one in (soft, None)
        ]
        shown = " | ".join(f"{value:.4f}" for value in found)
        yield f"| {name} | {min(len(table[1]), MOST_ROWS):,} x {table[0].shape[1]} | {shown} |"


def lines(folder: Path, names: list[str]) -> Iterator[str]:
    """The rows of the table, in Markdown."""
    for name in names:
        read, splits = TABLES[name]
        try:
            table = read(folder)
        except FileNotFoundError:
            yield f"| {name} | not there |"
            continue
        for model in ("logistic", "trees"):
            found = [
                np.mean([scores(model, table, epsilon, split) for split in range(splits)])
                for epsilon in EPSILONS
            ]
            shown = " | ".join(f"{value:.3f}" for value in found)
            yield f"| {name} | {min(len(table[1]), MOST_ROWS):,} x {table[0].shape[1]} | {model} | {shown} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=list(TABLES))
    parser.add_argument("--soft", type=float, help="the standard deviation of soft labels")
    given = parser.parse_args()
    folder = Path(os.environ.get("MTCD_DATA", ".")) / "vertical"
    if given.soft is not None:
        print(f"| table | rows x columns | soft {given.soft:g} | none |\n|---|---|---|---|")
        for line in soft_lines(folder, given.tables, given.soft):
            print(line, flush=True)
        return

    heads: list[Any] = ["table", "rows x columns", "model", *(e or "none" for e in EPSILONS)]
    print("| " + " | ".join(map(str, heads)) + " |")
    print("|---" * len(heads) + "|")
    for line in lines(folder, given.tables):
        print(line, flush=True)


if __name__ == "__main__":
    main()
