"""``stepsize: auto`` in a federation: each party reports two numbers of its block, from which the
label holder resolves the step size; three, if samples or classes have weights.

The rules are those of ``theory/stepsize.py``, with the bounds of ``models/glm/reports.py``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from mtcd.core.errors import WireError
from mtcd.core.mappings import without_none
from mtcd.methods.method import Method, resolve_stepsize
from mtcd.models.glm import reports
from mtcd.models.glm.model import LinearProblem
from mtcd.models.glm.party.problem import OwnPart
from mtcd.models.glm.reports import ReportedSmoothness

__all__ = ["CurvatureReport", "ReportedSmoothness", "own_curvature", "resolve_from_reports"]

FIELD = "the curvature of a block"
LARGEST = 1e300  # so that sums of these are finite


class CurvatureReport(reports.Curvature):
    """The report of a party on its block, as it travels."""

    def to_bytes(self) -> bytes:
        """Encode as JSON, in which numbers read back exactly."""
        report = without_none(asdict(self))
        return json.dumps(report).encode()

    @staticmethod
    def from_bytes(data: bytes, weighted: bool = False) -> CurvatureReport:
        """Decode and check the report of another party; ``weighted``: whether samples or classes
        have weights."""
        try:
            report = json.loads(data)
        except (ValueError, RecursionError):
            raise WireError(FIELD, "cannot be read") from None
        expected = {"block", "longest"}
        if weighted:
            expected.add("norm")
        if not isinstance(report, dict) or report.keys() != expected:
            raise WireError(FIELD, "is not numbers called block, longest and, with weights, norm")
        if not all(isinstance(value, float) and 0 <= value <= LARGEST for value in report.values()):
            raise WireError(FIELD, "holds values that are not finite numbers of 0 or more")
        return CurvatureReport(**report)


def own_curvature(part: OwnPart) -> CurvatureReport:
    """The curvature of this party's block."""
    own, penalty = part.problem.blocks[part.number], part.problem.penalties[part.number]
    return CurvatureReport(**asdict(reports.curvature_of(own, part.problem.loss, penalty.l2)))


def resolve_from_reports(
    method: Method, problem: LinearProblem, reported: Sequence[CurvatureReport]
) -> tuple[Method, tuple[str, ...]]:
    """The method with 'auto' replaced by a number, and a note on it. ``reported`` is in the order
    of clients."""
    return resolve_stepsize(method, ReportedSmoothness(problem, tuple(reported)))
