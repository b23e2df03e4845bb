"""A trained linear model in a run folder: arrays, and the coefficients as CSV."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtcd.core.files import COEFFICIENTS, read_zip
from mtcd.data.standardise import Scaling
from mtcd.models.glm.model import Glm
from mtcd.models.glm.trained import TrainedModel
from mtcd.models.label_noise import settings_to_store

ARRAYS = "parameters.npz"


def write_linear(trained: TrainedModel, folder: Path) -> dict[str, Any]:
    """Write the arrays and the table of coefficients; returns the description that ``read_linear``
    needs."""
    np.savez(folder / ARRAYS, **_arrays(trained))  # type: ignore[arg-type]
    (folder / COEFFICIENTS).write_bytes(trained.coefficients_table().to_csv().encode())

    glm = trained.model
    return {
        "glm": settings_to_store(glm),
        "classes": list(trained.classes),
        "clients": list(trained.clients),
        "columns": [list(names) for names in trained.columns],
        "positions": [list(places) for places in trained.positions],
        "scaled": trained.scaling is not None,
    }


def _arrays(trained: TrainedModel) -> dict[str, NDArray[Any]]:
    """theta_0, theta_1, ... in the order of ``clients``: names of clients may not be valid as file
    names."""
    arrays: dict[str, NDArray[Any]] = {}
    for k, theta in enumerate(trained.thetas):
        arrays[f"theta_{k}"] = theta
    arrays |= {"clients": np.array(trained.clients), "intercept": trained.trained_intercept}
    if trained.scaling is not None:
        arrays["means"] = np.concatenate(trained.scaling.means)
        arrays["scales"] = np.concatenate(trained.scaling.scales)
    return arrays


def read_linear(folder: Path, about: dict[str, Any], _model: object) -> TrainedModel:
    """The model of a run folder. Raises ValueError, KeyError, TypeError or OSError."""
    columns = tuple(tuple(names) for names in about["columns"])
    bounds = np.cumsum([len(names) for names in columns])[:-1]
    with np.load(read_zip(folder / ARRAYS), allow_pickle=False) as arrays:
        scaling = None
        if about["scaled"]:
            scaling = Scaling(
                *(tuple(np.split(arrays[name], bounds)) for name in ("means", "scales"))
            )

        return TrainedModel(
            model=Glm(**about["glm"]),
            classes=tuple(about["classes"]),
            clients=tuple(about["clients"]),
            columns=columns,
            positions=tuple(tuple(places) for places in about["positions"]),
            thetas=tuple(arrays[f"theta_{k}"] for k in range(len(columns))),
            trained_intercept=arrays["intercept"],
            scaling=scaling,
        )
