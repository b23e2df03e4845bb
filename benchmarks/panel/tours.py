"""Tours of the package on a case: as they come, and with settings by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import mtcd
from benchmarks.panel.cases import Case

BY_HAND = (3, 100, 10_000, 10_000_000)
"""Q: from gradient steps to blocks that are solved."""


def methods(case: Case) -> dict[str, Any]:
    """By name: 'auto', twin tours, and conjugate tours with Q steps of 1/L, L the largest of a
    block."""
    made: dict[str, Any] = {
        "auto": mtcd.STCD(walk="tour", acceleration="conjugate", local_solver="majorise"),
        "twin": mtcd.STCD(walk="tour", acceleration="twin"),
    }
    problem = case.model.problem(case.data)
    largest = max(problem.client(k).smoothness for k in range(case.clients))
    for Q in BY_HAND:
        made[f"Q={Q:g}"] = replace(made["auto"], local_updates=Q, stepsize=1.0 / largest, depth=20)
    return made


def arrivals(
    case: Case, method: Any, optimum: float, gaps: tuple[float, ...], most: int
) -> list[tuple[int, int] | None]:
    """Messages and floats to each gap; None where ``most`` hops do not reach it."""
    stop = mtcd.Stop(gap=gaps[-1], iterations=most)
    run = mtcd.train(case.data, case.model, case.network, method, stop)
    found: list[tuple[int, int] | None] = []
    for row in run.history:
        while len(found) < len(gaps) and row.objective - optimum <= gaps[len(found)] * abs(optimum):
            found.append((row.messages["client_client"], row.floats["client_client"]))
    return found + [None] * (len(gaps) - len(found))
