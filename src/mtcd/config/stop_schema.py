"""The section ``stop`` of a config."""

from __future__ import annotations

from typing import Any

from pydantic import model_validator

from mtcd.config.section import Count, Number, Section, Whole


class PlateauSection(Section):
    """Ends a training that has stopped improving: see mtcd.training.plateau.Plateau."""

    on: str = "objective"
    """what should improve: `objective`, or a metric"""
    patience: Count = 10
    """so many epochs without improvement end the training"""
    min_improvement: Number = 1e-4
    """the share of the best value by which it must improve"""


class StopSection(Section):
    """When to stop: the first limit that is reached."""

    gap: Number | None = None
    """relative, `(f - f*)/f*`; the optimum `f*` is then computed first, and cached. Alone, it gives
    up after ten million iterations. Not for split networks"""
    iterations: Whole | None = None
    """hops per token; 10,000 if there is no `stop`, 100 for trees"""
    seconds: Number | None = None
    """of training"""
    cost: Number | None = None
    """communication cost, as in `costs`"""
    epochs: Whole | None = None
    """passes over all samples; 10 for split networks with `batch` if there is no `stop`"""
    plateau: PlateauSection | Number | None = None
    """ends a training that no longer improves; a number is its `min_improvement`"""

    @model_validator(mode="before")
    @classmethod
    def _some_limit(cls, given: Any) -> Any:
        # an empty section, as that of a config that sets stop.gap to null
        if isinstance(given, dict) and all(value is None for value in given.values()):
            return {**given, "iterations": 10_000}
        return given
