"""Metrics of predicted probabilities."""

from __future__ import annotations

import numpy as np

from mtcd.models.metrics.metric import METRICS, Metric, Outputs

# as scikit-learn has it: a class that was ruled out costs 36, and not infinity
SMALLEST = np.finfo(float).eps


@METRICS.register("log_loss")
class LogLoss(Metric):
    """The mean of -log of the probability that was given to the class of each sample."""

    needs_probabilities = True
    higher_is_better = False

    def value(self, outputs: Outputs) -> float:
        given = outputs.probabilities[
            np.arange(len(outputs.labels)), outputs.labels.astype(np.intp)
        ]
        # Clipped above too: rounding may give a little more than 1, whose -log is below 0.
        return float(-np.log(np.clip(given, SMALLEST, 1.0)).mean())


@METRICS.register("brier")
class Brier(Metric):
    """The mean squared distance of probability and outcome: of the second of two classes; of more,
    summed over all."""

    needs_probabilities = True
    higher_is_better = False

    def value(self, outputs: Outputs) -> float:
        p = outputs.probabilities
        labels = outputs.labels.astype(np.intp)
        if p.shape[1] == 2:
            return float(((p[:, 1] - labels) ** 2).mean())
        given = p[np.arange(len(labels)), labels]
        return float(((p**2).sum(axis=1) - 2 * given + 1).mean())  # |p - e_y|^2
