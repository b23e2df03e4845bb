"""The plan of private tours, which all parties know. The token has 2N numbers: g, which no visit changes, so that all
gradients of a tour are at the same scores, and the change of the scores, which the clients add up.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np

from mtcd.arrays import Array
from mtcd.data.vertical import Block
from mtcd.errors import WireError
from mtcd.methods.private.block import PrivateBlock
from mtcd.methods.private.scales import PrivateScales
from mtcd.methods.sealed.plan import SealedPlan
from mtcd.methods.sealed.steering import Steering
from mtcd.objective.penalty import Penalty
from mtcd.privacy import DP
from mtcd.privacy.budget import Budget
from mtcd.privacy.noise import secret_noise, seeded_noise
from mtcd.sealing.cipher import Integers
from mtcd.sealing.parameters import Parameters, choose_parameters


class PrivateSteering(Steering):
    """The scores alone. A mix of tours, or a step that depends on them, would tell the clients more than the noise."""

    def end_tour(self, change: Array, sums: Array, label_sum: float, rounding: float) -> None:
        self.scores = self.scores + change


@dataclass(frozen=True, eq=False, kw_only=True)
class PrivatePlan(SealedPlan):
    """``secret``: noise from the operating system instead of the seed, which all parties know."""

    dp: DP
    budget: Budget
    secret: bool

    needs_label_sums: ClassVar[bool] = False

    def parameters(self) -> Parameters:
        chosen = choose_parameters(2 * self.samples, (self.widest,), self.clients + 2)
        return replace(chosen, token_bound=int(self.scales(chosen).unit))

    def scales(self, parameters: Parameters) -> PrivateScales:
        noisiest = max(self.budget.multipliers)
        return PrivateScales(parameters, self.samples, self.loss.curvature, self.start, self.clients, noisiest=noisiest)

    def steering(self) -> Steering:
        return PrivateSteering(self.loss, self.samples, 0, self.start, self.constant)

    def block(self, X: Block, penalty: Penalty) -> PrivateBlock:
        return PrivateBlock(X, penalty, self.dp)

    def released(self, values: Integers, client: int, t: int, token: float, parameters: Parameters) -> Integers:
        """The masked gradient with noise: the mask is uniform, so the key holder adds noise to what it cannot read."""
        if t > self.dp.tours:
            raise WireError("sealed request", f"is of tour {t}, but the budget is for {self.dp.tours}")
        deviation = self.budget.multipliers[client] * self.scales(parameters).sensitivity
        draw = secret_noise if self.secret else partial(seeded_noise, seed=self.seed, client=client, tour=t)
        shifted = (values + draw(deviation, len(values))) % parameters.plain_modulus
        return np.where(shifted > parameters.half, shifted - parameters.plain_modulus, shifted)
