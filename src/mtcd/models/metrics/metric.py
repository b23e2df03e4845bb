"""The base of metrics, and the registry of their names. They use NumPy alone: the tests compare
them with scikit-learn.

scikit-learn's own functions take a second to import and a millisecond for each call, which is too
much for a training that measures hundreds of times.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mtcd.core.arrays import Array
from mtcd.core.errors import DataError, listing
from mtcd.core.mappings import positions
from mtcd.core.registry import Registry

NONE: Mapping[str, float] = MappingProxyType({})


class Score(NamedTuple):
    """The objective, and the share of correctly classified samples, in training and in test; None:
    not measured.

    ``metrics``: by names such as 'train_auc' and 'test_auc', those that were computed and are
    defined.
    """

    objective: float
    accuracy: float | None = None
    test_accuracy: float | None = None
    metrics: Mapping[str, float] = NONE


@dataclass(frozen=True, eq=False)
class Outputs:
    """``labels`` and ``predicted`` are numbers of classes (0, 1, ...), or values where there are no
    classes.

    ``decision`` are the outputs of the model: one number per sample (of two classes, the second
    where it is larger), or one per class. ``make_probabilities`` turns them into a column for every
    class; None if the model has none.
    """

    labels: NDArray[Any]
    predicted: NDArray[Any]
    decision: Array
    classes: tuple[str | float, ...] = ()
    make_probabilities: Callable[[Array], Array] | None = None

    @property
    def has_probabilities(self) -> bool:
        """Whether the model gives probabilities."""
        return self.make_probabilities is not None

    @cached_property
    def probabilities(self) -> Array:
        """A column for every class."""
        assert self.make_probabilities is not None
        return self.make_probabilities(self.decision)

    @cached_property
    def finite(self) -> bool:
        """Whether all outputs are numbers: a diverging training has others."""
        return bool(np.isfinite(self.decision).all())

    def rankings(self) -> list[tuple[NDArray[np.bool_], Array]]:
        """Which samples are of a class, and scores that are higher the more the model expects it.

        Of two classes, the second; of more, each against the rest, by its probability.
        """
        scores = self.decision
        if scores.ndim == 2 and scores.shape[1] == 1:
            scores = scores[:, 0]
        if len(self.classes) == 2:
            if scores.ndim == 2:
                scores = scores[:, 1] - scores[:, 0]
            return [(self.labels == 1, scores)]
        if self.has_probabilities:
            scores = self.probabilities
        if scores.ndim == 1:  # several classes, and one score: no class has its own
            return []
        return [(self.labels == number, scores[:, number]) for number in range(len(self.classes))]


def class_numbers(labels: NDArray[Any], classes: Sequence[str | float]) -> NDArray[np.intp]:
    """The number of each label's class; an error names a label that no training sample had."""
    # `unique` first: of many samples with few classes, only the classes are looked up.
    found, places = np.unique(labels, return_inverse=True)
    known = positions(classes)
    unseen = [one for one in found.tolist() if one not in known]
    if unseen:
        raise DataError(
            f"The label {unseen[0]!r} is of a class that no training sample has: the classes are "
            f"{listing(classes)}."
        )
    return np.array([known[one] for one in found.tolist()], dtype=np.intp)[places]


class Metric(ABC):
    """One number that says how well a model predicts samples with known labels."""

    of_classes = True
    """Whether it is for classes; otherwise for values."""
    needs_probabilities = False
    higher_is_better = True

    def suits(self, classes: bool, probabilities: bool) -> bool:
        """Whether it can be computed for a model that predicts classes, or values, with or without
        probabilities."""
        return self.of_classes == classes and (probabilities or not self.needs_probabilities)

    def of(self, outputs: Outputs) -> float:
        """The value; NaN where it is not defined, as AUC is not with samples of one class only."""
        suits = self.suits(bool(outputs.classes), outputs.has_probabilities)
        if not suits or not len(outputs.labels) or not outputs.finite:
            return math.nan
        with np.errstate(all="ignore"):  # numbers too large for their squares
            value = float(self.value(outputs))
        if not math.isfinite(value):
            return math.nan
        return value

    @abstractmethod
    def value(self, outputs: Outputs) -> float:
        """The value of outputs that fit, with at least one sample; NaN where it is not defined."""


METRICS: Registry[type[Metric]] = Registry(
    Metric, "mtcd.metrics", "mtcd.models.metrics", "no metric is called '{}';"
)
