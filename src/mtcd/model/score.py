"""What a model is worth at one moment, as far as it can be told."""

from __future__ import annotations

from typing import NamedTuple


class Score(NamedTuple):
    """The objective; the share of samples that are classified rightly, in training and in test."""

    objective: float
    accuracy: float | None = None
    test_accuracy: float | None = None
