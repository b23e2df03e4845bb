"""A small linear model of three clients with random parameters, without any training."""

from typing import Any

import numpy as np

import mtcd
from mtcd.data.standardise import Scaling
from mtcd.models.glm.model import Glm
from mtcd.models.glm.trained import TrainedModel

RNG = np.random.default_rng(3)
X = RNG.standard_normal((7, 6)) * 2 + 1
CLIENTS = {"a": [5, 0], "b": [3], "c": [1, 4, 2]}
PLACES = [5, 0, 3, 1, 4, 2]
CLASSES = ("p", "q", "r", "s")
LABELS: dict[str, Any] = {
    "ridge": X @ np.arange(6.0),
    "logistic": np.array(["no", "yes"])[[0, 1, 1, 0, 1, 0, 0]],
    "squared-hinge": np.array([2.0, 5.0])[[0, 1, 1, 0, 1, 0, 0]],
    "multinomial": np.array(CLASSES)[[0, 1, 2, 3, 0, 1, 2]],
}
SCALING = Scaling(
    (np.array([1.0, 2.0]), np.array([-1.0]), np.array([0.5, 0.0, 3.0])),
    (np.array([2.0, 0.5]), np.array([4.0]), np.array([1.0, 3.0, 0.25])),
)
MODELS = [Glm("ridge"), *(Glm(kind, l2=0.5, intercept=True) for kind in LABELS), Glm("multinomial")]


def data_of(kind: str, **settings: Any) -> mtcd.VerticalData:
    return mtcd.split(X, LABELS[kind], CLIENTS, **settings)


def trained(
    model: Glm, scaling: Scaling | None = None, seed: int = 1
) -> tuple[TrainedModel, list[np.ndarray]]:
    """A model with random parameters, and these by client, that of the intercept at the end of the
    first."""
    data, rng = data_of(model.kind), np.random.default_rng(seed)
    problem = model.problem(data)
    thetas = [rng.standard_normal(problem.client(k).initial().shape) for k in range(3)]
    return TrainedModel.assemble(model, data, problem.classes, thetas, scaling), thetas


def decision_of(model: Glm, thetas: list[np.ndarray], scaling: Scaling | None) -> np.ndarray:
    """By definition."""
    blocks = [X[:, columns] for columns in CLIENTS.values()]
    if scaling is not None:
        blocks = [
            (block - m) / s
            for block, m, s in zip(blocks, scaling.means, scaling.scales, strict=True)
        ]
    if model.intercept:
        blocks[0] = np.column_stack([blocks[0], np.ones(7)])
    return np.asarray(sum(block @ theta for block, theta in zip(blocks, thetas, strict=True)))
