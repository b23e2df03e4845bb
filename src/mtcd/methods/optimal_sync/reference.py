"""The weights of optimal sync from whole models: the plain version, for ``choose`` of
``testing/references/mtcd.py``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mtcd.core.arrays import Array
from mtcd.methods.optimal_weights import Along, optimal_weights
from mtcd.models.glm.model import LinearProblem
from mtcd.models.glm.penalty import Penalty
from mtcd.models.glm.reference import Theta


def weights_of_optimal_sync(
    problem: LinearProblem, theta: Theta, ends: Sequence[Theta], visited: Sequence[set[int]]
) -> Array:
    """argmin_w f(theta + sum_gamma w_gamma (theta(gamma) - theta)); with l1, of a bound for it."""
    Z, rs = problem.aggregate(theta), problem.penalties
    changes = [[new - old for new, old in zip(end, theta, strict=True)] for end in ends]
    bend = [[sum(map(Penalty.product, rs, a, b)) for a in changes] for b in changes]
    slope = [
        sum(map(Penalty.product, rs, theta, change))
        + sum(map(Penalty.kink, rs, end))
        - sum(map(Penalty.kink, rs, theta))
        for change, end in zip(changes, ends, strict=True)
    ]
    along = Along.of(
        problem.fit, Z, [problem.aggregate(end) for end in ends], np.array(slope), np.array(bend)
    )
    most_met = max(sum(k in seen for seen in visited) for k in range(len(theta)))
    return optimal_weights(along, 1.0 / most_met if problem.nonsmooth else None)
