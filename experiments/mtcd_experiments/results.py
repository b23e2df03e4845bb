"""The results of an experiment: the trainings of all seeds for every case and curve, and numbers
from them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from mtcd.core.arrays import Array
from mtcd.protocol.ledger.costs import Per
from mtcd_experiments.schema import Experiment, Measure

BYTES = 4  # of a number that is sent, as neural networks compute with
COST_AXES: dict[Per, str] = {"message": "cost", "float": "float-cost"}  # by what is priced
# the status of a training that was not cut short
END: dict[Measure, str] = {"gap": "converged", "accuracy": "epochs"}


@dataclass(frozen=True, eq=False)
class TrainedCurve:
    """One training, as it is kept on disk: its measurements in columns, and how it ended.

    ``notes`` are about its data. ``columns`` holds iteration, client_client and client_server:
    messages so far, as the paper charges them (uplinks and downlinks together), and
    floats_client_client and floats_client_server, the numbers in them. With them goes the gap; or
    epoch, test_accuracy, accuracy (on the training set) and objective.
    """

    seed: int
    status: str
    stepsize: float | None  # None: the method has none
    seconds: float
    columns: dict[str, Array]
    notes: tuple[str, ...] = ()

    @property
    def measure(self) -> Measure:
        """The name of the measured quantity."""
        if "gap" in self.columns:
            return "gap"
        return "accuracy"

    def cost(self, ratio: float, axis: str = "cost") -> Array:
        """The communication cost at each measurement: 1 per message with the server, 1/ratio
        otherwise.

        On the axis 'float-cost': per number in a message.
        """
        prefix = "floats_"
        if axis == "cost":
            prefix = ""
        hops = self.columns[f"{prefix}client_client"]
        return self.columns[f"{prefix}client_server"] + hops / ratio

    def along(self, x: str, ratio: float) -> Array:
        """The measurements' places on an axis: iterations, epochs, messages between clients, cost,
        floats or bytes."""
        if x in COST_AXES.values():
            return self.cost(ratio, x)
        if x == "bytes":
            return BYTES * self.along("floats", ratio)
        if x == "floats":
            return self.columns["floats_client_client"] + self.columns["floats_client_server"]
        column = {"iterations": "iteration", "epochs": "epoch", "messages": "client_client"}[x]
        return self.columns[column]

    def reach(self, target: float, x: str, ratio: float = 1.0) -> float | None:
        """Where on the axis the gap or the accuracy was first seen to be reached; None if it never
        was.

        Not between two measurements: a tour or a sync may have ended in between for some methods,
        but not for all.
        """
        if self.measure == "gap":
            there = np.flatnonzero(self.columns["gap"] <= target)
        else:
            there = np.flatnonzero(self.columns["test_accuracy"] >= target)
        if not len(there):
            return None
        return float(self.along(x, ratio)[there[0]])


@dataclass(frozen=True)
class Spread:
    """A number over seeds. ``reached`` of ``seeds`` got there; mean, least and most are over
    those."""

    mean: float
    least: float
    most: float
    reached: int
    seeds: int

    @property
    def everywhere(self) -> bool:
        """Whether every seed got there."""
        return self.reached == self.seeds


@dataclass(frozen=True, eq=False)
class Line:
    """A curve over its seeds, on common places: the mean of what is measured, and its least and
    most."""

    x: Array
    value: Array
    low: Array
    high: Array


@dataclass(frozen=True, eq=False)
class CurveResult:
    """All seeds of one curve in one case. Methods without randomness of their own may have one
    training for all."""

    label: str
    trained: tuple[TrainedCurve, ...]
    # what each step size of the grid led to, where it was tuned
    tuned: dict[float, str] | None = None
    at_edge: bool = False  # the chosen step size is the first or last of the grid
    trial_seconds: float = 0.0  # time spent trying out step sizes

    @property
    def stepsize(self) -> float | None:
        """The step size that was used; None of a method without one."""
        return self.trained[0].stepsize

    @property
    def seconds(self) -> float:
        """Time spent training, over all seeds."""
        return sum(one.seconds for one in self.trained)

    @cached_property
    def status(self) -> str:
        """How the trainings ended: one word, or several where seeds differ."""
        return ", ".join(dict.fromkeys(one.status for one in self.trained))

    @property
    def measure(self) -> Measure:
        """The name of the measured quantity."""
        return self.trained[0].measure

    @property
    def ending(self) -> Literal["done", "stopped", "diverged"]:
        """How the line ends: some seed diverged, some was stopped by a limit, or all came to their
        proper end."""
        ends = {one.status for one in self.trained}
        if "diverged" in ends:
            return "diverged"
        if ends == {END[self.measure]}:
            return "done"
        return "stopped"

    @property
    def final_gap(self) -> float:
        """The gap at the end: the geometric mean over the seeds."""
        logs = [np.log(_positive(one.columns["gap"])[-1]) for one in self.trained]
        return float(np.exp(np.mean(logs)))

    def reach(self, target: float, x: str = "iterations", ratio: float = 1.0) -> Spread | None:
        """Iterations or cost to a gap or an accuracy, over the seeds; None if no seed got there."""
        places = [one.reach(target, x, ratio) for one in self.trained]
        there = [place for place in places if place is not None]
        if not there:
            return None
        return Spread(float(np.mean(there)), min(there), max(there), len(there), len(places))

    def line(self, x: str, ratio: float, points: int = 400) -> Line:
        """The mean over seeds and its spread: geometric for gaps, arithmetic for accuracies.

        A seed that converged stays at its last gap until the others are done. The line ends with
        the first seed that a limit stopped: where that one would have gone is not known.
        """
        ends = [(float(one.along(x, ratio)[-1]), one.status) for one in self.trained]
        end = min((end for end, status in ends if status != "converged"), default=max(ends)[0])
        if self.measure == "accuracy":
            return self._accuracies(x, ratio, end)
        places = _grid(end, points)
        logs = np.stack([_interpolated(one, x, ratio, places) for one in self.trained])
        return Line(
            places, np.exp(logs.mean(axis=0)), np.exp(logs.min(axis=0)), np.exp(logs.max(axis=0))
        )

    def _accuracies(self, x: str, ratio: float, end: float) -> Line:
        """The accuracy where some seed was measured."""
        measured = np.unique(np.concatenate([one.along(x, ratio) for one in self.trained]))
        places = measured[measured <= end]
        values = np.stack(
            [
                np.interp(places, one.along(x, ratio), one.columns["test_accuracy"])
                for one in self.trained
            ]
        )
        return Line(places, values.mean(axis=0), values.min(axis=0), values.max(axis=0))


@dataclass(frozen=True, eq=False)
class Results:
    """An experiment that has been run: curves by (case, name), and things to say about it."""

    name: str
    experiment: Experiment
    curves: dict[tuple[str, str], CurveResult]
    seeds: int
    quick: bool
    ratio: float
    """R_C of the config, for panels that do not give their own."""
    notes: tuple[str, ...] = ()
    per: Per = "message"
    """What the config prices, for panels that do not say."""

    def axis(self, x: str, per: Per | None = None) -> str:
        """The axis that is meant: of costs there are two."""
        return COST_AXES[per or self.per] if x == "cost" else x

    def case_names(self) -> list[str]:
        """The cases that were run: an optional one may be missing."""
        return [
            case for case in self.experiment.cases if any(key[0] == case for key in self.curves)
        ]


def _grid(end: float, points: int) -> Array:
    """0, and places evenly spaced on a logarithmic axis up to the end."""
    if end <= 0:
        return np.zeros(1)
    first = min(1.0, end / 1e4)
    return np.concatenate([[0.0], np.geomspace(first, end, points)])


def _interpolated(one: TrainedCurve, x: str, ratio: float, places: Array) -> Array:
    """log(gap) at these places."""
    return np.interp(places, one.along(x, ratio), np.log(_positive(one.columns["gap"])))


def _positive(gaps: Array) -> Array:
    """The gaps; one that rounding has made 0 or negative counts as the least positive one."""
    least = float(gaps[gaps > 0].min(initial=np.inf))
    return np.maximum(gaps, least if np.isfinite(least) else 1e-16)
