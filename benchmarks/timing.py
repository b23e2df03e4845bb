"""Timing that survives a noisy machine: alternate the two contenders, keep the best of each."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

ROUNDS = 7


def best_of(*contenders: Callable[[], None], rounds: int = ROUNDS) -> list[float]:
    """The least seconds that each took, over rounds in which they take turns."""
    best = [float("inf")] * len(contenders)
    for _ in range(rounds):
        for i, contender in enumerate(contenders):
            start = perf_counter()
            contender()
            best[i] = min(best[i], perf_counter() - start)
    return best


def report(
    name: str, ours: float, floor: float, unit: str = "µs", scale: float = 1e6, note: str = ""
) -> None:
    """One line: ours, the floor, the ratio."""
    text = f"{name:52} {ours * scale:10.1f} {unit}   floor {floor * scale:10.1f} {unit}   ratio {ours / floor:5.2f}"
    print(f"{text}   {note}".rstrip())
