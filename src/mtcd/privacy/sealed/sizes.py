"""What the parties of sealed tours must know of each other's parts."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mtcd.models.glm.model import LinearProblem


@dataclass(frozen=True)
class SealedSizes:
    """The number of columns d_k of every client, and a bound of f(0)."""

    columns: tuple[int, ...]
    start: float


def sizes_of(problem: LinearProblem) -> SealedSizes:
    """What parties must know of each other's parts, from a problem that has them all."""
    return SealedSizes(columns_of(problem), start_bound(problem))


def columns_of(problem: LinearProblem) -> tuple[int, ...]:
    """d_k of all clients."""
    return tuple(X.shape[1] for X in problem.blocks)


def start_bound(problem: LinearProblem) -> float:
    """The least power of two above f(0): clients need no more of it for their scales."""
    value = problem.read_off(np.zeros(problem.samples), 0.0)
    # f(0) may be 0 where all labels are.
    if value <= 0:
        return 1.0
    return 2.0 ** math.ceil(math.log2(value))
