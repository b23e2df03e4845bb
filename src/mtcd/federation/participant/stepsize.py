"""``stepsize: auto`` in a federation: each party reports two numbers of its block, from which the label holder resolves
the step size; three, if samples or classes have weights.

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
from mtcd.objective.losses.squared import Squared
from mtcd.objective.smoothness import block_smoothness, sample_norm
from mtcd.objective.weighted import Weighted
from mtcd.theory.stepsize import Smoothness, positive

FIELD = "the curvature of a block"
LARGEST = 1e300  # so that sums of these are finite


@dataclass(frozen=True)
class Curvature:
    """The report of a party on its block: L_k, and the squared norm of its longest row; rows count by their weights."""

    block: float
    longest: float
    norm: float | None = None
    """With weights, |X_k|^2 without them: it does not follow from L_k."""

    def to_bytes(self) -> bytes:
        """Encode as JSON, in which numbers read back exactly."""
        return json.dumps({key: value for key, value in asdict(self).items() if value is not None}).encode()

    @staticmethod
    def from_bytes(data: bytes, weighted: bool = False) -> Curvature:
        """Decode and check the report of another party; ``weighted``: whether samples or classes have weights."""
        try:
            report = json.loads(data)
        except (ValueError, RecursionError):
            raise WireError(FIELD, "cannot be read") from None
        if not isinstance(report, dict) or report.keys() != {"block", "longest", *(["norm"] if weighted else [])}:
            raise WireError(FIELD, "is not numbers called block, longest and, with weights, norm")
        if not all(isinstance(value, float) and 0 <= value <= LARGEST for value in report.values()):
            raise WireError(FIELD, "holds values that are not finite numbers of 0 or more")
        return Curvature(**report)


def own_curvature(part: OwnPart) -> Curvature:
    """The curvature of this party's block."""
    own, loss, penalty = part.problem.blocks[part.number], part.problem.loss, part.problem.penalties[part.number]
    norm = float(block_smoothness([own], Squared())[0]) if isinstance(loss, Weighted) else None
    return Curvature(float(block_smoothness([own], loss, penalty.l2)[0]), sample_norm([loss.scaled(own)]), norm)


@dataclass(frozen=True, eq=False)
class ReportedSmoothness(Smoothness):
    """Smoothness constants from the parties' reports. The problem is the label holder's, with only its own block."""

    reports: tuple[Curvature, ...]
    named: ClassVar[str] = "L (a bound: l2 + sum_k (L_k - l2))"

    @cached_property
    def overall(self) -> float:
        return positive(self.l2 + math.fsum(one.block - self.l2 for one in self.reports))

    @cached_property
    def blocks(self) -> Array:
        L = np.array([one.block for one in self.reports])
        positive(float(L.max()))
        return L

    @property
    def norm(self) -> float:
        if not isinstance(self.problem.loss, Weighted):
            return super().norm
        return max(one.norm for one in self.reports if one.norm is not None)

    @cached_property
    def longest(self) -> float:
        return math.fsum(one.longest for one in self.reports)


def resolve_from_reports(
    method: Method, problem: LinearProblem, reports: Sequence[Curvature]
) -> tuple[Method, tuple[str, ...]]:
    """The method with 'auto' replaced by a number, and a note on it. ``reports`` are in the order of clients."""
    return resolve_stepsize(method, ReportedSmoothness(problem, tuple(reports)))
