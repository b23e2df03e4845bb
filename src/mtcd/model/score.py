"""The measured quality of a model."""

from __future__ import annotations

from typing import NamedTuple


class Score(NamedTuple):
    """The objective, and the share of correctly classified samples, in training and in test; None: not measured."""

    objective: float
    accuracy: float | None = None
    test_accuracy: float | None = None
