"""The parameters from which a training starts: those of an earlier run, or given by client."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from mtcd.arrays import Array
from mtcd.data.scaling import Scaling
from mtcd.data.vertical import VerticalData
from mtcd.errors import ConfigError, listing
from mtcd.model.linear import Glm, LinearProblem
from mtcd.model.trained import TrainedModel

Start = TrainedModel | Mapping[str, ArrayLike]


def starting_at(
    start: Start, model: Glm, data: VerticalData, problem: LinearProblem, scaling: Scaling | None
) -> LinearProblem:
    """The problem with these parameters at the start. A mapping has those of the columns as they are trained on."""
    own, constant = _earlier(start, data, problem, scaling) if isinstance(start, TrainedModel) else (start, 0.0)
    if missing := [client for client in data.clients if client not in own]:
        raise ConfigError(f"start has no parameters of {listing(missing)}: give those of every client.")
    if unknown := [client for client in own if client not in data.clients]:
        raise ConfigError(f"start has parameters of {listing(unknown)}, which this data has no client for.")
    thetas = []
    for client, columns in zip(data.clients, data.columns, strict=True):
        theta, shape = np.array(own[client], dtype=float), (len(columns), *problem.labels.shape[1:])
        if theta.shape != shape or not np.isfinite(theta).all():
            raise ConfigError(
                f"start: the parameters of {client!r} must be finite numbers of shape {shape}, "
                f"but have the shape {theta.shape}."
            )
        thetas.append(theta)
    if model.intercept:
        last = np.broadcast_to(constant, (1, *thetas[0].shape[1:]))
        thetas[0] = np.concatenate([thetas[0], last])
    return replace(problem, start=tuple(thetas))


def _earlier(
    trained: TrainedModel, data: VerticalData, problem: LinearProblem, scaling: Scaling | None
) -> tuple[Mapping[str, Array], Array]:
    """The parameters of an earlier model on these columns, and its intercept; in the present scaling."""
    if trained.clients != data.clients or trained.columns != data.columns:
        raise ConfigError("start: the earlier run has other clients or columns: it must have the same, in this order.")
    if trained.classes != problem.classes:
        raise ConfigError(
            f"start: the earlier run has other classes: {listing([repr(one) for one in trained.classes]) or 'none'}."
        )
    thetas, constant = trained.thetas, trained.trained_intercept
    if not _same(trained.scaling, scaling):
        thetas, constant = _rescaled(thetas, constant, trained.scaling, -1.0)
        thetas, constant = _rescaled(thetas, constant, scaling, 1.0)
    return dict(zip(data.clients, thetas, strict=True)), constant


def _same(one: Scaling | None, two: Scaling | None) -> bool:
    if one is None or two is None:
        return one is two
    pairs = zip((*one.means, *one.scales), (*two.means, *two.scales), strict=True)
    return all(np.array_equal(a, b) for a, b in pairs)


def _rescaled(
    thetas: Sequence[Array], constant: Array, scaling: Scaling | None, power: float
) -> tuple[tuple[Array, ...], Array]:
    """From columns as given to scaled ones (power 1), or back (-1): x . theta + constant stays as it is."""
    if scaling is None:
        return tuple(thetas), constant
    found = []
    for theta, mean, scale in zip(thetas, scaling.means, scaling.scales, strict=True):
        other = theta * scale.reshape(-1, *(1,) * (theta.ndim - 1)) ** power
        constant = constant + power * mean @ (theta if power > 0 else other)
        found.append(other)
    return tuple(found), np.asarray(constant)
