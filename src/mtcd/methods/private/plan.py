"""The plan of private tours, which all parties know. The token has 2N numbers: g, which no visit changes, so that all
gradients of a tour are at the same scores, and the change of the scores, which the clients add up.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
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
from mtcd.privacy.noise import draw_secret, gaussian_noise, secret_of_seed
from mtcd.sealing.cipher import Integers
from mtcd.sealing.parameters import Parameters, choose_parameters


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

    def corrects(self, t: int) -> bool:
        return False  # without a mix, rounding errors are not made use of

    def steering(self) -> Steering:
        return PrivateSteering(self)

    def block(self, X: Block, penalty: Penalty) -> PrivateBlock:
        return PrivateBlock(X, penalty, self.dp)


class PrivateSteering(Steering):
    """The scores, and the noise. A mix of tours, or a step that depends on scores, would tell the clients more."""

    state_fields = (*Steering.state_fields, "secret")

    def __init__(self, plan: PrivatePlan) -> None:
        super().__init__(plan.loss, plan.samples, 0, plan.start, plan.constant)  # no mutants: it keeps no moves
        self.plan = plan
        self.secret = draw_secret() if plan.secret else secret_of_seed(plan.seed)

    def end_tour(self, change: Array, sums: Array, label_sum: float, rounding: float) -> None:
        self.scores = self.scores + change

    def released(self, values: Integers, client: int, t: int) -> Integers:
        """The masked gradient with noise: the mask is uniform, so the key holder adds noise to what it cannot read."""
        plan, parameters = self.plan, self.plan.parameters()
        if t > plan.dp.tours:
            raise WireError("sealed request", f"is of tour {t}, but the budget is for {plan.dp.tours}")
        deviation = plan.budget.multipliers[client] * plan.scales(parameters).sensitivity
        noise = gaussian_noise(deviation, len(values), self.secret, client, t)
        shifted = (values + noise) % parameters.plain_modulus
        return np.where(shifted > parameters.half, shifted - parameters.plain_modulus, shifted)
