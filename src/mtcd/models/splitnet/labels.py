"""Encoded labels of networks, the losses by name, and outputs as probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from mtcd.core.arrays import Array
from mtcd.core.errors import ConfigError, DataError, check_known, listing
from mtcd.core.mappings import positions
from mtcd.models.label_noise import LabelNoise
from mtcd.models.metrics import Outputs
from mtcd.models.splitnet.client import Loss

Classes = tuple[str | float, ...]


def squared(outputs: Tensor, labels: Tensor) -> Tensor:
    """The mean squared error; a single output per sample may have a dimension of 1 or none."""
    return functional.mse_loss(outputs.reshape(labels.shape), labels)


LOSSES: dict[str, Loss] = {"cross-entropy": functional.cross_entropy, "squared": squared}


def find_loss(
    loss: str | Loss | None, labels: NDArray[np.generic], noise: LabelNoise | None = None
) -> tuple[Loss, bool]:
    """The loss, corrected for the noise of the labels, and whether labels are classes. By default,
    labels with fractions are values, all others classes."""
    if noise is not None:
        loss = noise.corrected_network_loss(loss)
    # Whole numbers may be classes or counts. A user whose counts are up to 50 says loss='squared'.
    classes = labels.dtype.kind != "f" or bool(
        (labels == np.rint(labels)).all() and len(np.unique(labels)) <= 50
    )
    if loss is None:
        loss = "cross-entropy" if classes else "squared"
    if callable(loss):
        return loss, getattr(loss, "has_classes", labels.dtype.kind != "f")
    check_known(loss, LOSSES, f"model.loss: no loss is called {loss!r};")
    if loss == "cross-entropy" and not classes:
        raise DataError(
            "loss 'cross-entropy' needs classes as labels, but these are numbers with fractions."
        )
    if loss == "squared" and labels.dtype.kind not in "biuf":
        raise DataError("loss 'squared' needs numbers as labels, but these are texts.")
    return LOSSES[loss], loss == "cross-entropy"


def encode(labels: NDArray[np.generic], classes: Classes | None) -> Tensor:
    """Numbers of classes, or values where there are none."""
    # In single precision, as the networks compute.
    if classes is None:
        return torch.as_tensor(labels.astype(np.float32))
    place = positions(classes)
    found = [place.get(label, -1) for label in labels.tolist()]
    if -1 in found:
        row = found.index(-1)
        raise DataError(
            f"The label of row {row + 1} is {labels.tolist()[row]!r}, which no training sample "
            f"has: {listing(classes)}."
        )
    return torch.as_tensor(found)


def classes_of(labels: NDArray[np.generic]) -> Classes:
    """The classes in order."""
    return tuple(np.unique(labels).tolist())


def decide(outputs: Tensor, classes: Classes | None) -> Tensor:
    """The number of the likeliest class, or the value. One output for two classes: the second above
    0."""
    if classes is None:
        return outputs.reshape(len(outputs), -1).squeeze(1)
    if outputs.shape[1] == 1:
        return (outputs.reshape(-1) > 0).long()
    return outputs.argmax(dim=1)


def check_outputs(outputs: Any, samples: int, classes: Classes | None, loss: Loss) -> None:
    """Reject a fusion module whose outputs do not match the classes."""
    if not isinstance(outputs, Tensor) or outputs.shape[:1] != (samples,):
        shape = tuple(outputs.shape) if isinstance(outputs, Tensor) else type(outputs).__name__
        raise ConfigError(
            f"The fusion module must give a row of outputs for every sample, but gave {shape}."
        )
    if classes is not None and (
        outputs.ndim != 2 or outputs.shape[1] not in _widths(classes, loss)
    ):
        raise ConfigError(
            f"There are {len(classes)} classes ({listing(classes)}), but the fusion module gives "
            f"outputs of shape {tuple(outputs.shape[1:])}: make it give {len(classes)}."
        )


def _widths(classes: Sequence[object], loss: Loss) -> tuple[int, ...]:
    one_is_enough = len(classes) == 2 and loss is not functional.cross_entropy
    if one_is_enough:
        return (len(classes), 1)
    return (len(classes),)


def class_probabilities(outputs: Array) -> Array:
    """The softmax of the outputs, a column for every class; of one output for two classes, the
    sigmoid."""
    # As torch's cross-entropy takes them: the outputs are logits.
    if outputs.ndim == 2 and outputs.shape[1] > 1:
        return np.asarray(scipy.special.softmax(outputs, axis=1))
    z = outputs.reshape(len(outputs))
    return np.column_stack([scipy.special.expit(-z), scipy.special.expit(z)])


def split_outputs(outputs: Tensor, labels: NDArray[Any], classes: Classes | None) -> Outputs:
    """For samples with known labels: the numbers of their classes, or values."""
    predicted = decide(outputs, classes).cpu().numpy()
    decision = outputs.cpu().numpy().astype(float)
    if classes is None:
        return Outputs(labels.astype(float), predicted.astype(float), decision)
    return Outputs(labels, predicted, decision, classes, class_probabilities)
