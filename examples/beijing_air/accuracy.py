"""How well PM2.5 is predicted: by the last value, by one station alone, and by all stations in one
table.

Ridge regression in closed form; its penalty is chosen on the year before the test year, for each
problem by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

import mtcd
from mtcd.core.arrays import Array
from mtcd_experiments.datasets.air_forecast import forecast
from mtcd_experiments.datasets.entry import RawSeries

PENALTIES = 10.0 ** np.arange(0, 7, 0.5)
TEST_YEAR, VALIDATION_YEAR = 2016, 2015


@lru_cache(maxsize=2)
def problem(
    raw: RawSeries, asked: mtcd.Forecast, clients: int = 12, every: int = 1
) -> mtcd.VerticalData:
    """The forecast as a table split over stations; of ``every`` so many hours one."""
    data = forecast(raw, asked, clients)
    assert data.test is not None
    if every == 1:
        return data
    test = data.test.take(np.arange(0, data.test.samples, every), like=data)
    return replace(data.take(np.arange(0, data.samples, every)), test=test)


def predictions(data: mtcd.VerticalData, penalties: Array) -> Array:
    """Of the test samples, for each penalty: the closed form on the standardised table of all
    clients."""
    assert data.test is not None
    X, new = np.hstack(data.blocks), np.hstack(data.test.blocks)
    mean, scale = X.mean(axis=0), X.std(axis=0)
    scale[scale == 0] = 1.0
    X = (X - mean) / scale
    level = data.labels.mean()
    values, vectors = np.linalg.eigh(X.T @ X)
    rotated = vectors.T @ (X.T @ (data.labels - level))
    coefficients = vectors @ (rotated[:, None] / (np.maximum(values, 0.0)[:, None] + penalties))
    predicted: Array = ((new - mean) / scale @ coefficients + level).T
    return predicted


def chosen_penalty(raw: RawSeries, asked: mtcd.Forecast, clients: int, every: int = 1) -> float:
    """The best on the validation year, after training on the years before it."""
    data = problem(raw, replace(asked, year=VALIDATION_YEAR), clients, every)
    assert data.test is not None
    errors = ((predictions(data, PENALTIES) - data.test.labels) ** 2).mean(axis=1)
    return float(PENALTIES[errors.argmin()])


def scores(labels: Any, predicted: Array) -> dict[str, float]:
    """RMSE and MAE in micrograms per cubic metre, and R2."""
    error = predicted - labels
    rmse = float(np.sqrt(np.mean(error**2)))
    return {
        "rmse": rmse,
        "mae": float(np.abs(error).mean()),
        "r2": float(1 - rmse**2 / np.var(labels)),
    }


def compare(raw: RawSeries, asked: mtcd.Forecast, every: int = 1) -> Iterator[dict[str, Any]]:
    """A row for each way to predict, on the same test year."""
    about = {"target": asked.target, "hours": asked.hours}
    for name, clients in (("alone", 1), ("together", 12)):
        penalty = chosen_penalty(raw, asked, clients, every)
        data = problem(raw, asked, clients, every)
        assert data.test is not None
        if name == "alone":
            now = data.test.blocks[0][:, data.columns[0].index(f"{asked.target}.PM2.5")]
            yield {
                **about,
                "model": "persistence",
                "penalty": None,
                **scores(data.test.labels, now),
            }
        predicted = predictions(data, np.array([penalty]))[0]
        yield {**about, "model": name, "penalty": penalty, **scores(data.test.labels, predicted)}
