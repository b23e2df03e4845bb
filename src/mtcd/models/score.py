"""The measured quality of a model."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

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
