"""Choosing a step size from a grid, after each has been tried out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mtcd.core.errors import ConfigError
from mtcd_experiments.results import TrainedCurve
from mtcd_experiments.schema import Tune


@dataclass(frozen=True)
class ChosenStepsize:
    """The step size chosen, what each led to, whether a longer grid might hold a better one, and
    the time it took."""

    stepsize: float
    tuned: dict[float, str]
    at_edge: bool
    seconds: float


def choose(tune: Tune, trials: Mapping[float, TrainedCurve], where: str) -> ChosenStepsize:
    """The step size that reaches the gap in the fewest iterations; if none does, the one that comes
    closest."""
    if all(trial.status == "diverged" for trial in trials.values()):
        raise ConfigError(
            f"{where}: all step sizes of the grid diverged, down to {min(trials):g}. "
            "Add smaller ones to tune.stepsizes."
        )
    best = min(sorted(trials), key=lambda stepsize: _rank(trials[stepsize], tune.gap))
    tuned = {stepsize: _outcome(trials[stepsize], tune.gap) for stepsize in sorted(trials)}
    seconds = sum(trial.seconds for trial in trials.values())
    return ChosenStepsize(best, tuned, best in (min(trials), max(trials)), seconds)


def _rank(trial: TrainedCurve, gap: float) -> tuple[int, float]:
    if trial.status == "diverged":
        return 2, 0.0
    iterations = trial.reach(gap, "iterations")
    return (1, float(trial.columns["gap"][-1])) if iterations is None else (0, iterations)


def _outcome(trial: TrainedCurve, gap: float) -> str:
    if trial.status == "diverged":
        return "diverged"
    iterations = trial.reach(gap, "iterations")
    return (
        f"gap {trial.columns['gap'][-1]:.1e}"
        if iterations is None
        else f"{iterations:,.0f} iterations"
    )
