"""`python -m benchmarks.mixed_families`: each party the family that suits its columns, against one
family for all.

Three parties see the same samples. What matters to the label is, at the bank, rectangles in two
columns (trees), at the insurer, many weak linear effects (a linear block), and at the lab, a ripple
across two columns (a network).
"""

from __future__ import annotations

from typing import Any

import numpy as np

import mtcd

SAMPLES, SEEDS = 3000, 3
PARTIES = {"bank": range(6), "insurer": range(6, 46), "lab": range(46, 48)}
TREES: dict[str, Any] = {"kind": "trees", "depth": 4, "learning_rate": 0.1}
LINEAR: dict[str, Any] = {"kind": "linear", "l2": 1.0}
NET: dict[str, Any] = {"kind": "net", "hidden": [16], "l2": 1e-2}
MODELS = {
    "trees at all": dict.fromkeys(PARTIES, TREES),
    "linear at all": dict.fromkeys(PARTIES, LINEAR),
    "net at all": dict.fromkeys(PARTIES, NET),
    "each its own": {"bank": TREES, "insurer": LINEAR, "lab": NET},
}


def table(seed: int) -> mtcd.VerticalData:
    """The samples, a third of them held out."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((SAMPLES, 48))
    bank = 2.5 * ((X[:, 0] > 0.3) & (X[:, 1] < 0.5)) + 1.5 * (np.abs(X[:, 2]) > 1.2)
    insurer = X[:, 6:46] @ rng.normal(scale=0.25, size=40)
    lab = 2.0 * np.sin(1.5 * (X[:, 46] + X[:, 47]))
    score = bank + insurer + lab - 1.5
    y = rng.random(SAMPLES) < 1 / (1 + np.exp(-score))
    return mtcd.split(X, y.astype(int), {name: list(own) for name, own in PARTIES.items()}).holdout(
        1 / 3, seed
    )


def measured(parties: dict[str, Any], seed: int) -> tuple[float, float, int]:
    """AUC and log loss on the held-out samples, where the log loss was best, and hops until
    then."""
    data = table(seed)
    best = mtcd.KeepBest(on="test_log_loss")
    run = mtcd.train(
        data,
        mtcd.Mixed("logistic", parties),
        "path",
        mtcd.STCD(walk="tour", local_updates=1),
        mtcd.Stop(iterations=360),
        seed=seed,
        metrics=("log_loss",),
        callbacks=[best, mtcd.EarlyStopping(on="test_log_loss", patience=15)],
    )
    found = run.evaluate(data.test)
    return found["auc"], found["log_loss"], run.final.iteration


def main() -> None:
    """Print a table."""
    print(f"{'models':16} {'test AUC':>9} {'sd':>7} {'log loss':>9} {'hops':>6}")
    for name, parties in MODELS.items():
        found = np.array([measured(parties, seed) for seed in range(SEEDS)])
        auc, loss, hops = found.mean(axis=0)
        print(f"{name:16} {auc:9.4f} {found[:, 0].std():7.4f} {loss:9.4f} {hops:6.0f}")


if __name__ == "__main__":
    main()
