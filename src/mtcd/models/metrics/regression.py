"""Metrics of predicted values."""

from __future__ import annotations

import numpy as np

from mtcd.models.metrics.metric import METRICS, Metric, Outputs


class ValueMetric(Metric):
    """A metric of values."""

    of_classes = False
    higher_is_better = False


@METRICS.register("rmse")
class Rmse(ValueMetric):
    """The root of the mean squared error."""

    def value(self, outputs: Outputs) -> float:
        return float(np.sqrt(np.mean((outputs.predicted - outputs.labels) ** 2)))


@METRICS.register("mae")
class Mae(ValueMetric):
    """The mean absolute error."""

    def value(self, outputs: Outputs) -> float:
        return float(np.mean(np.abs(outputs.predicted - outputs.labels)))


@METRICS.register("r2")
class R2(ValueMetric):
    """1 - squared error / squared distance from the mean; NaN if all labels are equal."""

    higher_is_better = True

    def value(self, outputs: Outputs) -> float:
        around_mean = float(((outputs.labels - outputs.labels.mean()) ** 2).sum())
        error = float(((outputs.predicted - outputs.labels) ** 2).sum())
        if around_mean <= 0:
            return float("nan")
        return 1.0 - error / around_mean
