"""Metrics of predicted classes."""

from __future__ import annotations

import numpy as np

from mtcd.core.arrays import Array
from mtcd.models.metrics.metric import METRICS, Metric, Outputs


@METRICS.register("accuracy")
class Accuracy(Metric):
    """The share of samples whose class is predicted correctly."""

    def value(self, outputs: Outputs) -> float:
        return float(np.mean(outputs.labels == outputs.predicted))


@METRICS.register("balanced_accuracy")
class BalancedAccuracy(Metric):
    """The mean over classes of the share of their samples that are predicted correctly; a class
    without samples is left out.
    """

    def value(self, outputs: Outputs) -> float:
        counts = confusion(outputs)
        samples = counts.sum(axis=1)
        there = samples > 0
        return float((counts.diagonal()[there] / samples[there]).mean())


@METRICS.register("f1")
class F1(Metric):
    """2 TP / (2 TP + FP + FN): of the second of two classes; of more classes, the mean over those
    that are among the labels or the predictions (macro).
    """

    def value(self, outputs: Outputs) -> float:
        counts = confusion(outputs)
        seen = counts.sum(axis=0) + counts.sum(axis=1)  # 2 TP + FP + FN
        if len(outputs.classes) == 2:
            if not seen[1]:
                return float("nan")  # neither a label nor a prediction is of this class
            return float(2 * counts[1, 1] / seen[1])
        there = seen > 0
        return float((2 * counts.diagonal()[there] / seen[there]).mean())


def confusion(outputs: Outputs) -> Array:
    """How many samples of each class (rows) are predicted as each class (columns)."""
    size = len(outputs.classes)
    # One number for each pair of true and predicted class, to be counted in one pass.
    pairs = outputs.labels.astype(np.intp) * size + outputs.predicted.astype(np.intp)
    return np.bincount(pairs, minlength=size * size).reshape(size, size).astype(float)
