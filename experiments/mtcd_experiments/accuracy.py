"""Numbers from curves of accuracy: the accuracy after some epochs, and the cost of an epoch."""

from __future__ import annotations

import math

import numpy as np

from mtcd_experiments.results import CurveResult, Results, Spread, TrainedCurve

ROUNDING = 1e-6  # of epochs, which are batches over batches per epoch


def quarters(results: Results) -> list[int]:
    """The whole epochs at a quarter, half and three quarters of the longest training; fewer if it
    is short."""
    ends = [one.columns["epoch"][-1] for curve in results.curves.values() for one in curve.trained]
    last = math.floor(max(ends, default=0.0) + ROUNDING)
    return sorted({math.ceil(last * part / 4) for part in (1, 2, 3)} - {0, last})


def accuracy_after(curve: CurveResult, epoch: float) -> Spread | None:
    """The test accuracy after so many epochs, over the seeds that came so far; None if none did."""
    return _spread([_after(one, epoch) for one in curve.trained])


def accuracy_at_end(curve: CurveResult) -> Spread:
    """The test accuracy at the end, over the seeds, wherever each ended."""
    found = _spread([float(one.columns["test_accuracy"][-1]) for one in curve.trained])
    assert found is not None
    return found


def cost_at_end(curve: CurveResult, ratio: float, axis: str = "cost") -> Spread:
    """The cost of the whole training, over the seeds."""
    found = _spread([float(one.cost(ratio, axis)[-1]) for one in curve.trained])
    assert found is not None
    return found


def cost_per_epoch(curve: CurveResult, ratio: float, axis: str = "cost") -> float | None:
    """What an epoch costs, on average over epochs and seeds; None if no seed came through any part
    of one."""
    spans = [(np.ptp(one.cost(ratio, axis)), np.ptp(one.columns["epoch"])) for one in curve.trained]
    each = [float(cost / epochs) for cost, epochs in spans if epochs > 0]
    if not each:
        return None
    return sum(each) / len(each)


def best_of_all(results: Results) -> float:
    """The accuracy that every seed of every curve came to at some time, in whole percent."""
    best = []
    for curve in results.curves.values():
        best += [float(one.columns["test_accuracy"].max()) for one in curve.trained]

    return math.floor(100 * min(best) + ROUNDING) / 100


def baseline(results: Results, case: str) -> str | None:
    """The curve of a case that the others are held against: its first of SVFL."""
    for name in results.experiment.shown(case):
        kind = results.experiment.curves[name].method.get("kind")
        if kind == "svfl" and (case, name) in results.curves:
            return name

    return None


def share_of_baseline(
    results: Results, case: str, curve: str, ratio: float, axis: str = "cost"
) -> float | None:
    """The cost of an epoch as a share of what it costs SVFL; None where there is none to compare
    with."""
    other = baseline(results, case)
    if other is None:
        return None

    ours = cost_per_epoch(results.curves[case, curve], ratio, axis)
    theirs = cost_per_epoch(results.curves[case, other], ratio, axis)
    if ours is None or not theirs:
        return None
    return ours / theirs


def _after(one: TrainedCurve, epoch: float) -> float | None:
    """At the last measurement up to that epoch, if the training came so far."""
    epochs = one.columns["epoch"]
    if epochs[-1] < epoch - ROUNDING:
        return None
    return float(one.columns["test_accuracy"][np.flatnonzero(epochs <= epoch + ROUNDING)[-1]])


def _spread(values: list[float | None]) -> Spread | None:
    there = [value for value in values if value is not None]
    if not there:
        return None
    return Spread(float(np.mean(there)), min(there), max(there), len(there), len(values))
