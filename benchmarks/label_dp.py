"""What label differential privacy costs: ``MTCD_DATA=FOLDER python -m benchmarks.label_dp``.

Test AUC of logistic regression and of trees on tables of two parties or more, by the epsilon of the
labels. The trainings are those of ``mtcd.train``. As somebody would who has randomised labels only,
the l2 of logistic regression and the least number of samples in a leaf of trees are those with the
best AUC on validation rows, by the randomised labels of these; then all but the test rows are trained on. Test
labels are the true ones. Averages over several splits, with standard errors.

Tables whose files are not in the folder are left out; that of scikit-learn is always there. Writes
the table of docs/privacy.md. ``--rows 6000`` takes fewer rows, ``--untuned`` the defaults: l2 = 1 and 20 samples.
With ``--soft 0.125``: logistic regression on soft labels of this standard deviation, and on the
labels themselves.
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
from mtcd.core.arrays import Rows
from mtcd.models.label_noise import with_noise
from mtcd.privacy.settings import LabelSource

EPSILONS = (1.0, 2.0, 4.0, 8.0, None)
TEST_SHARE = 0.3
VALIDATION_SHARE = 0.25
"""Of the rows that are not test rows."""
STOP = mtcd.Stop(gap=1e-4, iterations=3000)
HOPS = 100
SETTINGS = {"logistic": (1.0, 10.0, 100.0, 1000.0), "trees": (20, 100, 400)}
"""The l2 of logistic regression, and the least number of samples in a leaf of trees: noise on
labels asks for more of both."""
UNTUNED = {"logistic": (1.0,), "trees": (20,)}
MOST_ROWS = 30_000
"""Rows of a table that are drawn; all of smaller ones."""
Settings = dict[str, tuple[float, ...]]
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
    "credit": (credit, 5),
    "doctor visits": (visits, 10),
    "569 tumours": (cancer, 20),
    "fine dust (Beijing)": (air, 5),
    "incomes (a9a)": (incomes, 5),
    "news (BASEHOCK)": (news, 5),
}
"""Each with the number of splits that are averaged."""


def scores(
    kind: str,
    table: Table,
    epsilon: float | None,
    split: int,
    settings: Settings = SETTINGS,
    rows: int = MOST_ROWS,
) -> float:
    """The test AUC of one split, with draws of its own.

    Parameters
    ----------
    kind : str
        'logistic' or 'trees'.
    table : Table
        The whole table.
    epsilon : float, optional
        That of the labels; None without label differential privacy.
    split : int
        Draws the rows.
    settings : Settings
        Those of which one is chosen.
    rows : int
        How many rows are drawn at most.
    """
    X, y, parties = table
    held, kept = parts(len(y), split, rows)
    noise = None
    labels: Any = y[kept]
    if epsilon is not None:
        wanted = mtcd.LabelDP(epsilon=epsilon, insecure_seeded_draws=True)
        noise = mtcd.Privacy(labels=wanted).labels
        # once for the table: the same labels for validation and for the model
        labels = noise.released(labels, LabelSource())

    def score(setting: float, trained: Rows, asked: Matrix, truth: Any) -> float:
        data = mtcd.split(X[kept[trained]], labels[trained], clients=parties)
        train = partial(mtcd.train, data, network="complete", metrics=())
        if kind == "logistic":
            model = with_noise(mtcd.Glm("logistic", l2=setting, intercept=True), noise)
            run = train(model, stop=STOP, standardise=True)
        else:
            model = with_noise(mtcd.Trees("logistic", min_samples=int(setting)), noise)
            run = train(model, stop=mtcd.Stop(iterations=HOPS))
        return float(roc_auc_score(truth, np.asarray(run.predict_proba(asked))[:, 1]))

    everything = np.arange(len(kept))
    best = settings[kind][0]
    if len(settings[kind]) > 1:
        count = int(VALIDATION_SHARE * len(kept))
        apart, others = everything[:count], everything[count:]
        found = [score(one, others, X[kept[apart]], labels[apart]) for one in settings[kind]]
        best = settings[kind][int(np.argmax(found))]

    return score(best, everything, X[held], y[held])


def parts(count: int, split: int, rows: int = MOST_ROWS) -> tuple[Rows, Rows]:
    """The test rows of a split, and all others."""
    order = np.random.default_rng(split).permutation(count)[:rows]
    held = order[: int(TEST_SHARE * len(order))]
    return held, order[len(held) :]


def soft_scores(table: Table, soft: float | None, split: int) -> float:
    """The test AUC of logistic regression at the optimum for soft labels, which is that of sealed
    trainings."""
    X, y, parties = table
    held, kept = parts(len(y), split)
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


def lines(folder: Path, names: list[str], settings: Settings, rows: int) -> Iterator[str]:
    """The rows of the table, in Markdown."""
    for name in names:
        read, splits = TABLES[name]
        try:
            table = read(folder)
        except FileNotFoundError:
            yield f"| {name} | not there |"
            continue
        size = f"{min(len(table[1]), rows):,} x {table[0].shape[1]}"
        for kind in settings:
            cells = []
            for epsilon in EPSILONS:
                found = [
                    scores(kind, table, epsilon, split, settings, rows) for split in range(splits)
                ]
                error = np.std(found, ddof=1) / np.sqrt(splits)
                cells.append(f"{np.mean(found):.3f} ± {error:.3f}")
            yield f"| {name} | {size} | {splits} | {kind} | {' | '.join(cells)} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=list(TABLES))
    parser.add_argument("--rows", type=int, default=MOST_ROWS, help="rows that are drawn at most")
    parser.add_argument("--untuned", action="store_true", help="l2 = 1 and 20 samples in a leaf")
    parser.add_argument("--models", nargs="+", default=list(SETTINGS), choices=list(SETTINGS))
    parser.add_argument("--soft", type=float, help="the standard deviation of soft labels")
    given = parser.parse_args()
    folder = Path(os.environ.get("MTCD_DATA", ".")) / "vertical"
    if given.soft is not None:
        print(f"| table | rows x columns | soft {given.soft:g} | none |\n|---|---|---|---|")
        for line in soft_lines(folder, given.tables, given.soft):
            print(line, flush=True)
        return

    heads: list[Any] = ["table", "rows x columns", "splits", "model"]
    heads += [one or "none" for one in EPSILONS]
    print("| " + " | ".join(map(str, heads)) + " |")
    print("|---" * len(heads) + "|")
    chosen_from = UNTUNED if given.untuned else SETTINGS
    settings = {kind: chosen_from[kind] for kind in given.models}
    for line in lines(folder, given.tables, settings, given.rows):
        print(line, flush=True)


if __name__ == "__main__":
    main()
