"""Metrics of predictions: a file for each family, by their names in ``METRICS``."""

from mtcd.models.metrics.metric import METRICS, Metric, Outputs, class_numbers
from mtcd.models.metrics.selection import (
    Metrics,
    all_metrics,
    chosen_metrics,
    find_metric,
    find_metrics,
)

__all__ = [
    "METRICS",
    "Metric",
    "Metrics",
    "Outputs",
    "all_metrics",
    "chosen_metrics",
    "class_numbers",
    "find_metric",
    "find_metrics",
]
