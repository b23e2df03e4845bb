"""Categories, dates and missing values: each client prepares its own columns, fitted on its
training rows only.

The table is made up. A third of the patients is held out; new patients have a category that nobody
has seen.
"""

import numpy as np
import polars as pl

import mtcd

rng = np.random.default_rng(0)
N = 600
age, marker = rng.normal(55, 15, N), rng.gamma(2.0, 2.0, N)
sex, ward = (
    rng.choice(["female", "male"], N),
    rng.choice(["north", "south", "east", "tent"], N, p=[0.4, 0.3, 0.28, 0.02]),
)
days = rng.integers(0, 700, N)
score = (age - 55) / 10 + (sex == "male") + 0.6 * (marker - 4) - (ward == "north") + days / 350
outcome = np.where(score + rng.logistic(size=N) > 1, "ill", "healthy")

table = pl.DataFrame(
    {
        "age": np.where(rng.random(N) < 0.15, np.nan, age.round(1)),  # some are missing
        "sex": sex,
        "admitted": np.datetime64("2023-01-01") + days,
        "marker": np.where(rng.random(N) < 0.2, np.nan, marker.round(3)),
        "ward": ward,
    }
)
data = mtcd.split(
    table,
    outcome,
    clients={"clinic": ["age", "sex", "admitted"], "lab": ["marker", "ward"]},
    prepare={
        "columns": {
            "age": [{"impute": {"indicator": True}}, "standardise"],
            "ward": {"one-hot": {"min_count": 20}},
        }
    },
).holdout(1 / 3)
run = mtcd.train(
    data,
    mtcd.Glm("logistic", l2=1.0, intercept=True, positive="ill"),
    network="path",
    method=mtcd.STCD(local_updates=10),
    stop=mtcd.Stop(gap=1e-6),
)
print(run.message)
for name, value in zip(run.column_names, run.coefficients, strict=True):
    print(f"{name:20}{value:8.3f}")
assert data.test is not None
print(f"right in the hold-out: {(run.predict(data.test) == data.test.labels).mean():.1%}")
new = {
    "age": [71, None],
    "sex": ["male", "unknown"],
    "admitted": ["2024-10-01", None],
    "marker": [9.1, 2],
    "ward": ["west", "north"],
}
print("new patients:", *run.predict(new))
