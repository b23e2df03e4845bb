"""A made-up table of patients: numbers, categories, dates, missing values; and a label in words."""

from typing import Any

import numpy as np
import polars as pl

CLIENTS = {
    "clinic": ["age", "sex", "admitted"],
    "lab": ["marker", "smoker"],
    "insurer": ["city", "plan"],
}


def patients(samples: int = 240, seed: int = 0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    age, marker = rng.normal(55, 15, samples), rng.gamma(2.0, 2.0, samples)
    sex, plan = (
        rng.choice(["female", "male"], samples),
        rng.choice(["basic", "gold", "rare"], samples, p=[0.6, 0.37, 0.03]),
    )
    days = rng.integers(0, 700, samples)
    score = (age - 55) / 10 + (sex == "male") + 0.5 * (marker - 4) - (plan == "gold") + days / 700
    outcome = np.where(score + rng.logistic(size=samples) > 0.5, "ill", "healthy")
    dates: Any = np.datetime64("2023-01-01") + days

    def holes(values: Any, share: float) -> list[Any]:
        lost = rng.random(samples) < share
        return [None if gone else value for value, gone in zip(values, lost, strict=True)]

    return pl.DataFrame(
        {
            "patient": [f"p{i}" for i in range(samples)],
            "age": holes(age.round(1).tolist(), 0.1),
            "sex": holes(sex.tolist(), 0.05),
            "admitted": holes([str(day) for day in dates], 0.05),
            "marker": holes(marker.round(3).tolist(), 0.2),
            "smoker": rng.choice(["yes", "no"], samples).tolist(),
            "city": [f"city {i}" for i in rng.integers(0, 60, samples)],
            "plan": plan.tolist(),
            "outcome": outcome.tolist(),
        }
    )
