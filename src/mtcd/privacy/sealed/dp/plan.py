"""The plan of private tours, which all parties know. The token has 2N numbers: g, which no visit
changes, so that all gradients of a tour are at the same scores, and the change of the scores, which
the clients add up.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from mtcd.core.arrays import Array
from mtcd.core.errors import WireError
from mtcd.data.vertical import Block
from mtcd.models.glm.penalty import Penalty
from mtcd.privacy.sealed.bfv.cipher import Integers
from mtcd.privacy.sealed.bfv.parameters import Parameters, choose_parameters
from mtcd.privacy.sealed.dp.block import PrivateBlock
from mtcd.privacy.sealed.dp.budget import Budget
from mtcd.privacy.sealed.dp.noise import Secret, draw_secret, gaussian_noise
from mtcd.privacy.sealed.dp.scales import PrivateScales
from mtcd.privacy.sealed.plan import SealedPlan
from mtcd.privacy.sealed.steering import Steering
from mtcd.privacy.settings import DP

FORGOTTEN: Secret = np.zeros(0, np.uint8)


@dataclass(frozen=True, eq=False, kw_only=True)
class PrivatePlan(SealedPlan):
    """``insecure_secret``: what noise follows from, if it is not to be from the operating
    system."""

    dp: DP
    budget: Budget
    insecure_secret: Secret | None

    needs_label_sums: ClassVar[bool] = False
    checks_answers: ClassVar[bool] = False
    """The server adds noise to its answers: no combination of them would fit."""

    def parameters(self) -> Parameters:
        # Two numbers per sample, see above; a tour adds the noise of all its visits.
        chosen = choose_parameters(2 * self.samples, (self.widest,), self.clients + 2)
        return replace(chosen, token_bound=int(self.scales(chosen).unit))

    def scales(self, parameters: Parameters) -> PrivateScales:
        noisiest = max(self.budget.multipliers)
        return PrivateScales(
            parameters,
            self.samples,
            self.loss.curvature,
            self.start,
            self.clients,
            noisiest=noisiest,
        )

    def corrects(self, t: int) -> bool:
        return False  # without a mix, rounding errors are not made use of

    def steering(self) -> Steering:
        return PrivateSteering(self)

    def block(self, X: Block, penalty: Penalty) -> PrivateBlock:
        return PrivateBlock(X, penalty, self.dp)


class PrivateSteering(Steering):
    """The scores, and the noise. A mix of tours, or a step that depends on scores, would tell the
    clients more.

    The secret is kept in checkpoints and in the server's journal, so that a tour that is repeated
    after a restart has the same noise: with other noise, both together would have less. After the
    last tour nobody needs it any more, and it is forgotten: who has it can take the noise off.
    """

    state_fields = (*Steering.state_fields, "secret", "tours")

    def __init__(self, plan: PrivatePlan) -> None:
        super().__init__(plan.loss, plan.samples, 0, plan.start, plan.constant)
        self.plan = plan
        self.secret = draw_secret() if plan.insecure_secret is None else plan.insecure_secret
        self.tours = 0
        """The tours that have ended."""

    def end_tour(
        self, change: Array, sums: Array, label_sum: float | None, rounding: float
    ) -> None:
        self.scores = self.scores + change
        self.tours += 1
        # After the last tour nobody needs it: whoever found it later could take the noise off.
        if self.tours == self.plan.dp.tours:
            self.secret = FORGOTTEN

    def released(self, values: Integers, client: int, t: int) -> Integers:
        """The masked gradient with noise: the mask is uniform, so the key holder adds noise to what
        it cannot read."""
        plan, parameters = self.plan, self.plan.parameters()
        if t > plan.dp.tours or not self.secret.size:
            raise WireError(
                "sealed request", f"is of tour {t}, but the budget is for {plan.dp.tours}"
            )
        deviation = plan.budget.multipliers[client] * plan.scales(parameters).sensitivity
        # Of this client and tour: a request that is repeated gets the same numbers.
        noise = gaussian_noise(deviation, len(values), self.secret, client, t)
        # Modulo t, as the mask is: the sum with noise must not leave the range.
        shifted = (values + noise) % parameters.plain_modulus
        return np.where(shifted > parameters.half, shifted - parameters.plain_modulus, shifted)
