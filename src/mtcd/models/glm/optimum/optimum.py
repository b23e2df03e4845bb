"""The optimum f* of a generalised linear model, to about 12 digits, for measuring relative gaps.

Ridge has a closed form. Everything else is solved by damped Newton steps on the coordinates that
can move (the support, and what violates the optimality conditions). With an l1 penalty each step
minimises the quadratic model plus the penalty, over a working set of columns that grows until no
column outside violates the conditions. A value is returned only with an estimate of its error that
is small enough.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from mtcd.core.arrays import Array
from mtcd.core.errors import ConfigError
from mtcd.data.vertical import Block
from mtcd.models.glm.optimum.solver_newton import minimise, minimise_lasso
from mtcd.models.glm.optimum.solver_problem import (
    TOLERANCE,
    ScaledProblem,
    check_not_negligible,
    dense,
)
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


def ridge(problem: ScaledProblem) -> tuple[Array, float] | None:
    """Closed form of 1/2 |P w + F u - y|^2 + 1/2 w^T Lambda w, u being unpenalised.

    With M = I - F F^+ the optimal u is eliminated: w solves (P^T M P + Lambda) w = P^T M y,
    directly or, where N < d, by Woodbury's identity with I + M P Lambda^-1 P^T M. Solved again for
    the remaining gradient until that certifies the value: f - f* <= sum_j g_j^2 / (2 Lambda_j).
    None if it never does.
    """
    free = np.flatnonzero(problem.l2 == 0)
    penalised = np.flatnonzero(problem.l2)
    F = dense(problem.columns(free))
    # F may have columns alike; directions without a singular value carry no information, and the
    # pseudoinverse leaves them out.
    U, sigma, _ = np.linalg.svd(F, full_matrices=False)
    Q = U[:, sigma > 1e-12 * sigma.max(initial=0.0)]
    l2 = problem.l2[penalised]
    try:
        solve = _ridge_solver(problem, penalised, Q)
    except LinAlgError:  # columns alike, and a penalty lost in rounding
        return None
    w = problem.start()
    # Each pass removes what rounding has left of the gradient. Two are usual.
    for _ in range(5):
        w[free] = 0.0
        w[free] = np.linalg.lstsq(F, problem.y - problem.forward(w))[0]
        z = problem.forward(w)
        value, g = problem.value(w, z), problem.gradient(w, z)[penalised]
        check_not_negligible(problem, value, 0.0)  # no value lies below 0
        gap = 0.5 * float((g * g / l2).sum() + ((Q.T @ (problem.y - z)) ** 2).sum())
        if gap <= TOLERANCE * value:
            return w, gap
        w[penalised] -= solve(g)
    return None


def _ridge_solver(
    problem: ScaledProblem, penalised: NDArray[np.int_], Q: Array
) -> Callable[[Array], Array]:
    """g -> (P^T M P + Lambda)^-1 g, where M = I - Q Q^T."""
    l2, samples = problem.l2[penalised], len(problem.y)
    # The smaller of both systems: d x d here, N x N below.
    if len(penalised) <= samples:
        P = problem.columns(penalised)
        hessian = dense(P.T @ P) - (P.T @ Q) @ (P.T @ Q).T + np.diag(l2)
        factor = cho_factor(hessian, overwrite_a=True, check_finite=False)
        return lambda g: np.asarray(cho_solve(factor, g, check_finite=False))

    def spread(g: Array) -> Array:
        """M P Lambda^-1 g."""
        w = problem.start()
        w[penalised] = g / l2
        z = problem.forward(w)
        return z - Q @ (Q.T @ z)

    gram = np.zeros((samples, samples))
    # In chunks, so that a copy of all scaled columns is never in memory.
    for chunk in np.array_split(penalised, 1 + len(penalised) // 2000):
        P = problem.columns(chunk)
        gram += dense((P / problem.l2[chunk]) @ P.T)
    # M G M for the projection M = I - Q Q^T, one side after the other.
    gram -= Q @ (Q.T @ gram)
    gram -= (gram @ Q) @ Q.T
    factor = cho_factor(gram + np.eye(samples), overwrite_a=True, check_finite=False)

    def woodbury(g: Array) -> Array:
        """Lambda^-1 (g - P^T M (I + M P Lambda^-1 P^T M)^-1 M P Lambda^-1 g)."""
        dual = cho_solve(factor, spread(g), check_finite=False)
        return np.asarray((g - problem.adjoint(dual - Q @ (Q.T @ dual))[penalised]) / l2)

    return woodbury


def cached_optimum(key: str, compute: Callable[[], float]) -> float:
    """The value stored under ``key``, or ``compute()``, which is then stored.

    A file that cannot be read, or holds no finite number for this key, is recomputed; a folder that
    cannot be written is ignored.
    """
    # A digest, as keys hold fingerprints and settings and would be too long for the name of a file.
    # The key itself is in the file, so that a collision is noticed.
    path = _folder() / f"optimum-{hashlib.blake2b(key.encode(), digest_size=16).hexdigest()}.json"
    stored = _read(path, key)
    if stored is not None:
        return stored
    value = float(compute())
    # An optimum that was not found must be searched again, and not be remembered.
    if math.isfinite(value):
        _write(path, key, value)
    return value


def _folder() -> Path:
    """$MTCD_CACHE, or $XDG_CACHE_HOME/mtcd, or ~/.cache/mtcd; an empty variable counts as unset."""
    if own := os.environ.get("MTCD_CACHE"):
        return Path(own)
    if shared := os.environ.get("XDG_CACHE_HOME"):
        return Path(shared) / "mtcd"
    return Path(os.path.expanduser("~")) / ".cache" / "mtcd"


def _read(path: Path, key: str) -> float | None:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # ValueError: not JSON, or not even text
        return None
    if not isinstance(record, dict) or record.get("key") != key:
        return None
    value = record.get("value")
    return value if isinstance(value, float) and math.isfinite(value) else None


def _write(path: Path, key: str, value: float) -> None:
    """Write a temporary file and rename it, so that readers never see half a file."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.stem, suffix=".tmp")
    except OSError:
        return
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump({"key": key, "value": value}, file)
        os.replace(name, path)
    except OSError:
        # Another process may have removed it, or the disk may be full: the cache is only a help.
        with contextlib.suppress(OSError):
            os.unlink(name)
