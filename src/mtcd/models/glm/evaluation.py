"""The metrics of a linear model while it is trained: on its training samples, and on those that
were held out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtcd.core.arrays import Array
from mtcd.data.vertical import Block
from mtcd.models.losses import Loss
from mtcd.models.metrics import Metrics, Outputs, class_numbers

Parameters = Callable[[], Sequence[Array]]
"""Gives the parameters of all clients; called only where they are needed, as collecting them costs
something."""


@dataclass(frozen=True, eq=False)
class TestSet:
    """Samples that no party trains on: the blocks of all clients, and the encoded labels."""

    __test__ = False  # for pytest

    blocks: Sequence[Block]
    labels: NDArray[Any]


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Which metrics to compute, and on what. ``labels`` are those of the training samples: see
    ``known_labels``."""

    metrics: Metrics
    loss: Loss
    classes: tuple[str | float, ...]
    labels: NDArray[Any]
    test: TestSet | None = None

    def measured(self, aggregate: Array, parameters: Parameters) -> dict[str, float]:
        """The metrics by name: those of training from the aggregate alone, those of the test from
        the parameters."""
        if not self.metrics:
            return {}
        found = self.metrics.measured("train", self._outputs(self.labels, aggregate))
        if self.test is not None:
            # Only here are parameters needed, and collecting them from all clients costs a message
            # each.
            z = sum(X @ theta for X, theta in zip(self.test.blocks, parameters(), strict=True))
            found |= self.metrics.measured("test", self._outputs(self.test.labels, np.asarray(z)))
        return found

    def _outputs(self, labels: NDArray[Any], aggregate: Array) -> Outputs:
        return linear_outputs(self.loss, self.classes, labels, aggregate)


def known_labels(labels: NDArray[Any], classes: tuple[str | float, ...]) -> NDArray[Any]:
    """Labels as metrics use them: the numbers of their classes, or values."""
    if not classes:
        return np.asarray(labels, dtype=float)
    return class_numbers(labels, classes)


def linear_outputs(
    loss: Loss, classes: tuple[str | float, ...], labels: NDArray[Any], aggregate: Array
) -> Outputs:
    """The outputs of a linear model with this aggregate, for samples with these
    ``known_labels``."""
    probabilities = loss.probabilities if loss.gives_probabilities else None
    return Outputs(labels, loss.predict(aggregate), aggregate, classes, probabilities)
