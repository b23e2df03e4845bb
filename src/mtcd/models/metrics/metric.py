"""The base of metrics, and the registry of their names. They use NumPy alone: the tests compare
them with scikit-learn.

scikit-learn's own functions take a second to import and a millisecond for each call, which is too
much for a training that measures hundreds of times.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np

from mtcd.core.registry import Registry
from mtcd.models.metrics.outputs import Outputs


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
