"""Which metrics are computed: those that were asked for, or the default of the model."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mtcd.core.errors import ConfigError
from mtcd.models.metrics.metric import METRICS, Metric, Outputs


@dataclass(frozen=True)
class Metrics:
    """The metrics that a training measures, by their names."""

    chosen: Mapping[str, Metric]

    def __bool__(self) -> bool:
        return bool(self.chosen)

    def of(self, outputs: Outputs) -> dict[str, float]:
        """All of them; NaN where one is not defined."""
        return {name: metric.of(outputs) for name, metric in self.chosen.items()}

    def measured(self, part: str, outputs: Outputs) -> dict[str, float]:
        """Those that are defined, under names like 'test_auc', where 'test' is the ``part`` of the
        samples."""
        found = {}
        for name, value in self.of(outputs).items():
            if not math.isnan(value):
                found[f"{part}_{name}"] = value
        return found


def find_metrics(names: Sequence[str], classes: int, probabilities: bool) -> Metrics:
    """The metrics of these names; an error names one that such a model does not have.

    ``classes`` is their number, 0 of a model that predicts values; ``probabilities``: whether it
    gives them.
    """
    # A text is a sequence of texts too, one for each letter.
    listed = isinstance(names, Iterable) and not isinstance(names, str)
    if not listed or not all(isinstance(name, str) for name in names):
        raise ConfigError(
            f"metrics must be a list of names, such as [auc, log_loss], but is {names!r}."
        )
    found = {}
    for name in names:
        found[name] = metric = find_metric(name)
        if not metric.suits(bool(classes), probabilities):
            why = "needs probabilities, which this model does not give"
            if metric.of_classes != bool(classes):
                kind, other = ("classes", "values") if metric.of_classes else ("values", "classes")
                why = f"is for models that predict {kind}, but this one predicts {other}"
            known = ", ".join(all_metrics(classes, probabilities).chosen)
            raise ConfigError(f"metrics: {name} {why}. Choose among {known}.")
    return Metrics(found)


def chosen_metrics(names: Sequence[str] | None, classes: int, probabilities: bool) -> Metrics:
    """What a training measures: the metrics of these names; of None a few cheap ones."""
    if names is None:
        if not classes:
            names = ("rmse", "r2")
        elif classes == 2:
            names = ("accuracy", "auc")
        else:
            names = ("accuracy", "f1")
    return find_metrics(names, classes, probabilities)


def all_metrics(classes: int, probabilities: bool) -> Metrics:
    """All metrics that such a model has."""
    fitting = {}
    for name, kind in METRICS.usable().items():
        metric = kind()
        if metric.suits(bool(classes), probabilities):
            fitting[name] = metric
    return Metrics(fitting)


def find_metric(name: str) -> Metric:
    """The metric of this name."""
    try:
        return METRICS[name]()
    except ConfigError as error:
        raise ConfigError(f"metrics: {error}") from None
