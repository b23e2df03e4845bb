"""``stepsize: auto`` in a federation: each party tells two numbers of its block, the coordinator settles the rest.

The rules are those of ``theory/stepsize.py``. What takes all blocks together is bounded by the sum over parties: with
X = [X_1 ... X_K], |X|^2 is at most the sum of |X_k|^2, and the longest sample at most as long as all the parties'
longest ones put together.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from mtcd.arrays import Array
from mtcd.errors import WireError
from mtcd.federation.participant.problem import OwnPart
from mtcd.methods.method import Method, resolve_stepsize
from mtcd.model.linear import LinearProblem
from mtcd.objective.smoothness import block_smoothness, sample_norm
from mtcd.theory.stepsize import Smoothness, positive

FIELD = "the curvature of a block"
LARGEST = 1e300  # so that sums of these are finite


@dataclass(frozen=True)
class Curvature:
    """What a party tells of its block: L_k, and the squared length of its longest row."""

    block: float
    longest: float

    def to_bytes(self) -> bytes:
        """JSON, in which numbers read back exactly."""
        return json.dumps(asdict(self)).encode()

    @staticmethod
    def from_bytes(data: bytes) -> Curvature:
        """What another party told, checked."""
        try:
            told = json.loads(data)
        except (ValueError, RecursionError):
            raise WireError(FIELD, "cannot be read") from None
        if not isinstance(told, dict) or told.keys() != {"block", "longest"}:
            raise WireError(FIELD, "is not two numbers, block and longest")
        if not all(isinstance(value, float) and 0 <= value <= LARGEST for value in told.values()):
            raise WireError(FIELD, "holds something else than finite numbers of 0 or more")
        return Curvature(**told)


def own_curvature(part: OwnPart) -> Curvature:
    """What a party tells."""
    own, loss, penalty = part.problem.blocks[part.number], part.problem.loss, part.problem.penalties[part.number]
    return Curvature(float(block_smoothness([own], loss, penalty.l2)[0]), sample_norm([own]))


@dataclass(frozen=True, eq=False)
class ToldSmoothness(Smoothness):
    """The constants, from what the parties told. The problem is the coordinator's own, with only its own block."""

    told: tuple[Curvature, ...]
    named: ClassVar[str] = "L (a bound: l2 + sum_k (L_k - l2))"

    @cached_property
    def overall(self) -> float:
        return positive(self.l2 + math.fsum(one.block - self.l2 for one in self.told))

    @cached_property
    def blocks(self) -> Array:
        L = np.array([one.block for one in self.told])
        positive(float(L.max()))
        return L

    @cached_property
    def longest(self) -> float:
        return math.fsum(one.longest for one in self.told)


def settle_together(
    method: Method, problem: LinearProblem, told: Sequence[Curvature]
) -> tuple[Method, tuple[str, ...]]:
    """The method with 'auto' replaced by a number, and a note that says which. ``told`` is in the order of clients."""
    return resolve_stepsize(method, ToldSmoothness(problem, tuple(told)))
