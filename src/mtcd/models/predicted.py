"""Predictions as columns with names: for files, and for a party that may see them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mtcd.core.arrays import Array
from mtcd.core.errors import DataError
from mtcd.data.checks import check_labels
from mtcd.data.labels import as_labels
from mtcd.models.metrics import class_numbers

Columns = dict[str, NDArray[Any]]


def predicted_columns(
    predicted: NDArray[Any],
    classes: Sequence[str | float],
    decision: Array,
    probabilities: Array | None,
) -> Columns:
    """The prediction; of classes also their probabilities, or the score of a model that gives none.

    >>> list(predicted_columns(np.array(["a"]), ("a", "b"), np.zeros(1), np.array([[0.5, 0.5]])))
    ['prediction', 'p_a', 'p_b']
    """
    columns: Columns = {"prediction": predicted}
    if probabilities is not None:
        for number, one in enumerate(classes):
            columns[f"p_{class_name(one)}"] = probabilities[:, number]
    elif classes and decision.ndim == 1:
        columns["score"] = decision
    return columns


def class_name(one: str | float) -> str:
    """A class as a person writes it: 1, and not 1.0."""
    if isinstance(one, float) and one.is_integer():
        return str(int(one))
    return str(one)


def true_labels(y: ArrayLike, classes: Sequence[str | float], samples: int) -> NDArray[Any]:
    """The labels of new samples, checked: numbers of classes, or values where there are none."""
    labels = as_labels(y)
    check_labels(labels, may_be_equal=True)
    if len(labels) != samples:
        raise DataError(
            f"There are {samples} samples, but {len(labels)} labels: give one label for each "
            f"sample."
        )
    if classes:
        # Classes that are texts may be given as numbers: '1' of a CSV file is 1 of a matrix.
        if labels.dtype.kind != "U" and all(isinstance(one, str) for one in classes):
            labels = labels.astype(str)
        return class_numbers(labels, classes)
    if labels.dtype.kind not in "biuf":
        raise DataError("The labels are texts, but this model predicts numbers.")
    return np.asarray(labels, dtype=float)
