"""Linear blocks: a party's columns, standardised, with gradient steps of the size 1/L_k."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mtcd.core.arrays import Array
from mtcd.core.checks import check_number
from mtcd.data.vertical import Block
from mtcd.models.glm.client import LinearClient
from mtcd.models.glm.penalty import Penalty
from mtcd.models.trees.families.family import FAMILIES, Arrays, Family, Inputs, Scale
from mtcd.protocol.model import LocalUpdates


@FAMILIES.register("linear")
@dataclass(frozen=True, kw_only=True)
class LinearFamily(Family):
    """Coefficients of the standardised columns, with the penalties ``l1`` and ``l2``."""

    l1: float = 0.0
    l2: float = 1.0

    kind = "linear"
    additive = True

    def __post_init__(self) -> None:
        check_number("model.l1", self.l1)
        check_number("model.l2", self.l2)

    @property
    def nonsmooth(self) -> bool:  # type: ignore[override]
        return self.l1 > 0

    def client(self, inputs: Inputs) -> LinearParty:
        return LinearParty(self, inputs)

    def part(self, arrays: Arrays) -> LinearPart:
        return LinearPart(Scale.from_arrays(arrays), np.asarray(arrays["theta"], dtype=float))


@dataclass(frozen=True, eq=False)
class LinearPart:
    """The trained coefficients of the standardised columns."""

    scale: Scale
    theta: Array

    def margins(self, X: Block) -> Array:
        """X_k theta_k, with the columns standardised as in training."""
        return np.asarray(self.scale.apply(X) @ self.theta)

    def arrays(self) -> Arrays:
        """The coefficients, and the means and deviations of the columns."""
        return {**self.scale.arrays(), "theta": self.theta}


class LinearParty(LinearClient):
    """A linear block that chooses its own step size."""

    def __init__(self, family: LinearFamily, inputs: Inputs) -> None:
        # As new samples are scaled: the coefficients are of the scaled columns.
        self.scale = Scale.of(inputs.X, inputs.weights)
        fit = inputs.fit
        # Nothing is left free: the constant of the model takes the place of an intercept.
        penalty = Penalty(float(family.l1), float(family.l2))
        super().__init__(self.scale.apply(inputs.X), fit.labels, fit.loss, penalty)

    def local_update(self, theta: Array, aggregate: Array, updates: LocalUpdates) -> Array:
        """Q steps of the size 1/L_k, with which f never rises."""
        # L_k is 0 if all columns are constant and l2 is 0; then so is the gradient
        own_steps = updates._replace(eta=1.0 / max(self.smoothness, 1e-300))
        return super().local_update(theta, aggregate, own_steps)

    def margins(self, theta: Array, X: Block) -> Array:
        """The representation of other samples."""
        return self.finish(theta).margins(X)

    def finish(self, theta: Array) -> LinearPart:
        """The trained part: these coefficients and the scaling of the columns."""
        return LinearPart(self.scale, theta)
