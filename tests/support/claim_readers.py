"""Results that claims are checked on."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from made_up_results import experiment
from mtcd_experiments.reading import FigureReader
from mtcd_experiments.results import CurveResult, Results, TrainedCurve

TARGET = 1e-4


SPENT = 1000.0  # by a curve that never gets there


def trained(
    iterations: float | None, server: float = 0.0, seed: int = 0, spent: float = SPENT
) -> TrainedCurve:
    """Reaches the target after so many iterations (None: never), with messages with the server per
    iteration."""
    x = np.linspace(0, spent if iterations is None else 1.25 * iterations, 51)
    gap = np.full(51, 0.5) if iterations is None else TARGET ** (x / iterations)
    columns = {"iteration": x, "gap": gap, "client_client": x, "client_server": server * x}
    return TrainedCurve(seed, "converged", 1e-5, 1.0, columns)


def reaches(iterations: float | None, server: float = 0.0) -> CurveResult:
    return CurveResult("", tuple(trained(iterations, server, seed) for seed in range(2)))


def reader(curves: Mapping[tuple[str, str], CurveResult], **more: object) -> FigureReader:
    cases = {case: {} for case, _ in curves}
    names = {name: {} for _, name in curves}
    given = experiment(cases, names, [{"x": "iterations"}], target=TARGET, **more)
    return FigureReader(Results("made-up", given, dict(curves), seeds=2, quick=False, ratio=100.0))


def two(a: float | None, b: float | None, c: float | None, d: float | None) -> FigureReader:
    """Curves 'us' and 'them' in two cases."""
    values = {("one", "us"): a, ("one", "them"): b, ("two", "us"): c, ("two", "them"): d}
    return reader({key: reaches(value) for key, value in values.items()})
