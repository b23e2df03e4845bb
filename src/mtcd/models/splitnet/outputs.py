"""The outputs of a fusion module as probabilities, and as metrics use them."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy  # its parts are loaded when they are used
from numpy.typing import NDArray
from torch import Tensor

from mtcd.core.arrays import Array
from mtcd.models.metrics import Outputs
from mtcd.models.splitnet.labels import Classes, decide


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
