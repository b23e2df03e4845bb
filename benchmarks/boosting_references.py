"""What token boosting is compared with: LightGBM and XGBoost on the joint table, linear models,
networks."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import lightgbm as lgb
import numpy as np
import pandas as pd

import mtcd
from benchmarks.boosting_tables import Table

MODEL = mtcd.Trees()
Rows = np.ndarray
LIGHTGBM = {"logistic": "binary", "squared": "regression", "multinomial": "multiclass"}
XGBOOST = {
    "logistic": "binary:logistic",
    "squared": "reg:squarederror",
    "multinomial": "multi:softprob",
    "quantile": "reg:quantileerror",
    "poisson": "count:poisson",
}


def categories(X: pd.DataFrame) -> pd.DataFrame:
    """Texts as categories."""
    texts = [name for name in X if not pd.api.types.is_numeric_dtype(X[name])]
    return X.astype(dict.fromkeys(texts, "category"))


def lightgbm(
    table: Table,
    rows: Rows,
    others: Rows,
    trees: int,
    columns: Sequence[int] | None = None,
    groups: Any = None,
) -> float:
    """LightGBM on these columns (all unless given). With ``groups``, each of its trees uses columns
    of one group only: then the model is a sum over the groups, and the learner chooses the group of
    each tree.
    """
    X, y = categories(table.features), table.labels
    X = X if columns is None else X.iloc[:, list(columns)]
    goal: dict[str, Any] = {
        "objective": LIGHTGBM.get(table.loss, table.loss),
        "verbosity": -1,
        "num_threads": 1,
    }
    if table.loss == "multinomial":
        goal["num_class"] = len(np.unique(y))
    if table.settings:
        (goal["alpha"],) = table.settings.values()
    if groups is not None:
        goal["interaction_constraints"] = [[int(column) for column in group] for group in groups]
    model = lgb.train({**MODEL.settings, **goal}, lgb.Dataset(X.iloc[rows], y[rows]), trees)
    return table.quality(y[others], np.asarray(model.predict(X.iloc[others])))


def xgboost(table: Table, rows: Rows, others: Rows, trees: int) -> float:
    """XGBoost on all columns; not a number where it is not installed or does not have the loss
    (huber)."""
    if not find_spec("xgboost") or table.loss not in XGBOOST:
        return float("nan")
    import xgboost as xgb

    X, y = categories(table.features), table.labels
    goal: dict[str, Any] = {
        "objective": XGBOOST[table.loss],
        "tree_method": "hist",
        "nthread": 1,
        "verbosity": 0,
    }
    goal |= {
        "eta": MODEL.learning_rate,
        "lambda": MODEL.l2,
        "max_depth": MODEL.depth,
        "max_leaves": MODEL.leaves,
    }
    goal |= {"grow_policy": "lossguide", "max_bin": MODEL.bins + 1}
    if table.loss == "multinomial":
        goal["num_class"] = len(np.unique(y))
    if table.loss == "quantile":
        goal["quantile_alpha"] = table.settings["quantile"]
    made = [xgb.DMatrix(X.iloc[part], y[part], enable_categorical=True) for part in (rows, others)]
    return table.quality(y[others], xgb.train(goal, made[0], trees).predict(made[1]))


def linear(table: Table, rows: Rows, others: Rows) -> float:
    """The linear model of all columns, near its optimum; not a number for losses that linear models
    do not have."""
    if table.loss in ("quantile", "poisson"):
        return float("nan")
    data = mtcd.split(table.features.iloc[rows], table.labels[rows], clients=3, prepare="auto")
    if table.loss == "squared":
        model = mtcd.Glm("ridge", alpha=1.0, intercept=True)
    else:
        model = mtcd.Glm(table.loss, l2=1.0, intercept=True, **table.settings)
    method = mtcd.STCD(walk="tour", acceleration="conjugate")
    stop = mtcd.Stop(gap=1e-3, iterations=5000)
    run = mtcd.train(data, model, "complete", method, stop, standardise=True, metrics=())
    return table.quality(table.labels[others], predicted(run, table, others))


def predicted(run: mtcd.Run, table: Table, rows: Rows) -> np.ndarray:
    """Values, or probabilities."""
    X = table.features.iloc[rows]
    if table.loss == "logistic":
        return run.predict_proba(X)[:, 1]
    return run.predict_proba(X) if table.loss == "multinomial" else np.asarray(run.predict(X))


def fused(table: Table, rows: Rows, others: Rows) -> float:
    """A network at each of two parties, joined by a fusion network: AUC."""
    from torch import nn

    def shared(chosen: Rows) -> mtcd.VerticalData:
        return mtcd.split(table.features.to_numpy()[chosen], table.labels[chosen], clients=2)

    data = shared(rows)
    widths = [data.blocks[k].shape[1] for k in range(2)]
    nets = [nn.Sequential(nn.Linear(width, 32), nn.ReLU(), nn.Linear(32, 8)) for width in widths]
    fusion = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 2))
    model = mtcd.SplitModel(dict(zip(data.clients, nets, strict=True)), fusion=fusion)
    method = mtcd.MTCD(clusters=[[0], [1]], hops=1, local_updates=2, batch=100, stepsize=0.1)
    return mtcd.train(data, model, "path", method, mtcd.Stop(epochs=40)).evaluate(shared(others))[
        "auc"
    ]
