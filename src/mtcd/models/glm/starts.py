"""The parameters from which a training starts: those of an earlier run, or given by client."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from mtcd.core.arrays import Array
from mtcd.core.errors import ConfigError, listing
from mtcd.data.standardise import Scaling
from mtcd.data.vertical import VerticalData
from mtcd.models.glm.coefficients import unscaled
from mtcd.models.glm.model import Glm, LinearProblem
from mtcd.models.glm.trained import TrainedModel

Start = TrainedModel | Mapping[str, ArrayLike]


def starting_at(
    start: Start, model: Glm, data: VerticalData, problem: LinearProblem, scaling: Scaling | None
) -> LinearProblem:
    """The problem with these parameters at the start. A mapping has those of the columns as they
    are trained on."""
    if not isinstance(start, TrainedModel | Mapping):
        raise ConfigError(f"start must be a run, or parameters by client, but is {start!r}.")
    own: Mapping[str, ArrayLike]
    if isinstance(start, TrainedModel):
        own, constant = _earlier(start, data, problem, scaling)
    else:
        own, constant = start, np.zeros(())
    if missing := [client for client in data.clients if client not in own]:
        raise ConfigError(
            f"start has no parameters of {listing(missing)}: give those of every client."
        )
    if unknown := [client for client in own if client not in data.clients]:
        raise ConfigError(
            f"start has parameters of {listing(unknown)}, which this data has no client for."
        )
    thetas = []
    for client, columns in zip(data.clients, data.columns, strict=True):
        thetas.append(_checked(client, own[client], (len(columns), *problem.labels.shape[1:])))
    # Of a mapping the constant is 0: it names columns, and the column of ones has no name.
    if model.intercept:
        last = np.broadcast_to(constant, (1, *problem.labels.shape[1:]))
        thetas[0] = np.concatenate([thetas[0], last])
    return replace(problem, start=tuple(thetas))


def _checked(client: str, given: ArrayLike, shape: tuple[int, ...]) -> Array:
    try:
        theta = np.array(given, dtype=float)
    except (TypeError, ValueError):
        raise ConfigError(
            f"start: the parameters of {client!r} are not numbers: give an array."
        ) from None
    if theta.shape != shape:
        raise ConfigError(
            f"start: the parameters of {client!r} must have the shape {shape}, but have the shape "
            f"{theta.shape}."
        )
    if not np.isfinite(theta).all():
        raise ConfigError(f"start: the parameters of {client!r} are not all finite numbers.")
    return theta


def _earlier(
    trained: TrainedModel, data: VerticalData, problem: LinearProblem, scaling: Scaling | None
) -> tuple[Mapping[str, Array], Array]:
    """The parameters of an earlier model on these columns, and its intercept; in the present
    scaling."""
    if trained.clients != data.clients or trained.columns != data.columns:
        raise ConfigError(
            "start: the earlier run has other clients or columns: it must have the same, in this "
            "order."
        )
    if trained.classes != problem.classes:
        raise ConfigError(
            f"start: the earlier run has other classes: "
            f"{listing([repr(one) for one in trained.classes]) or 'none'}."
        )
    thetas, constant = trained.thetas, trained.trained_intercept
    if not _same(trained.scaling, scaling):
        # By way of the columns as given, on which both scalings agree.
        thetas, constant = _as_given(trained)
        if scaling is not None:
            thetas, constant = _scaled(thetas, constant, scaling)
    return dict(zip(data.clients, thetas, strict=True)), constant


def _same(one: Scaling | None, two: Scaling | None) -> bool:
    if one is None or two is None:
        return one is two
    pairs = zip((*one.means, *one.scales), (*two.means, *two.scales), strict=True)
    return all(np.array_equal(a, b) for a, b in pairs)


def _as_given(trained: TrainedModel) -> tuple[tuple[Array, ...], Array]:
    """theta and the intercept of the columns as given."""
    if trained.scaling is None:
        return trained.thetas, trained.trained_intercept
    pairs = zip(trained.thetas, trained.scaling.scales, strict=True)
    return tuple(unscaled(theta, scale) for theta, scale in pairs), np.asarray(trained.intercept)


def _scaled(
    thetas: tuple[Array, ...], constant: Array, scaling: Scaling
) -> tuple[tuple[Array, ...], Array]:
    """theta and the intercept of scaled columns, from those of the columns as given: the
    predictions stay the same."""
    # x . theta = sum (x - mean) / scale . (scale theta) + mean . theta: the means move into the
    # constant.
    for theta, mean in zip(thetas, scaling.means, strict=True):
        constant = constant + mean @ theta
    pairs = zip(thetas, scaling.scales, strict=True)
    return tuple((theta.T * scale).T for theta, scale in pairs), np.asarray(constant)
