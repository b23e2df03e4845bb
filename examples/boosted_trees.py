"""Boosted trees between three parties, each on its own columns, with missing values and categories
as they are.

`python examples/boosted_trees.py`, with `pip install '.[trees]'` in the clone.
"""

import numpy as np

import mtcd

rng = np.random.default_rng(0)
samples = 2000
age, income = rng.integers(18, 90, samples), rng.normal(50, 12, samples)
city = rng.choice(["Rome", "Oslo", "Lima", "Bonn", "Kyiv"], samples)
claims = rng.poisson(0.8, samples).astype(float)
risk = (
    1.2 * np.isin(city, ["Rome", "Lima"]) + (age > 60) - 0.05 * (income - 50) + 0.6 * (claims > 1)
)
default = rng.random(samples) < 1 / (1 + np.exp(1.2 - risk))
claims[rng.random(samples) < 0.3] = np.nan  # many customers have no record

table = {"age": age, "income": income, "city": city, "claims": claims}
parties = {"bank": ["income"], "insurer": ["age", "claims"], "town": ["city"]}
data = mtcd.split(table, np.where(default, "bad", "good"), parties, prepare="trees").holdout(0.3)

run = mtcd.train(
    data,
    mtcd.Trees("logistic", depth=3, learning_rate=0.1, positive="bad"),
    network="path",
    method=mtcd.STCD(walk="tour"),
    stop=mtcd.Stop(iterations=300),
    metrics=["log_loss", "auc"],
    callbacks=[
        mtcd.EarlyStopping(on="test_log_loss", patience=15),
        mtcd.KeepBest(on="test_log_loss"),
    ],
)
print(run)
print(f"{run.ledger.unchanged} of {run.ledger.hops} visits passed the token on unchanged.")
for row in run.importance():
    print(f"{row['client']:8} {row['column']:8} {row['share']:.2f} of the gain")
for row in run.importance(data.test, kind="permutation"):
    print(f"{row['client']:8} shuffled: log loss rises by {row['importance']:.3f}")
