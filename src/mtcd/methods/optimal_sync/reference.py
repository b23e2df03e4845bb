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
    kink = sum(map(Penalty.kink, rs, theta))

    changes: list[Theta] = []
    slope = []
    for end in ends:
        change = [new - old for new, old in zip(end, theta, strict=True)]
        smooth = sum(map(Penalty.product, rs, theta, change))
        slope.append(smooth + sum(map(Penalty.kink, rs, end)) - kink)
        changes.append(change)

    bend = np.zeros((len(ends), len(ends)))
    for i, a in enumerate(changes):
        for j, b in enumerate(changes):
            bend[i, j] = sum(map(Penalty.product, rs, a, b))

    tokens = [problem.aggregate(end) for end in ends]
    along = Along.of(problem.fit, Z, tokens, np.array(slope), bend)
    if not problem.nonsmooth:
        return optimal_weights(along, None)

    # The bound of the l1 penalty holds for weights that add up to 1 at most, at every client.
    most_met = max(sum(k in seen for seen in visited) for k in range(len(theta)))
    return optimal_weights(along, 1.0 / most_met)
