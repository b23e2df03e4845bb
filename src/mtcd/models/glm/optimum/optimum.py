"""The optimum f* of a generalised linear model, to about 12 digits, for measuring relative gaps.

Ridge has a closed form. Everything else is solved by damped Newton steps on the coordinates that
can move (the support, and what violates the optimality conditions). With an l1 penalty each step
minimises the quadratic model plus the penalty, over a working set of columns that grows until no
column outside violates the conditions. A value is returned only with an estimate of its error that
is small enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mtcd.core.arrays import Array
from mtcd.core.errors import ConfigError
from mtcd.data.vertical import Block
from mtcd.models.glm.optimum.solver_newton import minimise, minimise_lasso
from mtcd.models.glm.optimum.solver_problem import ScaledProblem
from mtcd.models.glm.optimum.solver_ridge import ridge
from mtcd.models.glm.penalty import Penalty
from mtcd.models.losses import Loss
from mtcd.models.losses.squared import Squared


@dataclass(frozen=True, eq=False)
class Optimum:
    """f* and where it is attained.

    ``gap`` says how far ``value`` may lie above f*: a bound where every column is penalised, and at
    least a Newton estimate.
    """

    value: float
    parameters: list[Array]
    gap: float


def optimum(
    blocks: Sequence[Block], labels: Array, loss: Loss, penalties: Sequence[Penalty]
) -> Optimum:
    """min over theta of loss(sum_k X_k theta_k, y) + sum_k r_k(theta_k); ``labels`` are encoded.

    Raises ``ConfigError`` where a relative gap means nothing (f* is zero, or no theta attains it),
    and ``MtcdError`` where the accuracy cannot be certified.

    >>> from mtcd.models.losses.squared import Squared
    >>> optimum([np.eye(2)], np.array([2.0, 4.0]), Squared(), [Penalty(l2=1.0)]).parameters
    [array([1., 2.])]
    """
    if len(blocks) != len(penalties):
        raise ConfigError(
            f"There are {len(blocks)} blocks but {len(penalties)} penalties: give one per block."
        )
    weights = loss.sample_weights
    if weights is not None and isinstance(loss.unweighted, Squared):
        # w (z - y)^2 = (sqrt(w) z - sqrt(w) y)^2: a problem without weights
        size = np.sqrt(weights.max())
        blocks = [size * loss.scaled(X) for X in blocks]
        labels = size * loss.scaled(labels)
        loss = loss.unweighted

    problem = ScaledProblem.of(blocks, labels, loss, penalties)
    lasso = bool(problem.l1.any())
    # The closed form needs a penalty on every direction that X leaves free, and no kinks.
    closed = None
    if isinstance(loss, Squared) and problem.l2.any() and not lasso:
        closed = ridge(problem)

    if closed is not None:
        w, gap = closed
    elif lasso:
        w, gap = minimise_lasso(problem)
    else:
        w, gap = minimise(problem, problem.start())

    # w is in the scaled unknowns; users get theta.
    theta = np.split(problem.scale * w, problem.offsets[1:-1])
    return Optimum(problem.value(w, problem.forward(w)), theta, gap)
