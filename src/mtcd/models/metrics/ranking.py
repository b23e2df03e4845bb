"""Metrics of the order in which a model ranks samples: of two classes; of more, the mean of each
against the rest."""

from __future__ import annotations

from abc import abstractmethod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mtcd.core.arrays import Array
from mtcd.models.metrics.metric import METRICS, Metric, Outputs


class Ranks(NamedTuple):
    """Above each threshold, from the highest score to the lowest: the numbers of positive and of
    negative samples."""

    positive: Array
    negative: Array


def ranks(is_positive: NDArray[np.bool_], scores: Array) -> Ranks:
    """The counts at every distinct score; samples with the same score are counted together."""
    order = np.argsort(-scores)
    ranked = scores[order]
    hits = is_positive[order]
    # Samples of one score have no order among themselves: a threshold is above all of them or none.
    last = np.append(np.flatnonzero(ranked[1:] != ranked[:-1]), len(ranked) - 1)
    positive = np.cumsum(hits)[last].astype(float)
    return Ranks(positive, last + 1.0 - positive)


class RankingMetric(Metric):
    """The mean over classes of a number of their ranks; NaN if a class has no sample, or all of
    them."""

    def value(self, outputs: Outputs) -> float:
        found = []
        for is_positive, scores in outputs.rankings():
            counts = ranks(is_positive, scores)
            if not counts.positive[-1] or not counts.negative[-1]:
                return float("nan")
            found.append(self.of_ranks(counts))
        if not found:
            return float("nan")
        return float(np.mean(found))

    @abstractmethod
    def of_ranks(self, counts: Ranks) -> float:
        """The value of one class against the rest."""


@METRICS.register("auc")
class Auc(RankingMetric):
    """The area under the ROC curve: the probability that a positive sample is ranked above a
    negative one."""

    def of_ranks(self, counts: Ranks) -> float:
        # From the origin: above the highest score there is no sample.
        up = np.append(0.0, counts.positive)
        right = np.append(0.0, counts.negative)
        # Trapezoids, so that ties count one half.
        area = ((up[1:] + up[:-1]) * np.diff(right)).sum() / 2
        return float(area / (up[-1] * right[-1]))


@METRICS.register("average_precision")
class AveragePrecision(RankingMetric):
    """The mean of the precision over recall, as a sum of steps without interpolation."""

    def of_ranks(self, counts: Ranks) -> float:
        precision = counts.positive / (counts.positive + counts.negative)
        gains = np.diff(np.append(0.0, counts.positive))
        return float((precision * gains).sum() / counts.positive[-1])


@METRICS.register("ks")
class Ks(RankingMetric):
    """Kolmogorov-Smirnov: the largest distance between the shares of positive and negative samples
    above a score."""

    def of_ranks(self, counts: Ranks) -> float:
        apart = counts.positive / counts.positive[-1] - counts.negative / counts.negative[-1]
        return float(np.abs(apart).max())
