"""``stepsize: auto`` in a federation: each party reports two numbers of its block, from which the label holder resolves
the step size.

The rules are those of ``theory/stepsize.py``. Constants of all blocks together are bounded by sums over parties: with
X = [X_1 ... X_K], |X|^2 is at most the sum of |X_k|^2, and the squared norm of the longest sample is at most the sum of
those of the parties' longest rows.
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
from mtcd.objective.weighted import Weighted
from mtcd.theory.stepsize import Smoothness, positive

FIELD = "the curvature of a block"
LARGEST = 1e300  # so that sums of these are finite


@dataclass(frozen=True)
class Curvature:
    """The report of a party on its block: L_k, and the squared norm of its longest row."""

    block: float
    longest: float

    def to_bytes(self) -> bytes:
        """Encode as JSON, in which numbers read back exactly."""
        return json.dumps(asdict(self)).encode()

    @staticmethod
    def from_bytes(data: bytes) -> Curvature:
        """Decode and check the report of another party."""
        try:
            report = json.loads(data)
        except (ValueError, RecursionError):
            raise WireError(FIELD, "cannot be read") from None
        if not isinstance(report, dict) or report.keys() != {"block", "longest"}:
            raise WireError(FIELD, "is not two numbers, block and longest")
        if not all(isinstance(value, float) and 0 <= value <= LARGEST for value in report.values()):
            raise WireError(FIELD, "holds values that are not finite numbers of 0 or more")
        return Curvature(**report)


def own_curvature(part: OwnPart) -> Curvature:
    """The curvature of this party's block, without weights of classes: it is reported before labels are known."""
    own, penalty = part.problem.blocks[part.number], part.problem.penalties[part.number]
    return Curvature(float(block_smoothness([own], part.model.loss, penalty.l2)[0]), sample_norm([own]))


@dataclass(frozen=True, eq=False)
class ReportedSmoothness(Smoothness):
    """Smoothness constants from the parties' reports. The problem is the label holder's, with only its own block.

    With weights of classes they are bounds: as if all samples had the largest weight.
    """

    reports: tuple[Curvature, ...]
    named: ClassVar[str] = "L (a bound: l2 + sum_k (L_k - l2))"

    @cached_property
    def overall(self) -> float:
        return positive(self.l2 + self._largest_weight * math.fsum(one.block - self.l2 for one in self.reports))

    @cached_property
    def blocks(self) -> Array:
        L = np.array([one.block for one in self.reports])
        positive(float(L.max()))
        return L if self._largest_weight == 1.0 else self.l2 + self._largest_weight * (L - self.l2)

    @property
    def norm(self) -> float:
        return (float(self.blocks.max()) - self.l2) / self.problem.loss.curvature

    @property
    def _largest_weight(self) -> float:
        loss = self.problem.loss
        return float(loss.weights.max()) if isinstance(loss, Weighted) else 1.0

    @cached_property
    def longest(self) -> float:
        return math.fsum(one.longest for one in self.reports)


def resolve_from_reports(
    method: Method, problem: LinearProblem, reports: Sequence[Curvature]
) -> tuple[Method, tuple[str, ...]]:
    """The method with 'auto' replaced by a number, and a note on it. ``reports`` are in the order of clients."""
    return resolve_stepsize(method, ReportedSmoothness(problem, tuple(reports)))
